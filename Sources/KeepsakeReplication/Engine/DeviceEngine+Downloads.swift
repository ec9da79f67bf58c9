// The contents that staged versions need.
extension DeviceEngine {
  /// The contents that the staged heads, and the ancestors of conflicts, need and that aren't here; and those that were asked for.
  mutating func missingContents(in storage: some DeviceStorage) throws -> [Need] {
    if let needs {
      let left = try needs.filter { try !givenUp.contains($0.hash) && !storage.hasContent($0.hash) }
      self.needs = left
      return left
    }
    var records: [VersionID: VersionRecord] = [:]
    var covered: Set<VersionID> = []
    var bySlot: [String: Set<VersionID>] = [:]
    // Read only here: a game that keeps back what comes may leave much of it for long.
    for change in try storage.staged() {
      guard case .version(let record) = change.item else { continue }
      records[record.id] = record
      covered.formUnion(record.covers)
      bySlot[record.slot, default: []].insert(record.id)
    }
    var needed: [Need] = []
    var listed: Set<ContentHash> = []
    func need(_ record: VersionRecord, optionally: Bool = false, isAsked: Bool = false) throws {
      if unanswered.contains(record.slot) {
        for hash in record.contents where givenUp.remove(hash) != nil { troubles[hash] = nil }
      }
      let parts = try storage.parts(of: record)
      for part in parts where !givenUp.contains(part.hash) {
        guard try !storage.hasContent(part.hash), listed.insert(part.hash).inserted else { continue }
        needed.append(Need(hash: part.hash, slot: record.slot, version: record.id, length: part.length, isAsked: isAsked))
        if optionally { optional.insert(part.hash) }
      }
    }
    optional = []
    stagedSlots = Set(bySlot.keys)
    let notDownloaded = try notDownloadedRecords(in: storage).filter { !covered.contains($0.id) }
    hasNotDownloaded = !notDownloaded.isEmpty
    for slot in bySlot.keys.sorted() {
      var heads: [VersionID] = []
      for id in Set(try storage.heads(of: slot)).union(bySlot[slot] ?? []).sorted() where !covered.contains(id) {
        if try !storage.isCovered(id) { heads.append(id) }
      }
      for id in heads {
        guard let record = records[id] else { continue }
        // Of a conflict all is needed, or nobody could say what it is about.
        if try heads.count > 1 || !comesWhenAsked(record, in: storage) { try need(record) }
      }
      guard heads.count > 1 else { continue }
      for record in notDownloaded where heads.contains(record.id) { try need(record) }
      let shared = storage.sharedRecords()
      let lookup = { (id: VersionID) in try records[id] ?? shared(id) }
      for id in try Resolution.mergeAncestors(of: heads, record: lookup).all {
        if let record = try lookup(id) { try need(record, optionally: true) }
      }
    }
    for record in notDownloaded {
      if try storage.heads(of: record.slot).count > 1 || !comesWhenAsked(record, in: storage) { try need(record, isAsked: true) }
    }
    unanswered = []
    needs = needed
    held.removeAll { !listed.contains($0.root) }
    return needed
  }

  /// What to ask for next, in this order, of what isn't under way: bases first, for without them what is here already can't be kept.
  mutating func wantedDownloads(in storage: some DeviceStorage) throws -> [Need] {
    let missing = try missingContents(in: storage)
    let here = Set(held.map(\.content.hash))
    var asked = Set(transfers.filter { !$0.isUpload }.map(\.hash)).union(gone)
    var wanted: [Need] = []
    for content in held {
      guard let base = content.content.base, !here.contains(base), asked.insert(base).inserted else { continue }
      guard let root = missing.first(where: { $0.hash == content.root }) else { continue }
      // It is no part of the version: what comes of it says nothing of how far that is.
      wanted.append(Need(hash: base, slot: root.slot, version: root.version, length: 0))
    }
    for need in missing where !here.contains(need.hash) && asked.insert(need.hash).inserted { wanted.append(need) }
    return wanted
  }

  mutating func downloaded(
    _ hash: ContentHash, _ content: EncodedContent?, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage
  ) throws {
    // Meanwhile nobody may need it any more, or a page has come since and it isn't known yet.
    let isNeeded = needs?.contains { $0.hash == hash } == true || held.contains { $0.content.base == hash }
    if let content, content.hash == hash, isNeeded || needs == nil {
      return try take(content, &effects, in: &storage)
    }
    guard isNeeded else { return }
    let isOptional = roots(of: hash).allSatisfy(optional.contains)
    // The content went because its version is replaced, most likely: the exchange tells by what, and only then it is asked for again.
    if content == nil, !isOptional {
      exchangeDue = true
      gone.insert(hash)
    }
    failedToGet(hash, atMost: content != nil ? Self.maximumDamaged : isOptional ? 1 : Self.maximumGone, &effects)
  }

  /// Keeps a content, and those that waited for it.
  mutating func take(
    _ content: EncodedContent, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    var ready = [content]
    while let content = ready.popLast() {
      // A damaged one is here, too: what leans on it asks for it again.
      guard try !storage.hasContent(content.hash) || held.contains(where: { $0.content.base == content.hash }) else { continue }
      switch try storage.receiveContent(content) {
      case .stored:
        let depth = try content.base.map { (try storage.cloudDepth(of: $0) ?? options.maximumDepth) + 1 } ?? 0
        try storage.setCloudDepth(depth, of: content.hash)
        ready += held.filter { $0.content.base == content.hash }.map(\.content)
        held.removeAll { $0.content.base == content.hash }
      case .needsBase(let base):
        if try storage.hasContent(base) { failedToGet(content.hash, atMost: Self.maximumDamaged, &effects) }
        if !givenUp.contains(content.hash) { hold(content, &effects) }
      case .damaged:
        let before = givenUp
        failedToGet(content.hash, atMost: Self.maximumDamaged, &effects)
        if givenUp != before { report(damaged: content.hash) }
      }
    }
  }

  /// A base may have come another way: inside an answer, or because the game saved the very same bytes.
  mutating func takeHeld(_ effects: inout [EngineEffect], in storage: inout some DeviceStorage) throws {
    for waiting in held {
      guard let base = waiting.content.base, try storage.hasContent(base) else { continue }
      held.removeAll { $0.content.hash == waiting.content.hash }
      try take(waiting.content, &effects, in: &storage)
    }
  }

  private mutating func hold(_ content: EncodedContent, _ effects: inout [EngineEffect]) {
    guard let base = content.base, !held.contains(where: { $0.content.hash == content.hash }) else { return }
    let leaning = held.filter { $0.content.base == content.hash }.max { $0.depth < $1.depth }
    let (root, depth) = (leaning?.root ?? content.hash, (leaning?.depth ?? 0) + 1)
    // No sender makes chains like these.
    if depth > Self.maximumChain || leads(from: base, to: content.hash) {
      giveUpWhatNeeds(content.hash, &effects)
    } else {
      held.append(HeldContent(content: content, root: root, depth: depth))
    }
  }

  /// Whether a content leans, over what is held, on another one.
  private func leads(from hash: ContentHash, to other: ContentHash) -> Bool {
    let bases = Dictionary(held.map { ($0.content.hash, $0.content.base) }, uniquingKeysWith: { first, _ in first })
    var next: ContentHash? = hash
    // Whoever goes on for longer than there are contents goes in a circle.
    for _ in 0...held.count + 1 {
      guard let hash = next else { return false }
      if hash == other { return true }
      next = bases[hash] ?? nil
    }
    return true
  }

  /// What is needed in the end of what leans on this; itself, if nothing does.
  private func roots(of hash: ContentHash) -> [ContentHash] {
    let roots = Set(held.filter { $0.content.base == hash }.map(\.root)).sorted()
    return roots.isEmpty ? [hash] : roots
  }

  /// Counts a failure with a content, or with a base of one that is wanted, and gives that up in the end.
  private mutating func failedToGet(_ hash: ContentHash, atMost limit: Int, _ effects: inout [EngineEffect]) {
    for wanted in roots(of: hash) {
      held.removeAll { $0.root == wanted }
      let count = (troubles[wanted] ?? 0) + 1
      troubles[wanted] = count
      if count >= limit { giveUp(wanted, &effects) }
    }
  }

  mutating func giveUpWhatNeeds(_ hash: ContentHash, _ effects: inout [EngineEffect]) {
    for wanted in roots(of: hash) {
      held.removeAll { $0.root == wanted }
      giveUp(wanted, &effects)
    }
  }

  /// Whether something stands without a content that was given up.
  func lacksContents(in storage: some DeviceStorage) throws -> Bool {
    let lacking = try givenUp.filter { try !optional.contains($0) && !storage.hasContent($0) }
    guard !lacking.isEmpty else { return false }
    return try storage.slots().contains { slot in
      try storage.heads(of: slot).contains { try storage.version($0)?.record.contents.contains(where: lacking.contains) == true }
    }
  }

  /// Goes on without a content: one damaged picture must not hold up everything else.
  private mutating func giveUp(_ hash: ContentHash, _ effects: inout [EngineEffect]) {
    givenUp.insert(hash)
    if !optional.contains(hash) { effects.append(.notify(.damaged(hash))) }
  }
}
