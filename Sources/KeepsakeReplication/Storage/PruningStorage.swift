/// What pruning reads and writes of one container.
package protocol PruningStorage {
  /// Returns the names of slots that have versions, sorted by their bytes.
  ///
  /// - Parameters:
  ///   - slot: The one after which they begin; nil for the first.
  ///   - limit: How many at most.
  func slots(after slot: String?, limit: Int) throws -> [String]
  /// Returns everything that is kept of a slot's versions.
  func history(of slot: String) throws -> SlotHistory
  /// Returns what is known of every device that wasn't removed.
  func visits() throws -> [DeviceID: DeviceVisits]
  /// Returns where the container stood in the past, in the order of time.
  func pastPositions() throws -> [PastPosition]

  /// Removes a covered version with its contents. It stays covered.
  mutating func removeVersion(_ id: VersionID) throws
  /// Replaces what a version's record covers. This isn't a change of the container: its seq stays.
  mutating func setCovers(_ covers: [VersionID], of id: VersionID) throws
  /// Forgets that ids were covered of which there is no version.
  mutating func forgetCovered(_ ids: Set<VersionID>) throws
  mutating func recordPosition(_ position: PastPosition) throws
  /// Forgets the positions of these times.
  mutating func forgetPositions(_ milliseconds: Set<Int64>) throws
  /// Forgets the marks of seqs up to this one, but not those of newest changes of cells and versions.
  ///
  /// - Parameter kept: Where marks stay besides.
  mutating func forgetMarks(through seq: UInt64, butNot kept: [ClosedRange<UInt64>]) throws
}

/// What is kept of a slot's versions.
package struct SlotHistory: Sendable {
  package var versions: [VersionID: SequencedVersion] = [:]
  /// Those that aren't heads.
  package var covered: Set<VersionID> = []
  /// Those that still hold their contents.
  package var holding: Set<VersionID> = []
  /// The ids of removed versions, of this slot and of others. Any other id of which there is no version was never
  /// accepted: it was only covered.
  package var pruned: Set<VersionID> = []

  package init() {}
}

/// What is known of where a device is.
package struct DeviceVisits: Hashable, Sendable {
  /// How far it has come by its latest report; 0 if it never reported, or starts over.
  package var reached: UInt64
  /// When it was seen first and last, in milliseconds since 1970; nil if that isn't known. The last time may be
  /// somewhat later than recorded.
  package var firstMilliseconds: Int64?
  package var lastMilliseconds: Int64?

  package init(reached: UInt64, firstMilliseconds: Int64? = nil, lastMilliseconds: Int64? = nil) {
    self.reached = reached
    self.firstMilliseconds = firstMilliseconds
    self.lastMilliseconds = lastMilliseconds
  }
}

/// The seq that a container had at a time.
package struct PastPosition: Hashable, Sendable {
  package var milliseconds: Int64
  package var seq: UInt64
  /// Where its devices may have been then.
  package var devices: Set<DeviceRange>

  package init(milliseconds: Int64, seq: UInt64, devices: Set<DeviceRange> = []) {
    self.milliseconds = milliseconds
    self.seq = seq
    self.devices = devices
  }
}

/// The changes that a device may have received as the last ones.
package struct DeviceRange: Hashable, Comparable, Sendable {
  /// It has received everything up to here.
  package var from: UInt64
  /// It has received nothing after this.
  package var through: UInt64

  package init(from: UInt64, through: UInt64) { (self.from, self.through) = (from, through) }

  package static func < (left: Self, right: Self) -> Bool {
    (left.from, left.through) < (right.from, right.through)
  }
}

// A folder that devices share knows neither devices nor times, and prunes nothing.
extension PruningStorage {
  package func slots(after slot: String?, limit: Int) -> [String] { [] }
  package func history(of slot: String) -> SlotHistory { SlotHistory() }
  package func visits() -> [DeviceID: DeviceVisits] { [:] }
  package func pastPositions() -> [PastPosition] { [] }
  package mutating func removeVersion(_ id: VersionID) {}
  package mutating func setCovers(_ covers: [VersionID], of id: VersionID) {}
  package mutating func forgetCovered(_ ids: Set<VersionID>) {}
  package mutating func recordPosition(_ position: PastPosition) {}
  package mutating func forgetPositions(_ milliseconds: Set<Int64>) {}
  package mutating func forgetMarks(through seq: UInt64, butNot kept: [ClosedRange<UInt64>]) {}
}
