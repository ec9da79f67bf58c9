#if Cloud
package import Foundation
package import Logging
import ServiceLifecycle
package import UnixSignals

/// The cloud as a program: everything that a game's devices exchange, kept in one folder.
package enum KeepsakeServer {
  /// Runs a server until it is stopped by SIGTERM or SIGINT, by `RunningServer.stop()`, or by cancelling the task.
  ///
  /// Stopping lets requests in progress finish for as long as the configuration says, ends event streams and closes the
  /// database.
  ///
  /// - Parameters:
  ///   - configuration: Where the data is kept, the port, who may register.
  ///   - logger: Receives what an operator should know.
  ///   - signals: The signals that stop the server.
  ///   - reloadSignals: The signals after which it reads the certificate and the keys again, changed or not.
  ///   - onRunning: Called once, when the server accepts requests.
  /// - Throws: A `ServerError` if the configuration is wrong or the data folder can't be used; the system's error if
  ///   the server can't listen on its address.
  package static func run(
    configuration: ServerConfiguration, logger: Logger = Logger(label: "keepsake.server"),
    signals: [UnixSignal] = [.sigterm, .sigint], reloadSignals: [UnixSignal] = [],
    onRunning: @escaping @Sendable (RunningServer) async -> Void = { _ in }
  ) async throws {
    let stopSwitch = StopSwitch()
    let service = try await CloudService(
      configuration: configuration, logger: logger, stopSwitch: stopSwitch, onRunning: onRunning)
    // Stopped in reverse order, each when the one after it has ended.
    var services: [ServiceGroupConfiguration.ServiceConfiguration] = []
    if let monitoring = service.monitoring {
      services.append(.init(service: monitoring, failureTerminationBehavior: .gracefullyShutdownGroup))
    }
    services.append(.init(service: service))
    if !reloadSignals.isEmpty {
      services.append(
        .init(service: HangupService(signals: reloadSignals, logger: logger) { service.reload() }))
    }
    services.append(.init(service: stopSwitch, successTerminationBehavior: .gracefullyShutdownGroup))
    var group = ServiceGroupConfiguration(services: services, gracefulShutdownSignals: signals, logger: logger)
    group.maximumGracefulShutdownDuration = .seconds(configuration.stopSeconds)
    // In a task of its own: if it were cancelled while accepting a connection, NIO would trap. So cancelling stops the
    // server instead.
    let running = Task { [group] in try await ServiceGroup(configuration: group).run() }
    try await withTaskCancellationHandler {
      try await running.value
    } onCancel: {
      stopSwitch.stop()
    }
  }
}

/// A server that is running.
package struct RunningServer: Sendable {
  /// The port that it listens on.
  package var port: Int
  /// The app keys that it accepts; if none is configured, the one generated for its data folder.
  package var appKeys: [String]
  /// The address at which devices on this machine reach it.
  package var url: URL
  /// The port for monitoring; nil if there is none.
  package var metricsPort: Int?
  /// The port for the studio; nil if there is none.
  package var adminPort: Int?
  let stopSwitch: StopSwitch
  let gate: ServerGate

  /// Stops the server, as SIGTERM does. Returns immediately; `run` returns when the server has stopped.
  package func stop() { stopSwitch.stop() }
}

/// A service that ends when it is stopped, and ends its group with it.
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
