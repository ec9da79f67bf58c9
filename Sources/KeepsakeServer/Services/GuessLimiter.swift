#if Cloud
import Synchronization

/// Counts wrong pairing codes, by peer and by app, and reports when a limit is reached.
///
/// Kept in memory only: a restart resets the counts, which gives a guesser ten more tries.
final class GuessLimiter: Sendable {
  private struct Count {
    var wrong = 0
    var since: Int64
  }
  private struct State {
    var peers: [String: Count] = [:]
    var apps: [AppID: Count] = [:]
  }
  private static let windowMilliseconds = Int64(ServerLimits.pairingSeconds) * 1000
  private let state = Mutex(State())

  /// Seconds until this peer may try again; nil if it may now.
  func secondsToWait(peer: String, app: AppID, now: Int64) -> Int? {
    state.withLock { state in
      Self.wait(state.peers[peer], most: ServerLimits.guessesPerPeer, now: now)
        ?? Self.wait(state.apps[app], most: ServerLimits.guessesPerApp, now: now)
    }
  }

  func countWrong(peer: String, app: AppID, now: Int64) {
    state.withLock { state in
      Self.count(&state.peers[peer], now: now)
      Self.count(&state.apps[app], now: now)
      if state.peers.count > ServerLimits.rememberedPeers {
        state.peers = state.peers.filter { now &- $0.value.since < Self.windowMilliseconds }
        // Still too many: someone is guessing from very many addresses. The count per app continues; the peers' counts
        // start again.
        if state.peers.count > ServerLimits.rememberedPeers { state.peers.removeAll() }
      }
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
