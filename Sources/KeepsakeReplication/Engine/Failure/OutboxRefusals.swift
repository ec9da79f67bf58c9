/// What the cloud refuses of the outbox, and what of that is sent again because there may be room for it by now.
struct OutboxRefusals: Sendable {
  /// As of the last look at the outbox, for the status.
  var current: [EngineRefusal] = []
  /// Groups that the cloud refused and may accept later, and that are being sent once more.
  private var retrying: Set<Int64> = []
  /// When that was last tried; nil if it never was.
  private var triedMilliseconds: Int64?
  /// The room that the cloud last reported.
  private var knownUse: QuotaUse?
  /// Refusals of what the cloud may accept later, as far as they were reported to the game.
  private var reported: Set<Reported> = []

  private struct Reported: Hashable {
    var item: String
    var reason: Refusal.Reason
  }

  /// Whether something waits for room.
  var lacksRoom: Bool { current.contains { $0.refusal.reason == .quota } }

  /// Whether something has been refused for lack of room since the last reset.
  var hasTried: Bool { triedMilliseconds != nil }

  /// Returns whether a group was refused for lack of room.
  static func lacksRoom(_ group: OutboxGroup) -> Bool { group.refusals.contains { $0.reason == .quota } }

  /// Returns whether a group was refused because the cloud takes nothing of the device.
  static func isOfAll(_ group: OutboxGroup) -> Bool { group.refusals.contains(where: \.reason.isOfAll) }

  /// Returns whether a group may be sent: the cloud didn't refuse it, or it is tried once more.
  func isSendable(_ group: OutboxGroup) -> Bool { group.refusals.isEmpty || retrying.contains(group.id) }

  /// Sends a refused group again. It keeps its refusals until it is accepted, so that repeated attempts don't make the
  /// status come and go.
  mutating func retry(_ group: OutboxGroup, now: Int64) {
    retrying.insert(group.id)
    triedMilliseconds = now
  }

  /// Returns whether it is time to find out if there is room, though nothing says so: another device of the player may
  /// have made some, or the operator may have raised the quota. A clock that was set back counts as time elapsed.
  ///
  /// - Parameters:
  ///   - now: The device's clock, in milliseconds.
  ///   - interval: How long a refusal holds, in milliseconds.
  func isSecondTryDue(now: Int64, after interval: Int64) -> Bool {
    guard let tried = triedMilliseconds else { return false }
    return tried > now || Int128(now) - Int128(tried) >= Int128(interval)
  }

  /// Records how much room the cloud reports.
  ///
  /// - Returns: Whether that is news. The same numbers again aren't, or a cloud whose numbers contradict its refusals
  ///   would be asked endlessly.
  mutating func learned(_ use: QuotaUse) -> Bool {
    guard use != knownUse else { return false }
    knownUse = use
    return true
  }

  /// Handles the refusal of a group.
  ///
  /// - Returns: The refusals that are news for the game: one that may end by itself is reported once.
  mutating func refused(_ group: OutboxGroup, now: Int64) -> [Refusal] {
    retrying.remove(group.id)
    if Self.lacksRoom(group) { triedMilliseconds = now }
    return group.refusals.filter { isNews($0) }
  }

  /// Returns whether the game hasn't been told of a refusal yet.
  mutating func isNews(_ refusal: Refusal) -> Bool {
    !refusal.reason.isTemporary
      || reported.insert(Reported(item: refusal.item, reason: refusal.reason)).inserted
  }

  /// Starts afresh: the cause of a refusal may be gone. The status stays as it is until the next look at the outbox.
  mutating func reset() { self = OutboxRefusals(current: current) }
}

extension Refusal.Reason {
  /// Whether what was refused is sent again without the player's doing.
  fileprivate var isTemporary: Bool { self == .quota || isOfAll }
}
