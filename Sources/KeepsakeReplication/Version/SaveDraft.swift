package import Foundation

/// What a save replaces.
package enum SaveParents: Hashable, Sendable {
  /// Every version that contributed to what the player sees.
  case versions([VersionID])
  /// Everything that the list of slots showed: for a new game over a slot, a delete, or a restore from history.
  case everyHead
  /// What the running game's state came from. Becomes `versions` when the commits before it have succeeded or failed.
  case game(SaveOrigin)
  /// The version that the tracked file on this device came from, and these. Becomes `versions` within the commit.
  case file(alsoReplaced: [VersionID])
}

/// The contents of a save.
package enum SaveContent: Hashable, Sendable {
  /// Bytes encoded by the caller. Becomes `stored` before the commit.
  case bytes(Data)
  /// Contents that the storage has, by hash, and their plain bytes in total.
  case stored([ContentHash], length: Int)
  /// No contents: a delete.
  case tombstone
}

/// Finds out whether a stored save is of the type of a new one. All are equal.
package struct SaveTypeCheck: Hashable, Sendable {
  /// Returns why a save isn't of the type; nil if it is, or if that can't be known.
  package let objection: @Sendable (_ bytes: Data) -> String?

  package init(_ objection: @escaping @Sendable (_ bytes: Data) -> String?) { self.objection = objection }

  package static func == (left: Self, right: Self) -> Bool { true }

  package func hash(into hasher: inout Hasher) {}
}

/// One save between being captured and becoming a version, before it is known which versions it covers.
package struct SaveDraft: Hashable, Sendable {
  package var id: VersionID
  package var slot: String
  package var parents: SaveParents
  package var content: SaveContent
  package var metadata: SaveMetadata
  package var savedAtMilliseconds: Int64
  /// Set for a save in a slot whose type the game hasn't seen: what isn't of the same type isn't replaced.
  package var typeCheck: SaveTypeCheck?

  package init(
    id: VersionID, slot: String, parents: SaveParents, content: SaveContent, metadata: SaveMetadata = SaveMetadata(),
    savedAtMilliseconds: Int64
  ) {
    self.id = id
    self.slot = slot
    self.parents = parents
    self.content = content
    self.metadata = metadata
    self.savedAtMilliseconds = savedAtMilliseconds
  }

  /// Creates a save whose contents are in the storage, or a delete.
  package init(
    id: VersionID, slot: String, parents: SaveParents, contents: [ContentHash], length: Int,
    metadata: SaveMetadata = SaveMetadata(), savedAtMilliseconds: Int64, tombstone: Bool = false
  ) {
    self.init(
      id: id, slot: slot, parents: parents, content: tombstone ? .tombstone : .stored(contents, length: length),
      metadata: metadata,
      savedAtMilliseconds: savedAtMilliseconds)
  }

  package var isTombstone: Bool { content == .tombstone }
}

/// What one checkpoint writes, all of it or nothing.
package struct CommitDraft: Hashable, Sendable {
  package var saves: [SaveDraft]
  package var cells: [CellDraft]
  package var wallet: [WalletOperation]

  package init(saves: [SaveDraft] = [], cells: [CellDraft] = [], wallet: [WalletOperation] = []) {
    self.saves = saves
    self.cells = cells
    self.wallet = wallet
  }
}

/// What a game can get wrong about a save.
package enum CommitError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The save names a content that the storage doesn't have.
  case missingContent(VersionID, ContentHash)
  case idTaken(VersionID)
  /// The save exceeds a limit that applies to every store and cloud.
  case invalid(VersionID, String)
  /// A cell exceeds a limit that applies to every store and cloud.
  case invalidCell(CellKey, String)
  /// One checkpoint holds more than one exchange can carry.
  case tooMuch(String)
  /// A board has the most players that it may have.
  case tooManyPlayers(board: String, maximum: Int)
  /// A slot or a file has several heads where a single one is needed.
  case inConflict(String)

  package var description: String {
    switch self {
    case .missingContent(let id, let hash): "the save \(id) refers to the content \(hash), which isn't in this store"
    case .idTaken(let id): "there is already a save \(id)"
    case .invalid(let id, let why): "the save \(id) can't be stored: \(why)"
    case .invalidCell(let key, let why): "\(key) can't be stored: \(why)"
    case .tooMuch(let what): "too much for one checkpoint, split it into several: \(what)"
    case .tooManyPlayers(let board, let maximum):
      "the board \"\(board)\" has \(maximum) players, the maximum: remove some, or use another board"
    case .inConflict(let name): "\"\(name)\" was written twice independently: resolve the conflict first"
    }
  }
}
