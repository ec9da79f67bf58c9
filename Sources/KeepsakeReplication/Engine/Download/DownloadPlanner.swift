/// A content that a version needs and that isn't here.
struct NeededContent: Sendable {
  var hash: ContentHash
  var slot: String
  var version: VersionID
  /// Plain bytes, guessed from the length of the version.
  var length: Int
  /// Of a save that shows already, without its contents: nothing waits for it but whoever asked.
  var isOnRequest = false
}

/// What of received contents the engine has to know.
struct DownloadLosses: Sendable {
  /// Contents that the device goes on without, which is reported to the game.
  var givenUp: [ContentHash] = []
  /// Contents that came damaged again and again: reported to the cloud.
  var damaged: [ContentHash] = []
  /// The cloud doesn't have a content: an exchange has to look what became of its version.
  var isExchangeDue = false
}

/// Decides which contents are downloaded, and what becomes of those that come.
///
/// It is worked out from the storage, and kept until `invalidate()`.
struct DownloadPlanner: Sendable {
  /// Times that a content may come damaged, or not at all, before the device goes on without it.
  static let maximumDamaged = 3
  static let maximumGone = 3

  /// Which contents come by themselves.
  var rules = DownloadRules() {
    didSet {
      guard rules != oldValue else { return }
      needs = nil
      newlyAsked.formUnion(rules.asked.subtracting(oldValue.asked))
      newlyAsked.formIntersection(rules.asked)
    }
  }
  private let maximumDepth: Int

  /// What staged versions need and isn't here, in the order of asking; nil when it has to be worked out again.
  private(set) var needs: [NeededContent]?
  /// There are heads of which only the record is here, as of when `needs` was worked out.
  var hasNotDownloaded = false
  /// Slots of which versions are staged, when `needs` was worked out.
  private(set) var stagedSlots: Set<String> = []
  /// Of the needs, what only serves to merge better.
  private var optional: Set<ContentHash> = []
  /// Slots that the game asked for since `needs` was worked out: what was given up of them gets another chance.
  private var newlyAsked: Set<String> = []
  private(set) var held = HeldContents()
  private(set) var failures = ContentFailures()

  init(_ options: DeviceEngine.Options) { maximumDepth = options.maximumDepth }

  /// Something that is staged waits for a content.
  var isWaiting: Bool { needs?.contains { !$0.isOnRequest } == true }

  /// It is known that nothing that is staged waits for a content.
  var isSatisfied: Bool { needs?.allSatisfy(\.isOnRequest) == true }

  /// Plain bytes of all contents that a version still needs.
  func lengthInAll(of version: VersionID) -> Int {
    (needs ?? []).filter { $0.version == version }.reduce(0) { $0 + $1.length }
  }

  /// What is staged or stored has changed.
  mutating func invalidate() { needs = nil }

  /// Forgets all failures.
  mutating func reset() {
    failures.reset()
    needs = nil
  }

  /// Everything is fetched anew from another cloud: nothing that waits for a base gets it.
  mutating func restart() {
    held = HeldContents()
    needs = nil
  }

  /// An exchange has looked since these contents were gone.
  mutating func looked(for gone: Set<ContentHash>) { failures.looked(for: gone) }

  /// What a change names is worth another try, also if it was given up: the cloud names a version once more when its
  /// content is whole again.
  mutating func reconsider(_ changes: [CloudChange]) {
    for change in changes {
      guard case .version(let record) = change.item else { continue }
      for hash in record.contents { failures.retry(hash) }
    }
  }

  // MARK: What is needed

  /// The contents that the staged heads and the ancestors of conflicts need and that aren't here, and those that were
  /// asked for.
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

  /// What to download next, in this order, of what isn't in flight: bases first, for without them what is here already
  /// can't be kept.
  mutating func wanted(in storage: some DeviceStorage, downloading: Set<ContentHash>) throws -> [NeededContent] {
    let missing = try missing(in: storage)
    let here = held.hashes
    var asked = downloading.union(failures.gone)
    var wanted: [NeededContent] = []
    for content in held.all {
      guard let base = content.content.base, !here.contains(base), asked.insert(base).inserted else { continue }
      guard let root = missing.first(where: { $0.hash == content.root }) else { continue }
      // It is no part of the version: its progress says nothing of how far that is.
      wanted.append(NeededContent(hash: base, slot: root.slot, version: root.version, length: 0))
    }
    for need in missing where !here.contains(need.hash) && asked.insert(need.hash).inserted { wanted.append(need) }
    return wanted
  }

  /// Whatever is needed in the end, or as a base of what waits.
  mutating func wantedHashes(in storage: some DeviceStorage) throws -> Set<ContentHash> {
    let hashes = Set(try missing(in: storage).map(\.hash))
    return hashes.union(held.all.filter { hashes.contains($0.root) }.compactMap(\.content.base))
  }

  /// Lets go of what waits for a base and isn't needed.
  mutating func dropHeld(notNeededBy missing: [NeededContent]) { held.keepOnly(neededBy: Set(missing.map(\.hash))) }

  private mutating func need(
    _ slot: String, _ staged: StagedVersions, _ notDownloaded: [VersionRecord], _ list: inout NeedList, in storage: some DeviceStorage
  ) throws {
    let heads = try staged.heads(of: slot, in: storage)
    for id in heads {
      guard let record = staged.records[id] else { continue }
      // Of a conflict all is needed, or nobody could say what it is about.
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
    _ record: VersionRecord, isOptional: Bool = false, isOnRequest: Bool = false, _ list: inout NeedList, in storage: some DeviceStorage
  ) throws {
    if newlyAsked.contains(record.slot) {
      for hash in record.contents { failures.retry(hash) }
    }
    for part in try storage.parts(of: record) where !failures.givenUp.contains(part.hash) {
      guard try !storage.hasContent(part.hash), list.hashes.insert(part.hash).inserted else { continue }
      list.needs.append(
        NeededContent(hash: part.hash, slot: record.slot, version: record.id, length: part.length, isOnRequest: isOnRequest))
      if isOptional { optional.insert(part.hash) }
    }
  }

  /// Whether something of the slot that was asked for is still to come, as far as it is known.
  ///
  /// - Returns: True also while it has to be worked out what is needed.
  func isComing(_ slot: String, downloading: Set<ContentHash>, in storage: some DeviceStorage) throws -> Bool {
    guard let needs, !newlyAsked.contains(slot) else { return true }
    // By content: another slot may have asked for the same.
    let lacking = try storage.notDownloadedRecords().filter { $0.slot == slot }.flatMap(\.contents).filter { try !storage.hasContent($0) }
    let coming = Set(needs.map(\.hash)).union(downloading)
    return lacking.contains(where: coming.contains)
  }

  // MARK: What comes

  /// Takes the answer to a download.
  ///
  /// - Parameters:
  ///   - hash: What was asked for.
  ///   - content: What came; nil if the cloud doesn't have it.
  mutating func received(
    _ hash: ContentHash, _ content: EncodedContent?, in storage: inout some DeviceStorage
  ) throws -> DownloadLosses {
    var losses = DownloadLosses()
    // Meanwhile nobody may need it any more, or a page has come since and it isn't known yet.
    let isNeeded = needs?.contains { $0.hash == hash } == true || held.needs(hash)
    if let content, content.hash == hash, isNeeded || needs == nil {
      try take(content, &losses, in: &storage)
      return losses
    }
    guard isNeeded else { return losses }
    let isOptional = held.roots(of: hash).allSatisfy(optional.contains)
    // The content is gone because its version is replaced, most likely: the exchange says by what, and only then it is
    // asked for again.
    if content == nil, !isOptional {
      losses.isExchangeDue = true
      failures.isGone(hash)
    }
    failed(hash, atMost: content != nil ? Self.maximumDamaged : isOptional ? 1 : Self.maximumGone, &losses)
    return losses
  }

  /// Keeps a content, and those that waited for it.
  mutating func take(_ content: EncodedContent, _ losses: inout DownloadLosses, in storage: inout some DeviceStorage) throws {
    var ready = [content]
    while let content = ready.popLast() {
      // One that is damaged here is taken, too: what is a delta of it asks for it again.
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

  /// Takes what waited for a base that came another way: inside an answer, or because the game saved the very same
  /// bytes.
  mutating func takeHeld(_ losses: inout DownloadLosses, in storage: inout some DeviceStorage) throws {
    for waiting in held.all {
      guard let base = waiting.content.base, try storage.hasContent(base) else { continue }
      held.remove(waiting.content.hash)
      try take(waiting.content, &losses, in: &storage)
    }
  }

  /// Goes on without what needs this content in the end.
  mutating func giveUpNeeds(of hash: ContentHash, _ losses: inout DownloadLosses) {
    for root in held.roots(of: hash) {
      held.removeAll(neededBy: root)
      failures.giveUp(root)
      report(root, &losses)
    }
  }

  /// Counts a failure with a content, or with a base of one that is needed, and gives that up in the end.
  private mutating func failed(_ hash: ContentHash, atMost limit: Int, _ losses: inout DownloadLosses) {
    for root in held.roots(of: hash) {
      held.removeAll(neededBy: root)
      if failures.failed(root, atMost: limit) { report(root, &losses) }
    }
  }

  /// One damaged picture must not hold up everything else, but it is reported to the game.
  private func report(_ hash: ContentHash, _ losses: inout DownloadLosses) {
    if !optional.contains(hash) { losses.givenUp.append(hash) }
  }

  /// Whether a head lacks a content that was given up.
  func lacksContents(in storage: some DeviceStorage) throws -> Bool {
    let lacking = try failures.givenUp.filter { try !optional.contains($0) && !storage.hasContent($0) }
    guard !lacking.isEmpty else { return false }
    return try storage.slots().contains { slot in
      try storage.heads(of: slot).contains { try storage.version($0)?.record.contents.contains(where: lacking.contains) == true }
    }
  }
}

/// The needs in the making.
private struct NeedList {
  var needs: [NeededContent] = []
  var hashes: Set<ContentHash> = []
}

/// The versions that are staged. Read only where needs are worked out: a game that keeps back what comes may leave much
/// of it for long.
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

  /// The heads of a slot as they will be.
  func heads(of slot: String, in storage: some DeviceStorage) throws -> [VersionID] {
    var heads: [VersionID] = []
    for id in Set(try storage.heads(of: slot)).union(bySlot[slot] ?? []).sorted() where !covered.contains(id) {
      if try !storage.isCovered(id) { heads.append(id) }
    }
    return heads
  }
}
