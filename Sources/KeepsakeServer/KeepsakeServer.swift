#if Cloud
package import Foundation
import Hummingbird
package import Logging
import NIOCore
import ServiceLifecycle
package import UnixSignals

/// The cloud as a program: everything that a game's devices exchange, kept in one folder.
package enum KeepsakeServer {
  /// Runs a server until it is told to stop: by SIGTERM or SIGINT, or because the surrounding service group stops.
  ///
  /// Stopping lets requests under way finish, ends event streams and closes the database. Throws a `ServerError` if the
  /// server can't start.
  ///
  /// - Parameters:
  ///   - configuration: Where the data lies, the port, who may register.
  ///   - logger: Takes what an operator should hear.
  ///   - signals: What stops the server.
  ///   - onRunning: Called once, when the server takes requests.
  package static func run(
    configuration: ServerConfiguration, logger: Logger = Logger(label: "keepsake.server"),
    signals: [UnixSignal] = [.sigterm, .sigint], onRunning: @escaping @Sendable (RunningServer) async -> Void = { _ in }
  ) async throws {
    let service = try CloudService(configuration: configuration, logger: logger, onRunning: onRunning)
    var group = ServiceGroupConfiguration(
      services: [service], gracefulShutdownSignals: signals, logger: logger)
    group.maximumGracefulShutdownDuration = .seconds(configuration.stopSeconds)
    try await ServiceGroup(configuration: group).run()
  }
}

/// What is known of a server once it runs.
package struct RunningServer: Sendable {
  /// The port that it listens on.
  package var port: Int
  /// The app keys that it takes; with none configured, the one made for its data folder.
  package var appKeys: [String]
  /// Where devices reach it, from this machine.
  package var url: URL
}
#endif
