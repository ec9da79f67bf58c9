/// The effect of a request's items, worked out before anything is written, so that a group is accepted as a whole or
/// not at all.
struct Plan {
  /// Ordered so that each one's base comes before it.
  var contents: [EncodedContent]
  /// The resulting cells: joined with what the cloud has, one for each key, sorted.
  var cells: [CellUpdate]
  /// One for each id, in the order of the request.
  var versions: [VersionRecord]
  /// The versions as the device sent them.
  var sent: [VersionID: VersionRecord]

  /// Why nothing is accepted.
  struct Refused: Error {
    var outcome: ExchangeOutcome
  }

  static func make(for request: ExchangeRequest, in storage: some ContainerStorage) throws -> Result<Plan, Refused> {
    var refusals: [Refusal] = []
    let cells = try joinedCells(request.cells, &refusals, in: storage)
    let versions = try distinctVersions(request.versions, &refusals, in: storage)
    guard refusals.isEmpty else { return .failure(Refused(outcome: .refused(refusals))) }

    var missing: Set<ContentHash> = []
    let contents = try placeableContents(request.contents, &missing, in: storage)
    let arriving = Set(contents.map(\.hash))
    var covered: Set<VersionID> = []
    for version in versions { covered.formUnion(version.covers) }
    for version in versions where !covered.contains(version.id) {
      // A version that is replaced already never becomes visible, and may arrive without contents.
      if try storage.isCovered(version.id) { continue }
      for hash in version.contents where !arriving.contains(hash) {
        if try !storage.hasContent(hash) { missing.insert(hash) }
      }
    }
    guard missing.isEmpty || storage.faults.acceptsWithoutContents else {
      return .failure(Refused(outcome: .missing(missing.sorted())))
    }
    let sent = Dictionary(versions.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    return .success(Plan(contents: contents, cells: cells, versions: versions, sent: sent))
  }

  private static func joinedCells(
    _ updates: [CellUpdate], _ refusals: inout [Refusal], in storage: some ContainerStorage
  ) throws -> [CellUpdate] {
    var valid: [CellUpdate] = []
    for update in updates {
      if let refusal = ExchangeRules.objection(to: update) { refusals.append(refusal) } else { valid.append(update) }
    }
    var joined: [CellUpdate] = []
    for var update in CellUpdate.joined(valid, []) {
      if let stored = try storage.cell(update.key) {
        update.state = stored.update.state.joined(with: update.state, under: storage.faults)
      }
      // A set or a counter may exceed the limit only here, where the parts are joined.
      if let refusal = ExchangeRules.objection(to: update) { refusals.append(refusal) }
      joined.append(update)
    }
    return joined
  }

  private static func distinctVersions(
    _ versions: [VersionRecord], _ refusals: inout [Refusal], in storage: some ContainerStorage
  ) throws -> [VersionRecord] {
    var distinct: [VersionRecord] = []
    var seen: [VersionID: VersionRecord] = [:]
    for var version in versions {
      func refuse(_ message: String) {
        refusals.append(Refusal(item: ExchangeRules.item(version.id), reason: .invalid, message: message))
      }
      version.covers = Set(version.covers).sorted()
      if let refusal = ExchangeRules.objection(to: version) {
        refusals.append(refusal)
        continue
      }
      if let twin = seen[version.id] {
        if twin != version { refuse("the request contains two different versions with this id") }
        continue
      }
      if let stored = try storage.version(version.id)?.record, !stored.isSame(as: version) {
        refuse("another version has this id")
        continue
      }
      if let other = try foreignCover(of: version, in: storage) {
        refuse("it replaces \(other), which belongs to another slot")
        continue
      }
      seen[version.id] = version
      distinct.append(version)
    }
    return distinct
  }

  private static func foreignCover(of version: VersionRecord, in storage: some ContainerStorage) throws -> VersionID? {
    for id in version.covers {
      if let slot = try storage.slot(of: id), slot != version.slot { return id }
    }
    return nil
  }

  /// Returns the contents that are new, each after its base, and adds bases that exist nowhere to `missing`.
  private static func placeableContents(
    _ contents: [EncodedContent], _ missing: inout Set<ContentHash>, in storage: some ContainerStorage
  ) throws -> [EncodedContent] {
    var placed: [EncodedContent] = []
    var here: Set<ContentHash> = []
    // Those whose base isn't here yet, by that base.
    var waiting: [ContentHash: [EncodedContent]] = [:]
    for content in contents where try !storage.hasContent(content.hash) {
      // The replacement of a damaged content must not have a base, least of all one that depends on the damaged one.
      if content.base != nil, try storage.isSuspect(content.hash) {
        missing.insert(content.hash)
        continue
      }
      if let base = content.base, !here.contains(base), try !storage.hasContent(base) {
        waiting[base, default: []].append(content)
        continue
      }
      var ready = [content]
      while let next = ready.popLast() {
        guard here.insert(next.hash).inserted else { continue }
        placed.append(next)
        // In the order in which they came.
        ready += (waiting.removeValue(forKey: next.hash) ?? []).reversed()
      }
    }
    // Either a base that the cloud has lost, or bases that form a cycle: in both cases the device sends the content in
    // full.
    missing.formUnion(waiting.keys)
    return placed
  }
}
