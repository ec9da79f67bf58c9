/// The limits for every item of an exchange, checked on both sides: a device refuses to store what its cloud would
/// refuse to accept.
package enum ExchangeRules {
  /// A key names one value of a game; longer ones are mistakes, and databases index them.
  package static let maximumKeyBytes = 256
  package static let maximumCollectionBytes = 64
  package static let maximumSlotBytes = 256
  /// A cell is read and joined as a whole at every change.
  package static let maximumCellBytes = 256 * 1024
  /// The plain bytes of a content (256 MiB), and the most contents into which a version is cut.
  package static let maximumContentBytes = 256 * 1024 * 1024
  package static let maximumContents = 4096
  package static let maximumVersionBytes = 1 << 40
  /// What one save replaces: its parents, and the device's own saves offered since the cloud last responded. A device
  /// that tries every five minutes and never gets a response takes more than half a year to reach this.
  package static let maximumCovers = 65_536
  /// Items of one request.
  package static let maximumCells = 8192
  package static let maximumVersions = 1024
  package static let maximumInlineContents = 1024
  /// Larger contents are uploaded one by one.
  package static let maximumInlineBytes = 1024 * 1024
  /// Items of one response, which is limited by its bytes in the first place.
  package static let maximumChanges = 20_000
  /// What all versions of one request may replace, and name as contents, together. A device sends 1 MiB of records, or
  /// one checkpoint of at most 2 MiB: less than this.
  package static let maximumRequestCovers = maximumCovers
  package static let maximumRequestContents = 32_768
  /// The work of one request, of every kind together (``ExchangeRequest/work``): more than the largest checkpoint.
  package static let maximumWork = 80_000
  /// Contents that one request reports as damaged, and contents that one response asks for: each response repeats the
  /// latter until they are here.
  package static let maximumDamaged = 64
  package static let maximumWanted = 16
  /// Versions for which one request asks who has them: two kilobytes of a URL, which is what proxies let through.
  package static let maximumAskedVersions = 64
  /// What one checkpoint may take, without contents: it is sent as a whole, and JSON makes up to three times as much of
  /// it.
  package static let maximumCommitBytes = 2 * 1024 * 1024
  /// What a device offers in parts and the cloud accepts together: all that a store holds except its contents. It is
  /// joined in one transaction, for which every other device waits.
  package static let maximumOfferParts = 1_024
  package static let maximumOfferBytes = 32 << 20
  /// Unfinished offers of a container, and their bytes: a few for each device, since a device that was restarted begins
  /// another offer, and the bytes of two of the largest.
  package static let maximumOffers = 32
  package static let maximumHeldBytes = 64 << 20
  /// An offer that wasn't continued for two minutes, in which even a slow network transfers the next part, makes room
  /// for another. After a day no device continues it any more.
  package static let offerIdleMilliseconds: Int64 = 120_000
  package static let offerLifetimeMilliseconds: Int64 = 86_400_000
  /// Times beyond this (the year 287396) are refused, so that arithmetic on them can't overflow.
  package static let maximumMilliseconds = Stamp.maximumMilliseconds

  /// Returns why the cell can't be accepted; nil if it can.
  package static func objection(to update: CellUpdate) -> Refusal? {
    func refuse(_ reason: Refusal.Reason, _ message: String) -> Refusal {
      Refusal(item: item(update.key), reason: reason, message: message)
    }
    if let why = NameRule.collection.objection(to: update.key.collection) { return refuse(.invalid, why) }
    if let why = NameRule.value.objection(to: update.key.key) { return refuse(.invalid, why) }
    guard update.state.generation <= Cursor.maximumSeq else {
      return refuse(.invalid, "the generation is out of range")
    }
    guard update.state.value.size <= maximumCellBytes else {
      return refuse(
        .tooLarge, "a value may take at most \(maximumCellBytes) bytes; keep larger data in a saved game or a file")
    }
    if let objection = update.state.value.objection() { return refuse(.invalid, objection) }
    if case .best(let best) = update.state.value, best.entry?.payload.count ?? 0 > ScoreEntry.maximumPayloadBytes {
      return refuse(.tooLarge, "the context of a score may take at most \(ScoreEntry.maximumContextBytes) bytes")
    }
    return nil
  }

  /// Returns why a device can't change the cell to this; nil if it can. A value that other devices filled beyond the
  /// limit may shrink step by step: nothing else would ever make it fit again.
  package static func objection(to update: CellUpdate, over known: CellState?) -> Refusal? {
    guard let refusal = objection(to: update) else { return nil }
    guard refusal.reason == .tooLarge, let known, update.state.value.size < known.value.size else { return refusal }
    return nil
  }

  /// Returns why the version can't be accepted; nil if it can.
  package static func objection(to version: VersionRecord) -> Refusal? {
    func refuse(_ reason: Refusal.Reason, _ message: String) -> Refusal {
      Refusal(item: item(version.id), reason: reason, message: message)
    }
    if let why = NameRule.slot.objection(to: version.slot) { return refuse(.invalid, why) }
    guard version.covers.count <= maximumCovers else { return refuse(.tooLarge, "it replaces too many versions") }
    guard !version.covers.contains(version.id) else { return refuse(.invalid, "it replaces itself") }
    guard version.contents.count <= maximumContents, version.length >= 0, version.length <= maximumVersionBytes else {
      return refuse(.tooLarge, "it has too many bytes, or a negative length")
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
      return refuse(
        .tooLarge, "title, thumbnail and custom metadata may take at most \(SaveMetadata.maximumBytes) bytes together")
    }
    return nil
  }

  /// The name of a cell in refusals.
  package static func item(_ key: CellKey) -> String { "cell \(key)" }

  /// The name of a version in refusals.
  package static func item(_ id: VersionID) -> String { "version \(id)" }
}

extension VersionRecord {
  /// What one covered version adds to it.
  static let coverSize = 36
  /// The approximate size of the record in a message, in bytes.
  package var size: Int { 256 + metadata.size + slot.utf8.count + covers.count * Self.coverSize + contents.count * 68 }
}

extension CellUpdate {
  /// The approximate size of the update in a message, in bytes.
  package var size: Int { 64 + key.key.utf8.count + state.value.size }
}

extension SaveMetadata {
  /// Bytes of everything whose size is up to the game.
  package var size: Int {
    var sum = (title?.utf8.count ?? 0) + (thumbnail?.count ?? 0)
    for (key, value) in custom { sum += key.utf8.count + value.utf8.count }
    return sum
  }
}

extension Int64 {
  /// The number, but never the one whose magnitude can't be represented.
  fileprivate var clamped: Int64 { Swift.max(self, -.max) }
}
