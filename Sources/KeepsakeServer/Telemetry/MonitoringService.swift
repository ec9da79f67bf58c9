#if Cloud
import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import ServiceLifecycle

/// Answers an operator's machines on a port of its own, which devices needn't reach: is the process alive, is it ready,
/// what does it measure. Stays until the cloud has stopped, so that its draining is seen.
struct MonitoringService: Service {
  private struct Live: Encodable {
    var status = "ok"
  }
  private struct Ready: Encodable {
    var status: String
    var problems: [String]
  }
  private let host: String
  private let port: Int
  private let health: ServerHealth
  private let figures: ServerFigures
  private let registry: PrometheusRegistry
  private let logger: Logger
  private let ports = AsyncStream<Int>.makeStream()

  init(
    host: String, port: Int, health: ServerHealth, figures: ServerFigures, registry: PrometheusRegistry, logger: Logger
  ) {
    (self.host, self.port, self.health, self.figures) = (host, port, health, figures)
    (self.registry, self.logger) = (registry, logger)
  }

  /// Returns the port once it is open; nil if that failed. Call it once.
  func openPort() async -> Int? { await ports.stream.first { _ in true } }

  func run() async throws {
    let continuation = ports.continuation
    defer { continuation.finish() }
    let application = Application(
      router: router(),
      server: .http1(configuration: .init(idleTimeout: .seconds(Int64(ServerLimits.idleSeconds)))),
      configuration: .init(
        address: .hostname(host, port: port), serverName: "Keepsake",
        availableConnectionsDelegate: MaximumAvailableConnections(ServerLimits.monitoringConnections)),
      onServerRunning: { channel in
        if let port = channel.localAddress?.port { continuation.yield(port) }
      },
      logger: logger)
    try await application.run()
  }

  private func router() -> Router<BasicRequestContext> {
    let router = Router()
    router.get("health/live") { _, _ in try Response(json: Live()) }
    router.get("health/ready") { [health] _, _ in
      let problems = await health.problems()
      let body = Ready(status: problems.isEmpty ? "ready" : "not_ready", problems: problems.map(\.rawValue))
      return try Response(json: body, status: problems.isEmpty ? .ok : .serviceUnavailable)
    }
    router.get("metrics") { [figures, registry, health] _, _ in
      await figures.update(isReady: health.problems().isEmpty)
      return Response(
        status: .ok, headers: [.contentType: PrometheusRegistry.contentType],
        body: ResponseBody(byteBuffer: ByteBuffer(string: registry.text())))
    }
    return router
  }
}
#endif
