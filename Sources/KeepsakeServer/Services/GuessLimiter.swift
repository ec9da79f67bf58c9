#if Cloud
import Synchronization

/// Counts wrong pairing codes, by peer and by app, and reports when a limit is reached.
///
/// A guess counts as wrong until it is known to be right, so that many at the same time can't pass the limit together.
///
/// Kept in memory only: a restart resets the counts, which gives a guesser ten more tries.
final class GuessLimiter: Sendable {
  private struct Count {
    var wrong = 0
    var since: Int64

    var lessOne: Count { Count(wrong: wrong - 1, since: since) }
  }
  private struct State {
    var peers: [String: Count] = [:]
    var apps: [AppID: Count] = [:]
  }
  private static let windowMilliseconds = Int64(ServerLimits.pairingSeconds) * 1000
  private let state = Mutex(State())

  /// Counts a guess, unless this peer has to wait.
  ///
  /// - Returns: The seconds until this peer may try again; nil if it may now.
  func begin(peer: String, app: AppID, now: Int64) -> Int? {
    state.withLock { state in
      let wait =
        Self.wait(state.peers[peer], most: ServerLimits.guessesPerPeer, now: now)
        ?? Self.wait(state.apps[app], most: ServerLimits.guessesPerApp, now: now)
      if let wait { return wait }
      Self.count(&state.peers[peer], now: now)
      Self.count(&state.apps[app], now: now)
      if state.peers.count > ServerLimits.rememberedPeers {
        state.peers = state.peers.filter { now &- $0.value.since < Self.windowMilliseconds }
        // Still too many: someone is guessing from very many addresses. The count per app continues; the peers' counts
        // start again.
        if state.peers.count > ServerLimits.rememberedPeers { state.peers.removeAll() }
      }
      return nil
    }
  }

  /// Takes back the count of a guess that was right, or that wasn't tried.
  func takeBack(peer: String, app: AppID) {
    state.withLock { state in
      if let count = state.peers[peer] { state.peers[peer] = count.wrong > 1 ? count.lessOne : nil }
      if let count = state.apps[app] { state.apps[app] = count.wrong > 1 ? count.lessOne : nil }
    }
  }

  private static func wait(_ count: Count?, most: Int, now: Int64) -> Int? {
    guard let count, count.wrong >= most else { return nil }
    let left = windowMilliseconds &- (now &- count.since)
    return left > 0 ? Int(left / 1000) + 1 : nil
  }

  private static func count(_ entry: inout Count?, now: Int64) {
    var count = entry ?? Count(since: now)
    if now &- count.since >= windowMilliseconds { count = Count(since: now) }
    count.wrong += 1
    entry = count
  }
}
#endif
