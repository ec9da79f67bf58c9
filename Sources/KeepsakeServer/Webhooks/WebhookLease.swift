#if Cloud
import Foundation
import KeepsakeReplication

/// Whether this server is the one that delivers an endpoint's events, of those with the same database: a pure value.
///
/// The holder says again and again that it is there, by a claim that counts up. Another one takes over after it has seen
/// the same claim for as long as a holder may be silent, and the holder sends nothing any more some time before that: so
/// what is on its way has ended. Each measures time by itself, and no clock is compared with another's.
struct WebhookLease: Sendable {
  enum Step: Sendable {
    case nothing
    /// Say that it is still held.
    case renew
    /// Look at the claim.
    case look
  }
  /// Another one after each start.
  let holder: Data
  private let limits: WebhookLimits
  /// When it was taken, and when what was said last was begun to be said; nil if it isn't held.
  private(set) var taken: Int64?
  private var said: Int64 = 0
  private var beat: Int64 = 0
  /// The claim of another one, since when it is the same.
  private var seen: (claim: WebhookClaim, since: Int64)?
  private var looksAt: Int64?

  init(_ limits: WebhookLimits, holder: Data) { (self.limits, self.holder) = (limits, holder) }

  var isHeld: Bool { taken != nil }

  /// Whether what is sent now has ended before another one may take over.
  func maySend(now: Int64) -> Bool {
    let margin = Int64(limits.answerSeconds) * 1_000 + limits.claimMilliseconds
    return isHeld && now.addingClamped(margin) <= said.addingClamped(limits.leaseMilliseconds)
  }

  func step(now: Int64) -> Step {
    if isHeld { return now >= said.addingClamped(limits.claimMilliseconds) ? .renew : .nothing }
    return now >= looksAt ?? now ? .look : .nothing
  }

  /// When there is something to do.
  func wakeMilliseconds(now: Int64) -> Int64 {
    isHeld ? said.addingClamped(limits.claimMilliseconds) : looksAt ?? now
  }

  /// Takes what another one has said last; nil if nobody ever has.
  ///
  /// - Returns: Whether to take over.
  mutating func looked(at claim: WebhookClaim?, now: Int64) -> Bool {
    looksAt = now.addingClamped(limits.claimMilliseconds)
    guard let claim, !claim.holder.isEmpty else { return true }
    // What it reports changes the count, too.
    if seen?.claim.holder != claim.holder || seen?.claim.beat != claim.beat { seen = (claim, now) }
    return now >= (seen?.since ?? now).addingClamped(limits.leaseMilliseconds)
  }

  /// - Parameters:
  ///   - beat: What the claim has counted up to.
  ///   - now: When it was begun to be said.
  mutating func took(_ beat: Int64 = 0, now: Int64) { (taken, said, seen, self.beat) = (now, now, nil, beat) }

  /// - Returns: Whether it is the claim that it was; false if the database was set back since.
  mutating func renewed(_ beat: Int64, now: Int64) -> Bool {
    said = now
    defer { self.beat = beat }
    return beat > self.beat
  }

  /// Notes that another one holds it, or may.
  ///
  /// - Parameter pause: For how long it is left to others.
  mutating func lost(now: Int64, pause: Int64 = 0) {
    (taken, seen) = (nil, nil)
    looksAt = now.addingClamped(max(pause, limits.claimMilliseconds))
  }
}
#endif
