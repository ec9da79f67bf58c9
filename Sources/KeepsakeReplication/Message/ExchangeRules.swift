/// The limits that every item of an exchange holds to, checked on both sides: a device refuses to keep what its cloud would
/// refuse to take.
package enum ExchangeRules {
  /// A key names one value of a game; longer ones are mistakes, and databases index them.
  package static let maximumKeyBytes = 256
  package static let maximumCollectionBytes = 64
  package static let maximumSlotBytes = 256
  /// A cell is read and joined whole at every change.
  package static let maximumCellBytes = 256 * 1024
  /// 256 MiB of plain bytes in a content, cut into at most this many per version.
  package static let maximumContentBytes = 256 * 1024 * 1024
  package static let maximumContents = 4096
  package static let maximumVersionBytes = 1 << 40
  /// What one save replaces: its basis, and own saves offered since the cloud last answered. A device that tries every five
  /// minutes and never gets an answer comes to this in more than half a year.
  package static let maximumCovers = 65_536
  /// Items of one request.
  package static let maximumCells = 8192
  package static let maximumVersions = 1024
  package static let maximumInlineContents = 1024
  /// Larger contents are put one by one.
  package static let maximumInlineBytes = 1024 * 1024
  /// Items of one answer, which is bounded by its bytes in the first place.
  package static let maximumChanges = 20_000
  /// Contents that one request says are damaged, and that one answer asks for: each answer repeats the latter until they are here.
  package static let maximumDamaged = 64
  package static let maximumWanted = 16
  /// Versions about which one request asks who has them: two kilobytes of an address, which is what proxies let through.
  package static let maximumAskedVersions = 64
  /// What one checkpoint may take, contents aside: it travels as a whole, and JSON makes up to three times as much of it.
  package static let maximumCommitBytes = 2 * 1024 * 1024
  /// What a device offers in parts and the cloud takes together: all that a store holds but its contents. It is joined in one transaction, for
  /// which everybody else waits.
  package static let maximumOfferParts = 1_024
  package static let maximumOfferBytes = 32 << 20
  /// Offers of a container that are begun and not ended, and what they take: a few for each device, since one that was started anew begins
  /// another, and two of the largest.
  package static let maximumOffers = 32
  package static let maximumHeldBytes = 64 << 20
  /// An offer that nobody went on with for two minutes, in which a slow network brings the next part, makes room for another. One of a day is
  /// no device's any more.
  package static let offerIdleMilliseconds: Int64 = 120_000
  package static let offerLifetimeMilliseconds: Int64 = 86_400_000
  /// Times beyond this (the year 287396) are refused, so that arithmetic on them can't overflow.
  package static let maximumMilliseconds = Stamp.maximumMilliseconds

  /// Why the cell can't be taken; nil if it can.
  package static func objection(to update: CellUpdate) -> Refusal? {
    func refuse(_ reason: Refusal.Reason, _ message: String) -> Refusal {
      Refusal(item: item(update.key), reason: reason, message: message)
    }
    guard isName(update.key.collection, maximumCollectionBytes), isName(update.key.key, maximumKeyBytes) else {
      return refuse(.invalid, "a key is empty, too long, or has control characters")
    }
    guard update.state.generation <= Cursor.maximumSeq else { return refuse(.invalid, "the generation is out of range") }
    guard update.state.value.size <= maximumCellBytes else {
      return refuse(.tooLarge, "a value may take \(maximumCellBytes) bytes; keep more in a saved game or a file")
    }
    if let objection = update.state.value.objection() { return refuse(.invalid, objection) }
    if case .best(let best) = update.state.value, best.entry?.payload.count ?? 0 > ScoreEntry.maximumPayloadBytes {
      return refuse(.tooLarge, "what belongs to a score may take \(ScoreEntry.maximumContextBytes) bytes")
    }
    return nil
  }

  /// Why a device can't change the cell to this; nil if it can. A value that other devices filled beyond the limit may get smaller step by
  /// step: nothing else would ever make it fit again.
  package static func objection(to update: CellUpdate, over known: CellState?) -> Refusal? {
    guard let refusal = objection(to: update) else { return nil }
    guard refusal.reason == .tooLarge, let known, update.state.value.size < known.value.size else { return refusal }
    return nil
  }

  /// Why the version can't be taken; nil if it can.
  package static func objection(to version: VersionRecord) -> Refusal? {
    func refuse(_ reason: Refusal.Reason, _ message: String) -> Refusal {
      Refusal(item: item(version.id), reason: reason, message: message)
    }
    guard isName(version.slot, maximumSlotBytes) else {
      return refuse(.invalid, "the slot's name is empty, too long, or has control characters")
    }
    guard version.covers.count <= maximumCovers else { return refuse(.tooLarge, "it replaces too many versions") }
    guard !version.covers.contains(version.id) else { return refuse(.invalid, "it replaces itself") }
    guard version.contents.count <= maximumContents, version.length >= 0, version.length <= maximumVersionBytes else {
      return refuse(.tooLarge, "it has too many bytes, or a length below zero")
    }
    guard !version.tombstone || (version.contents.isEmpty && version.length == 0) else {
      return refuse(.invalid, "a delete has contents")
    }
    guard abs(version.savedAtMilliseconds.clamped) <= maximumMilliseconds else {
      return refuse(.invalid, "the time of saving is out of range")
    }
    let metadata = version.metadata
    guard metadata.playtime?.isFinite ?? true, metadata.progress?.isFinite ?? true else {
      return refuse(.invalid, "playtime and progress have to be finite numbers")
    }
    guard metadata.size <= SaveMetadata.maximumBytes else {
      return refuse(.tooLarge, "title, thumbnail and custom metadata may take \(SaveMetadata.maximumBytes) bytes together")
    }
    return nil
  }

  /// How refusals name a cell.
  package static func item(_ key: CellKey) -> String { "cell \(key)" }

  /// How refusals name a version.
  package static func item(_ id: VersionID) -> String { "version \(id)" }

  package static func isName(_ text: String, _ limit: Int) -> Bool {
    let bytes = text.utf8
    return !bytes.isEmpty && bytes.count <= limit && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
  }
}

extension VersionRecord {
  /// Bytes that the record takes in a message, roughly.
  package var size: Int { 256 + metadata.size + slot.utf8.count + covers.count * 36 + contents.count * 68 }
}

extension CellUpdate {
  /// Bytes that the update takes in a message, roughly.
  package var size: Int { 64 + key.key.utf8.count + state.value.size }
}

extension SaveMetadata {
  /// Bytes of everything whose size is the game's choice.
  package var size: Int {
    var sum = (title?.utf8.count ?? 0) + (thumbnail?.count ?? 0)
    for (key, value) in custom { sum += key.utf8.count + value.utf8.count }
    return sum
  }
}

extension Int64 {
  /// Itself, but never the one number whose magnitude doesn't fit.
  fileprivate var clamped: Int64 { Swift.max(self, -.max) }
}
