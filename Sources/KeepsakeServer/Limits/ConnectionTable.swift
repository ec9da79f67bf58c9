#if Cloud
import Synchronization

/// Counts the open connections, in all and by address.
final class ConnectionTable: Sendable {
  private struct State {
    var all = 0
    var most = 0
    var networks: [PeerAddress: Int] = [:]
  }
  /// The most open connections, in all and from one address (an IPv6 network).
  let limit: Int
  let limitPerAddress: Int
  private let state = Mutex(State())

  init(limit: Int, perAddress: Int) { (self.limit, limitPerAddress) = (limit, perAddress) }

  /// Counts a connection, unless there are too many.
  ///
  /// - Parameter address: Nil for a proxy's, behind which is more than one client.
  /// - Returns: Whether it was counted; call `close` for it then.
  func open(from address: PeerAddress?) -> Bool {
    state.withLock { state in
      guard state.all < limit else { return false }
      if let address {
        guard state.networks[address.network, default: 0] < limitPerAddress else { return false }
        state.networks[address.network, default: 0] += 1
      }
      state.all += 1
      state.most = max(state.most, state.all)
      return true
    }
  }

  func close(from address: PeerAddress?) {
    state.withLock { state in
      state.all -= 1
      guard let network = address?.network, let count = state.networks[network] else { return }
      state.networks[network] = count > 1 ? count - 1 : nil
    }
  }

  /// Open now, and at most so far.
  var counts: (open: Int, most: Int) { state.withLock { ($0.all, $0.most) } }
}
#endif
