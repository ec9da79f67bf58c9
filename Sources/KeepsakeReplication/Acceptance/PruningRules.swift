/// When a cloud prunes what was replaced.
package struct PruningRules: Hashable, Sendable {
  private static let day: Int64 = 86_400_000

  /// How long a version is kept whole after it was replaced: a store that is set back to a backup of that time, or a
  /// copy, continues as if nothing was pruned.
  package var windowMilliseconds = 4 * day
  /// How long ids of pruned versions, and marks, are remembered.
  package var rememberedMilliseconds = 90 * day
  /// How long after its last recorded visit a device may still have received something: visits are recorded once a
  /// minute, and an event stream delivers between them.
  package var lateMilliseconds: Int64 = 3_600_000
  /// The least time between two recorded positions of a container.
  package var stepMilliseconds: Int64 = 20 * 3_600_000
  /// Which replaced versions are kept whole however old they are; nil for none.
  package var history: HistoryRules? = .standard

  package init() {}

  /// When room is needed: everything goes that no device needs to continue.
  static func forRoom() -> PruningRules {
    var rules = PruningRules()
    (rules.windowMilliseconds, rules.history) = (0, nil)
    return rules
  }

  // Limits of one step, which is one decision: some ten milliseconds of work.
  package static let slotsAtOnce = 16
  package static let versionsAtOnce = 1_024
  package static let forgottenAtOnce = 4_096
  /// The most ids in `covers` of a version that inherits them: 300 KB of JSON. A version beside one that has as many
  /// stays.
  static let maximumCovers = 8_192
}

/// Where the container stood, and where its devices may be.
struct PruningTimes {
  /// Replaced up to this seq means replaced longer than the window ago.
  let settled: UInt64
  /// What happened up to this seq isn't remembered any more, unless a device needs it.
  let forgotten: UInt64
  /// Where the devices may be now, and where they may have been within the window: a store may be set back to that.
  let devices: Set<DeviceRange>
  private let former: Set<DeviceRange>
  /// How far those that have never reported may have come that weren't seen for as long as is remembered; all of it if
  /// others were seen since. What they have got may come from before it was pruned, and they don't know yet by what it
  /// was replaced.
  private let newcomers: UInt64

  init(
    _ rules: PruningRules, now: Int64, position: UInt64, past: [PastPosition], visits: [DeviceID: DeviceVisits]
  ) {
    func earliest(at time: Int64) -> UInt64 { past.last { $0.milliseconds <= time }?.seq ?? 0 }
    func latest(at time: Int64) -> UInt64 { past.first { $0.milliseconds > time }?.seq ?? position }
    let windowStart = now.addingClamped(-rules.windowMilliseconds)
    let hasWindow = rules.windowMilliseconds > 0
    settled = hasWindow ? earliest(at: windowStart) : position
    let rememberedSince = now.addingClamped(-rules.rememberedMilliseconds)
    forgotten = earliest(at: rememberedSince)
    func range(of visits: DeviceVisits) -> DeviceRange {
      // One that hasn't reported yet can't have anything from before it was first seen.
      let first = visits.firstMilliseconds.map { earliest(at: $0.addingClamped(-1)) } ?? 0
      let from = visits.reached > 0 ? visits.reached : first
      let through = visits.lastMilliseconds.map { latest(at: $0.addingClamped(rules.lateMilliseconds)) } ?? position
      return DeviceRange(from: from, through: max(from, through))
    }
    devices = Set(visits.values.map(range))
    newcomers = visits.values.filter { $0.reached == 0 }.reduce(0) { through, newcomer in
      let isRecent = newcomer.lastMilliseconds.map { $0 > rememberedSince } ?? true
      return isRecent ? .max : max(through, range(of: newcomer).through)
    }
    // From the last time before the window on: what was replaced after that isn't pruned anyway.
    let begin = past.lastIndex { $0.milliseconds <= windowStart } ?? 0
    former = hasWindow ? past[begin...].reduce(into: []) { $0.formUnion($1.devices) } : []
  }

  /// Whether a version may have been a head, or have arrived, where some device may be.
  ///
  /// - Parameters:
  ///   - accepted: The seq with which it was accepted.
  ///   - replaced: The seq with which it was replaced, or a later one.
  func mayBeNeeded(accepted: UInt64, replaced: UInt64) -> Bool {
    [devices, former].contains { ranges in
      ranges.contains { $0.from < max(replaced, accepted) && accepted <= $0.through }
    }
  }

  /// Whether the id of a pruned version that was replaced with this seq may be forgotten.
  func isForgotten(_ replaced: UInt64) -> Bool { replaced <= forgotten && replaced > newcomers }

  /// Whether a device may have received one of two changes and not the other, or a store may be set back to such a
  /// state.
  func separate(_ earlier: UInt64, _ later: UInt64) -> Bool {
    later > forgotten || devices.contains { $0.from < later && earlier <= $0.through }
  }
}
