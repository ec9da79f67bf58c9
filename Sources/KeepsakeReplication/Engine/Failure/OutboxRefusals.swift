/// What of the outbox the cloud doesn't take, and what of that is tried again because there may be room for it by now.
struct OutboxRefusals: Sendable {
  /// As the outbox was last looked at, for the status.
  var current: [EngineRefusal] = []
  /// Groups that the cloud refused for want of room, and that are sent once more.
  private var retrying: Set<Int64> = []
  /// When that was last tried; nil if it never was.
  private var triedMilliseconds: Int64?
  /// What the cloud said of its room when it last decided whether to try.
  private var knownUse: QuotaUse?
  /// Items that were reported to the game as refused for want of room.
  private var reported: Set<String> = []

  /// Something waits for room.
  var lacksRoom: Bool { current.contains { $0.refusal.reason == .quota } }

  /// Something has been refused for want of room since the last reset.
  var hasTried: Bool { triedMilliseconds != nil }

  /// Whether a group was refused for want of room.
  static func lacksRoom(_ group: OutboxGroup) -> Bool { group.refusals.contains { $0.reason == .quota } }

  /// Whether a group may be sent: the cloud didn't refuse it, or it is tried once more.
  func isSendable(_ group: OutboxGroup) -> Bool { group.refusals.isEmpty || retrying.contains(group.id) }

  /// Sends a refused group again. It keeps its refusals until it is accepted, and so the status does: what is tried
  /// again and again doesn't come and go there.
  mutating func retry(_ group: OutboxGroup, now: Int64) {
    retrying.insert(group.id)
    triedMilliseconds = now
  }

  /// Whether it is time to find out if there is room by now, though nothing says so: the player of another device may
  /// have made some, or the operator has raised the quota. A clock that was turned back counts as time gone by.
  ///
  /// - Parameters:
  ///   - now: The device's clock, in milliseconds.
  ///   - interval: How long a refusal holds, in milliseconds.
  func isSecondTryDue(now: Int64, after interval: Int64) -> Bool {
    guard let tried = triedMilliseconds else { return false }
    return tried > now || Int128(now) - Int128(tried) >= Int128(interval)
  }

  /// The cloud says how much room there is.
  ///
  /// - Returns: Whether that is news. The same numbers twice aren't, or a cloud whose numbers contradict its refusals
  ///   would be asked without end.
  mutating func learned(_ use: QuotaUse) -> Bool {
    guard use != knownUse else { return false }
    knownUse = use
    return true
  }

  /// A group was refused.
  ///
  /// - Returns: The refusals that are news for the game: what is tried again and again for want of room is reported
  ///   once.
  mutating func refused(_ group: OutboxGroup, now: Int64) -> [Refusal] {
    retrying.remove(group.id)
    if Self.lacksRoom(group) { triedMilliseconds = now }
    return group.refusals.filter { $0.reason != .quota || reported.insert($0.item).inserted }
  }

  /// A new start: what was refused may have lost its cause. What the status shows stays until the outbox is looked at.
  mutating func reset() { self = OutboxRefusals(current: current) }
}
