package import Foundation

/// What a save replaces.
package enum SaveParents: Hashable, Sendable {
  /// Every version that went into what the player sees.
  case versions([VersionID])
  /// All that the slot list showed: for a new game over a slot, a delete, a restore from history.
  case everyHead
  /// What the running game's state came from. Becomes `versions` when the commits before it are decided.
  case game(SaveOrigin)
  /// The version from which the tracked file on this device came, and these. Becomes `versions` within the commit.
  case file(alsoReplaced: [VersionID])
}

/// What a save holds.
package enum SaveContent: Hashable, Sendable {
  /// Encoded by the caller. Becomes `stored` before the commit.
  case bytes(Data)
  /// What the storage has under these names, and how many plain bytes that is.
  case stored([ContentHash], length: Int)
  /// Nothing: a delete.
  case tombstone
}

/// One save on its way, from where it is captured to where it becomes a version: before it is known which versions it covers.
package struct SaveDraft: Hashable, Sendable {
  package var id: VersionID
  package var slot: String
  package var parents: SaveParents
  package var content: SaveContent
  package var metadata: SaveMetadata
  package var savedAtMilliseconds: Int64

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

  /// One whose contents are in the storage, or a delete.
  package init(
    id: VersionID, slot: String, parents: SaveParents, contents: [ContentHash], length: Int,
    metadata: SaveMetadata = SaveMetadata(), savedAtMilliseconds: Int64, tombstone: Bool = false
  ) {
    self.init(
      id: id, slot: slot, parents: parents, content: tombstone ? .tombstone : .stored(contents, length: length), metadata: metadata,
      savedAtMilliseconds: savedAtMilliseconds)
  }

  package var isTombstone: Bool { content == .tombstone }
}

/// What one checkpoint writes: all of it or nothing.
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
  /// The save breaks a limit that every store and cloud holds to.
  case invalid(VersionID, String)
  /// A cell breaks a limit that every store and cloud holds to.
  case invalidCell(CellKey, String)
  /// One checkpoint has more than one exchange can carry.
  case tooMuch(String)
  /// A board has as many players as one may have.
  case tooManyPlayers(board: String, maximum: Int)
  /// Versions of a slot, or of a file, are beside each other, where one is needed.
  case inConflict(String)

  package var description: String {
    switch self {
    case .missingContent(let id, let hash): "the save \(id) names the content \(hash), which isn't here"
    case .idTaken(let id): "there is a save \(id) already"
    case .invalid(let id, let why): "the save \(id) can't be kept: \(why)"
    case .invalidCell(let key, let why): "\(key) can't be kept: \(why)"
    case .tooMuch(let what): "too much for one checkpoint: \(what)"
    case .tooManyPlayers(let board, let maximum):
      "the board \"\(board)\" has \(maximum) players, which is the most: remove some, or take another board"
    case .inConflict(let name): "\"\(name)\" was written twice without one knowing of the other: end the conflict first"
    }
  }
}
