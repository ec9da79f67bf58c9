import Synchronization

/// The clouds of a game's shared containers, which follow the game's own.
final class CloudFollowers: Sendable {
  private struct Follower { weak var cloud: Cloud? }
  private let followers = Mutex<[Follower]>([])

  func add(_ cloud: Cloud) {
    followers.withLock { followers in
      followers.removeAll { $0.cloud == nil }
      followers.append(Follower(cloud: cloud))
    }
    cloud.follow()
  }

  /// The clouds that are asked for what the game's is.
  var following: [Cloud] {
    followers.withLock { $0 }.compactMap(\.cloud).filter { $0.state.desired.following == .game }
  }

  /// Has all of them look at what the game's cloud is asked for, or which player the game's device belongs to.
  func follow() {
    for follower in followers.withLock({ $0 }) { follower.cloud?.follow() }
  }
}

extension CloudState.Desired {
  /// What the cloud of a shared container is asked for.
  enum Following: Sendable {
    /// To be connected to the game's server while the game is.
    case game
    /// To be connected to a cloud of its own.
    case own
    /// To stay disconnected.
    case nothing
  }

  /// Takes over what the game's cloud is asked for, as the cloud of its shared container `name`.
  mutating func follow(_ game: Self, as name: String) {
    isGameEnabled = game.isEnabled
    guard following == .game else { return }
    if case .server(var server)? = game.address?.kind, !game.isClosed {
      server.shared = name
      (address, deviceName) = (CloudAddress(kind: .server(server)), game.deviceName)
    } else {
      address = nil
    }
  }
}
