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
  private let configuration: ServerConfiguration
  private let logger: Logger
  private let ports = AsyncStream<Int>.makeStream()

  init(_ routes: AdminRoutes, port: Int, _ configuration: ServerConfiguration, logger: Logger) {
    (self.routes, host, self.port) = (routes, configuration.adminHost, port)
    (self.configuration, self.logger) = (configuration, logger)
  }

  /// Returns the port once it is open; nil if that failed. Call it once.
  func openPort() async -> Int? { await ports.stream.first { _ in true } }

  func run() async throws {
    let continuation = ports.continuation
    defer { continuation.finish() }
    let gate = routes.cloud.gate
    let (graceSeconds, requestSeconds) = (configuration.slowGraceSeconds, configuration.requestSeconds)
    let application = Application(
      responder: routes.routes().buildResponder(),
      server: .http1(
        configuration: .init(
          // Nobody holds one of the few connections without a request, as on the devices' port.
          additionalChannelHandlers: [
            RequestGuard(gate, graceSeconds: graceSeconds, requestSeconds: requestSeconds, countsConnections: false)
          ],
          idleTimeout: .seconds(Int64(configuration.idleSeconds)),
          httpDecoderConfiguration: .init(
            maxHeaderFieldSize: ServerLimits.headerBytes, maxHeaderListSize: ServerLimits.headerBytes,
            maxHeaderFieldCount: ServerLimits.headerCount))),
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
