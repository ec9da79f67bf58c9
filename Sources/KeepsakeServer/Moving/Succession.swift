#if Cloud
import Foundation
import Logging
import NIOCore
import NIOPosix

/// Taking the place of a server that has just ended, or is about to: its folder's lock and its ports.
enum Succession {
  /// Longer than a server takes to end its requests.
  private static let patience: Duration = .seconds(60)
  private static let pause: Duration = .milliseconds(20)

  /// Locks a data folder, once the server that has it lets it go.
  static func folder(at url: URL, logger: Logger) async throws -> DataFolder {
    let deadline = ContinuousClock.now + patience
    var hasWaited = false
    while true {
      do {
        return try DataFolder(at: url)
      } catch let error as ServerError {
        guard error.code == .folderInUse, ContinuousClock.now < deadline else { throw error }
        if !hasWaited { logger.notice("Waiting until the server that has the data folder ends") }
        hasWaited = true
        try await Task.sleep(for: pause)
      }
    }
  }

  /// Returns once nobody listens on a port, or the time is over: then the server itself says what is wrong.
  static func port(_ port: Int, of host: String) async throws {
    guard port != 0 else { return }
    let deadline = ContinuousClock.now + patience
    let bootstrap = ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
    while ContinuousClock.now < deadline {
      do {
        let channel = try await bootstrap.bind(host: host, port: port).get()
        try await channel.close()
        return
      } catch let error as IOError {
        guard error.errnoCode == EADDRINUSE else { return }
        try await Task.sleep(for: pause)
      }
    }
  }
}
#endif
