#if Cloud
package import Foundation
package import Logging
import ServiceLifecycle
package import UnixSignals

/// The cloud as a program: everything that a game's devices exchange, kept in one folder.
package enum KeepsakeServer {
  /// Runs a server until it is told to stop: by SIGTERM or SIGINT, by `RunningServer.stop()`, or because the task is cancelled.
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
    let stopSwitch = StopSwitch()
    let service = try CloudService(configuration: configuration, logger: logger, stopSwitch: stopSwitch, onRunning: onRunning)
    var group = ServiceGroupConfiguration(
      services: [
        .init(service: service),
        .init(service: stopSwitch, successTerminationBehavior: .gracefullyShutdownGroup),
      ],
      gracefulShutdownSignals: signals, logger: logger)
    group.maximumGracefulShutdownDuration = .seconds(configuration.stopSeconds)
    // A task of its own: were it cancelled in the middle of accepting a connection, NIO would trap. So cancelling is stopping.
    let running = Task { [group] in try await ServiceGroup(configuration: group).run() }
    try await withTaskCancellationHandler {
      try await running.value
    } onCancel: {
      stopSwitch.stop()
    }
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
  let stopSwitch: StopSwitch

  /// Tells the server to stop, as SIGTERM does. Returns at once; `run` returns when it has stopped.
  package func stop() { stopSwitch.stop() }
}

/// A service that ends when it is told to, and takes its group along.
final class StopSwitch: Service, Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream() }

  func stop() { continuation.finish() }

  func run() async throws {
    for await _ in stream.cancelOnGracefulShutdown() {}
  }
}
#endif
