/// How much of the outbox one exchange takes.
struct RequestLimits: Sendable {
  let cells: Int
  let versions: Int
  let bytes: Int
  /// Groups are sent one by one.
  let isSingle: Bool

  init(_ options: DeviceEngine.Options, isSingle: Bool) {
    (cells, versions, bytes) = (options.maximumCells, options.maximumVersions, options.maximumBytes)
    self.isSingle = isSingle
  }

  /// Returns the oldest of these groups that are sent together.
  ///
  /// - Parameters:
  ///   - groups: Oldest first.
  ///   - known: The records of their versions.
  /// - Returns: The first groups, as many as fit; the first one whatever its size.
  func fitting(_ groups: some Sequence<OutboxGroup>, _ known: [VersionID: VersionRecord]) -> [OutboxGroup] {
    fitting(groups) { $0.size(known) }
  }

  /// Does the same with sizes that are worked out one after the other, up to that of the first group that doesn't fit.
  func fitting(
    _ groups: some Sequence<OutboxGroup>, size: (OutboxGroup) throws -> Int
  ) rethrows -> [OutboxGroup] {
    var selected: [OutboxGroup] = []
    var (cells, versions, bytes) = (0, 0, 0)
    for group in groups {
      cells += group.cells.count
      versions += group.versions.count
      bytes += try size(group)
      let fits = cells <= self.cells && versions <= self.versions && bytes <= self.bytes
      guard selected.isEmpty || (fits && !isSingle) else { break }
      selected.append(group)
    }
    return selected
  }
}

extension OutboxGroup {
  /// Returns the approximate size of the group in a message, in bytes.
  func size(_ known: [VersionID: VersionRecord]) -> Int {
    cells.reduce(0) { $0 + $1.size } + versions.reduce(0) { $0 + (known[$1]?.size ?? 0) }
  }
}
