import KeepsakeReplication
import KeepsakeSync
import Synchronization

/// The connection of the game to which shared data belongs, by whose device the shared container is asked for.
/// Referenced weakly: shared data that outlives its game goes on without a cloud.
final class GameReference: Sendable {
  private struct Link { weak var connection: CloudConnection? }
  private let link: Mutex<Link>

  init(_ connection: CloudConnection) { link = Mutex(Link(connection: connection)) }

  private var connection: CloudConnection? { link.withLock { $0.connection } }

  /// Returns the credentials of the game's own device; registers it first if needed. Tries once.
  func credentials() async throws -> CloudCredentials {
    guard let connection else { throw GameDataError.notConnected }
    return try await connection.ownCredentials()
  }

  /// Returns the game's own device; nil if it isn't registered, as far as is known here, or has ended.
  func device(at server: CloudServer) async throws -> DeviceID? {
    try await connection?.registration.known(at: server)?.credentials.device
  }
}

extension CloudConnection {
  /// Returns the credentials of this device; registers it first if needed. Tries once.
  func ownCredentials() async throws -> CloudCredentials {
    await reconcile()
    try requireEnabled()
    return try await register()
  }
}
