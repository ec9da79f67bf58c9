#if Cloud
import KeepsakeReplication

/// The unfinished uploads, and what they take of the disk. Files are the business of ``PartialUploads``.
struct UploadTable: Sendable {
  typealias Key = PartialUploads.Key

  struct Entry: Sendable {
    /// Part of the file's name. An upload that begins anew gets a new file: the removal of the old one can't hit it.
    let file: UInt64
    var total: Int
    var received = 0
    var touchedMilliseconds: Int64
    /// The latest request that wrote, or writes.
    var lastWriter: UInt64 = 0
    /// The request that writes. A later one takes over from one whose connection may have died unnoticed.
    var writer: UInt64?
    /// All of it has arrived and is being checked.
    var isEnding = false
  }

  /// All that is used of the budget.
  var used = UploadBudget(bytes: 0, files: 0)
  /// Kept per container, so that one player's load doesn't affect the others.
  private(set) var entries: [ContainerID: [Key: Entry]] = [:]
  var lastArrival: UInt64 = 0
  var sweptMilliseconds: Int64?

  subscript(_ key: Key) -> Entry? {
    get { entries[key.container]?[key] }
    set {
      let old = self[key]
      used.bytes += Int64((newValue?.received ?? 0) - (old?.received ?? 0))
      used.files += (newValue == nil ? 0 : 1) - (old == nil ? 0 : 1)
      entries[key.container, default: [:]][key] = newValue
      if entries[key.container]?.isEmpty == true { entries[key.container] = nil }
    }
  }

  /// Evicts the uploads of a player that have been idle longest, if there would be too many.
  ///
  /// - Returns: Those that were evicted; nil if the next one to evict is being written, or hasn't been idle for long
  ///   enough.
  mutating func makeRoom(for bytes: Int, of container: ContainerID, now: Int64) -> [(key: Key, entry: Entry)]? {
    var own = Self.longestIdleFirst(entries[container] ?? [:])[...]
    var evicted: [(key: Key, entry: Entry)] = []
    while own.count >= ServerLimits.uploadsPerPlayer
      || own.reduce(bytes, { $0 + $1.entry.total }) > ServerLimits.uploadBytesPerPlayer
    {
      guard let oldest = own.popFirst(), oldest.entry.writer == nil,
        now - oldest.entry.touchedMilliseconds >= ServerLimits.uploadIdleMilliseconds
      else { return nil }
      evicted.append(oldest)
    }
    evict(evicted)
    return evicted
  }

  /// Evicts the uploads of all players that have been idle longest, if there would be too much of all together.
  ///
  /// - Parameter own: An upload that stays.
  /// - Returns: Those that were evicted; nil if that isn't enough, because the others are being written, or were a
  ///   moment ago.
  mutating func makeRoomForAll(
    _ more: UploadBudget, within budget: UploadBudget, besides own: Key?, now: Int64
  ) -> [(key: Key, entry: Entry)]? {
    var left = used + more
    if left.fits(in: budget) { return [] }
    var evicted: [(key: Key, entry: Entry)] = []
    for next in Self.longestIdleFirst(entries.values.joined()) where !left.fits(in: budget.afterEviction) {
      guard now - next.entry.touchedMilliseconds >= ServerLimits.uploadPauseMilliseconds else { break }
      guard next.entry.writer == nil, next.key != own else { continue }
      evicted.append(next)
      left.bytes -= Int64(next.entry.received)
      left.files -= 1
    }
    guard left.fits(in: budget) else { return nil }
    evict(evicted)
    return evicted
  }

  private mutating func evict(_ evicted: [(key: Key, entry: Entry)]) {
    for (key, _) in evicted { self[key] = nil }
  }

  private static func longestIdleFirst(
    _ entries: some Sequence<(key: Key, value: Entry)>
  ) -> [(key: Key, entry: Entry)] {
    entries.map { (key: $0.key, entry: $0.value) }.sorted {
      ($0.entry.touchedMilliseconds, $0.key.frame) < ($1.entry.touchedMilliseconds, $1.key.frame)
    }
  }
}
#endif
