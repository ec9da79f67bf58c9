#if Cloud
import Hummingbird
import HummingbirdCore
import Logging
import ServiceLifecycle

/// Answers the studio on a port of its own, which devices needn't reach.
struct AdminService: Service {
  let routes: AdminRoutes
  private let host: String
  private let port: Int
  private let idleSeconds: Int
  private let logger: Logger
  private let ports = AsyncStream<Int>.makeStream()

  init(_ routes: AdminRoutes, host: String, port: Int, idleSeconds: Int, logger: Logger) {
    (self.routes, self.host, self.port) = (routes, host, port)
    (self.idleSeconds, self.logger) = (idleSeconds, logger)
  }

  /// Returns the port once it is open; nil if that failed. Call it once.
  func openPort() async -> Int? { await ports.stream.first { _ in true } }

  func run() async throws {
    let continuation = ports.continuation
    defer { continuation.finish() }
    let application = Application(
      responder: routes.routes().buildResponder(),
      server: .http1(configuration: .init(idleTimeout: .seconds(Int64(idleSeconds)))),
      configuration: .init(
        address: .hostname(host, port: port), serverName: "Keepsake",
        availableConnectionsDelegate: MaximumAvailableConnections(ServerLimits.adminConnections)),
      onServerRunning: { channel in
        if let port = channel.localAddress?.port { continuation.yield(port) }
      },
      logger: logger)
    try await application.run()
  }
}
#endif
