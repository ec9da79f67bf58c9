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
    var peers: [PeerAddress: Count] = [:]
    var apps: [AppID: Count] = [:]
    var sweptMilliseconds: Int64?
  }
  private static let windowMilliseconds = Int64(ServerLimits.pairingSeconds) * 1000
  private static let sweepMilliseconds: Int64 = 1_000
  private static let sharedNames: UInt = 64
  private let state = Mutex(State())

  /// Counts a guess, unless this peer has to wait.
  ///
  /// - Returns: The seconds until this peer may try again; nil if it may now.
  func begin(peer: PeerAddress, app: AppID, now: Int64) -> Int? {
    state.withLock { state in
      Self.makeRoom(for: peer, in: &state, now: now)
      let peer = Self.counted(peer, in: state)
      let wait =
        Self.wait(state.peers[peer], most: ServerLimits.guessesPerPeer, now: now)
        ?? Self.wait(state.apps[app], most: ServerLimits.guessesPerApp, now: now)
      if let wait { return wait }
      Self.count(&state.peers[peer], now: now)
      Self.count(&state.apps[app], now: now)
      return nil
    }
  }

  private static func makeRoom(for peer: PeerAddress, in state: inout State, now: Int64) {
    guard state.peers[peer] == nil, state.peers.count >= ServerLimits.rememberedPeers else { return }
    if let swept = state.sweptMilliseconds, now >= swept, now - swept < Self.sweepMilliseconds { return }
    state.sweptMilliseconds = now
    state.peers = state.peers.filter { now &- $0.value.since < Self.windowMilliseconds }
  }

  /// Returns the name under which a peer is counted: its own, or, while someone is guessing from very many addresses,
  /// one that new peers share. So nobody's count is ever forgotten before its time.
  private static func counted(_ peer: PeerAddress, in state: State) -> PeerAddress {
    guard state.peers[peer] == nil, state.peers.count >= ServerLimits.rememberedPeers else { return peer }
    // No peer's address has one byte.
    return PeerAddress(bytes: [UInt8(UInt(bitPattern: peer.hashValue) % sharedNames)])
  }

  /// Takes back the count of a guess that was right, or that wasn't tried.
  func takeBack(peer: PeerAddress, app: AppID) {
    state.withLock { state in
      let peer = Self.counted(peer, in: state)
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
