/// A content that a version needs and that isn't on this device.
struct NeededContent: Sendable {
  var hash: ContentHash
  var slot: String
  var version: VersionID
  /// Plain bytes, estimated from the length of the version.
  var length: Int
  /// It belongs to a save that is shown already, without its contents: only the call that requested it waits for it.
  var isOnRequest = false
}

/// What the engine has to know after receiving contents.
struct DownloadLosses: Sendable {
  /// Contents that the device goes on without, which is reported to the game.
  var givenUp: [ContentHash] = []
  /// Contents that were given up because they arrived damaged, which is reported to the cloud.
  var damaged: [ContentHash] = []
  /// The cloud doesn't have a content: an exchange has to find out what became of its version.
  var isExchangeDue = false
}

/// Decides which contents are downloaded, and handles those that arrive.
///
/// What is needed is worked out from the storage, and kept until `invalidate()`.
struct DownloadPlanner: Sendable {
  /// How often a content may arrive damaged, or be missing in the cloud, before the device goes on without it.
  static let maximumDamaged = 3
  static let maximumGone = 3

  /// Which contents are downloaded without being asked for.
  var rules = DownloadRules() {
    didSet {
      guard rules != oldValue else { return }
      needs = nil
      newlyAsked.formUnion(rules.asked.subtracting(oldValue.asked))
      newlyAsked.formIntersection(rules.asked)
    }
  }
  private let maximumDepth: Int

  /// What staged versions need and isn't here, in the order of requesting; nil if it has to be worked out again.
  private(set) var needs: [NeededContent]?
  /// Whether there were heads that aren't downloaded when `needs` was worked out.
  var hasNotDownloaded = false
  /// The slots of the staged versions when `needs` was worked out.
  private(set) var stagedSlots: Set<String> = []
  /// Those of the needed contents that only improve merging.
  private var optional: Set<ContentHash> = []
  /// Slots that the game asked for since `needs` was worked out: contents of them that were given up get another
  /// chance.
  private var newlyAsked: Set<String> = []
  private(set) var held = HeldContents()
  private(set) var failures = ContentFailures()

  init(_ options: DeviceEngine.Options) { maximumDepth = options.maximumDepth }

  /// Whether something that is staged waits for a content.
  var isWaiting: Bool { needs?.contains { !$0.isOnRequest } == true }

  /// Whether it is known that nothing that is staged waits for a content.
  var isSatisfied: Bool { needs?.allSatisfy(\.isOnRequest) == true }

  /// Returns the plain bytes of all contents that a version still needs.
  func lengthInAll(of version: VersionID) -> Int {
    (needs ?? []).filter { $0.version == version }.reduce(0) { $0 + $1.length }
  }

  /// Discards `needs`, because what is staged or stored has changed.
  mutating func invalidate() { needs = nil }

  /// Forgets all failures.
  mutating func reset() {
    failures.reset()
    needs = nil
  }

  /// Starts over with another cloud, from which everything is fetched: what waits for a base won't get it.
  mutating func restart() {
    held = HeldContents()
    needs = nil
  }

  /// Forgets that these contents are gone, because an exchange has looked since.
  mutating func looked(for gone: Set<ContentHash>) { failures.looked(for: gone) }

  /// Tries the contents of changed versions again, also those that were given up: the cloud sends a version once more
  /// when its content is intact again.
  mutating func reconsider(_ changes: [CloudChange]) {
    for change in changes {
      guard case .version(let record) = change.item else { continue }
      for hash in record.contents { failures.retry(hash) }
    }
  }

  // MARK: What is needed

  /// Returns the contents that aren't here and that the staged heads or the ancestors of conflicts need, and those that
  /// were asked for.
  mutating func missing(in storage: some DeviceStorage) throws -> [NeededContent] {
    if let needs {
      let left = try needs.filter { try !failures.givenUp.contains($0.hash) && !storage.hasContent($0.hash) }
      self.needs = left
      return left
    }
    let staged = try StagedVersions(in: storage)
    let notDownloaded = try storage.notDownloadedRecords().filter { !staged.covered.contains($0.id) }
    (optional, stagedSlots, hasNotDownloaded) = ([], staged.slots, !notDownloaded.isEmpty)
    var list = NeedList()
    for slot in staged.slots.sorted() { try need(slot, staged, notDownloaded, &list, in: storage) }
    for record in notDownloaded {
      if try storage.heads(of: record.slot).count > 1 || !isLeftInCloud(record, in: storage) {
        try need(record, isOnRequest: true, &list, in: storage)
      }
    }
    newlyAsked = []
    needs = list.needs
    held.keepOnly(neededBy: list.hashes)
    return list.needs
  }

  /// Returns what to download next, in this order, without what is in flight. Bases come first, since what has already
  /// arrived can't be stored without them.
  mutating func wanted(in storage: some DeviceStorage, downloading: Set<ContentHash>) throws -> [NeededContent] {
    let missing = try missing(in: storage)
    let here = held.hashes
    var asked = downloading.union(failures.gone)
    var wanted: [NeededContent] = []
    for content in held.all {
      guard let base = content.content.base, !here.contains(base), asked.insert(base).inserted else { continue }
      guard let root = missing.first(where: { $0.hash == content.root }) else { continue }
      // It is no part of the version: its progress says nothing about the progress of that.
      wanted.append(NeededContent(hash: base, slot: root.slot, version: root.version, length: 0))
    }
    for need in missing where !here.contains(need.hash) && asked.insert(need.hash).inserted { wanted.append(need) }
    return wanted
  }

  /// Returns all contents that are needed for a version, or as a base of what waits.
  mutating func wantedHashes(in storage: some DeviceStorage) throws -> Set<ContentHash> {
    let hashes = Set(try missing(in: storage).map(\.hash))
    return hashes.union(held.all.filter { hashes.contains($0.root) }.compactMap(\.content.base))
  }

  /// Drops contents that wait for a base and aren't needed.
  mutating func dropHeld(notNeededBy missing: [NeededContent]) { held.keepOnly(neededBy: Set(missing.map(\.hash))) }

  private mutating func need(
    _ slot: String, _ staged: StagedVersions, _ notDownloaded: [VersionRecord], _ list: inout NeedList,
    in storage: some DeviceStorage
  ) throws {
    let heads = try staged.heads(of: slot, in: storage)
    for id in heads {
      guard let record = staged.records[id] else { continue }
      // A conflict needs all contents of its versions, or nobody could tell what it is about.
      if try heads.count > 1 || !isLeftInCloud(record, in: storage) { try need(record, &list, in: storage) }
    }
    guard heads.count > 1 else { return }
    for record in notDownloaded where heads.contains(record.id) { try need(record, &list, in: storage) }
    let shared = storage.sharedRecords()
    let lookup = { (id: VersionID) in try staged.records[id] ?? shared(id) }
    for id in try Resolution.mergeAncestors(of: heads, record: lookup).all {
      if let record = try lookup(id) { try need(record, isOptional: true, &list, in: storage) }
    }
  }

  private mutating func need(
    _ record: VersionRecord, isOptional: Bool = false, isOnRequest: Bool = false, _ list: inout NeedList,
    in storage: some DeviceStorage
  ) throws {
    if newlyAsked.contains(record.slot) {
      for hash in record.contents { failures.retry(hash) }
    }
    for part in try storage.parts(of: record) where !failures.givenUp.contains(part.hash) {
      guard try !storage.hasContent(part.hash), list.hashes.insert(part.hash).inserted else { continue }
      list.needs.append(
        NeededContent(
          hash: part.hash, slot: record.slot, version: record.id, length: part.length, isOnRequest: isOnRequest))
      if isOptional { optional.insert(part.hash) }
    }
  }

  /// Returns whether something of the slot that was asked for has still to arrive, as far as known; true also while it
  /// has to be worked out what is needed.
  func isComing(_ slot: String, downloading: Set<ContentHash>, in storage: some DeviceStorage) throws -> Bool {
    guard let needs, !newlyAsked.contains(slot) else { return true }
    // Compared by content: another slot may have asked for the same one.
    let lacking = try storage.notDownloadedRecords().filter { $0.slot == slot }.flatMap(\.contents).filter {
      try !storage.hasContent($0)
    }
    let coming = Set(needs.map(\.hash)).union(downloading)
    return lacking.contains(where: coming.contains)
  }

  // MARK: What comes

  /// Handles the response to a download.
  ///
  /// - Parameters:
  ///   - hash: The content that was requested.
  ///   - content: What was received; nil if the cloud doesn't have it.
  mutating func received(
    _ hash: ContentHash, _ content: EncodedContent?, in storage: inout some DeviceStorage
  ) throws -> DownloadLosses {
    var losses = DownloadLosses()
    // By now it may not be needed any more, or a page has arrived since and it isn't known what is needed.
    let isNeeded = needs?.contains { $0.hash == hash } == true || held.needs(hash)
    if let content, content.hash == hash, isNeeded || needs == nil {
      try take(content, &losses, in: &storage)
      return losses
    }
    guard isNeeded else { return losses }
    let isOptional = held.roots(of: hash).allSatisfy(optional.contains)
    // The content is most likely gone because its version was replaced: the exchange says by what, and only then is the
    // content requested again.
    if content == nil, !isOptional {
      losses.isExchangeDue = true
      failures.isGone(hash)
    }
    failed(hash, atMost: content != nil ? Self.maximumDamaged : isOptional ? 1 : Self.maximumGone, &losses)
    return losses
  }

  /// Stores a content, and those that waited for it.
  mutating func take(_ content: EncodedContent, _ losses: inout DownloadLosses, in storage: inout some DeviceStorage)
    throws
  {
    var ready = [content]
    while let content = ready.popLast() {
      // One that is damaged here is replaced, too: a delta of it asks for it again.
      guard try !storage.hasContent(content.hash) || held.needs(content.hash) else { continue }
      switch try storage.receiveContent(content) {
      case .stored:
        let depth = try content.base.map { (try storage.cloudDepth(of: $0) ?? maximumDepth) + 1 } ?? 0
        try storage.setCloudDepth(depth, of: content.hash)
        ready += held.release(for: content.hash)
      case .needsBase(let base):
        if try storage.hasContent(base) { failed(content.hash, atMost: Self.maximumDamaged, &losses) }
        if !failures.givenUp.contains(content.hash), !held.hold(content) { giveUpNeeds(of: content.hash, &losses) }
      case .damaged:
        let before = failures.givenUp
        failed(content.hash, atMost: Self.maximumDamaged, &losses)
        if failures.givenUp != before { losses.damaged.append(content.hash) }
      }
    }
  }

  /// Takes contents that waited for a base that arrived another way: inside a response, or because the game saved the
  /// very same bytes.
  mutating func takeHeld(_ losses: inout DownloadLosses, in storage: inout some DeviceStorage) throws {
    for waiting in held.all {
      guard let base = waiting.content.base, try storage.hasContent(base) else { continue }
      held.remove(waiting.content.hash)
      try take(waiting.content, &losses, in: &storage)
    }
  }

  /// Goes on without the contents that need this one.
  mutating func giveUpNeeds(of hash: ContentHash, _ losses: inout DownloadLosses) {
    for root in held.roots(of: hash) {
      held.removeAll(neededBy: root)
      failures.giveUp(root)
      report(root, &losses)
    }
  }

  /// Counts a failure of a content, or of a base of one that is needed, and gives that up after too many.
  private mutating func failed(_ hash: ContentHash, atMost limit: Int, _ losses: inout DownloadLosses) {
    for root in held.roots(of: hash) {
      held.removeAll(neededBy: root)
      if failures.failed(root, atMost: limit) { report(root, &losses) }
    }
  }

  /// Reports a content that was given up. One damaged picture must not hold up everything else, but the game is
  /// notified.
  private func report(_ hash: ContentHash, _ losses: inout DownloadLosses) {
    if !optional.contains(hash) { losses.givenUp.append(hash) }
  }

  /// Returns whether a head lacks a content that was given up.
  func lacksContents(in storage: some DeviceStorage) throws -> Bool {
    let lacking = try failures.givenUp.filter { try !optional.contains($0) && !storage.hasContent($0) }
    guard !lacking.isEmpty else { return false }
    return try storage.slots().contains { slot in
      try storage.heads(of: slot).contains {
        try storage.version($0)?.record.contents.contains(where: lacking.contains) == true
      }
    }
  }
}

/// The needed contents, while they are collected.
private struct NeedList {
  var needs: [NeededContent] = []
  var hashes: Set<ContentHash> = []
}

/// The staged versions. Read only when needs are worked out: a game that keeps back what arrives may leave a lot of it
/// for long.
private struct StagedVersions {
  private(set) var records: [VersionID: VersionRecord] = [:]
  private(set) var covered: Set<VersionID> = []
  private var bySlot: [String: Set<VersionID>] = [:]
  var slots: Set<String> { Set(bySlot.keys) }

  init(in storage: some DeviceStorage) throws {
    for change in try storage.staged() {
      guard case .version(let record) = change.item else { continue }
      records[record.id] = record
      covered.formUnion(record.covers)
      bySlot[record.slot, default: []].insert(record.id)
    }
  }

  /// Returns the heads that a slot will have when these are shown.
  func heads(of slot: String, in storage: some DeviceStorage) throws -> [VersionID] {
    var heads: [VersionID] = []
    for id in Set(try storage.heads(of: slot)).union(bySlot[slot] ?? []).sorted() where !covered.contains(id) {
      if try !storage.isCovered(id) { heads.append(id) }
    }
    return heads
  }
}
