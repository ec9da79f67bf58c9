#if Cloud
import Foundation
import Hummingbird
import HummingbirdCore
import KeepsakeReplication
import Logging
import NIOCore
import ServiceLifecycle

/// A server as a service: opens the data folder, listens, and closes everything when its service group stops.
struct CloudService: Service {
  private let configuration: ServerConfiguration
  private let logger: Logger
  private let folder: DataFolder
  private let storage: SQLiteCloudStorage
  private let cloud: CloudRoutes<SQLiteCloudStorage>
  private let appKeys: [String]
  private let stopSwitch: StopSwitch
  private let onRunning: @Sendable (RunningServer) async -> Void

  /// Opens the data folder. Throws a `ServerError` if it can't be used.
  init(
    configuration: ServerConfiguration, logger: Logger, stopSwitch: StopSwitch,
    onRunning: @escaping @Sendable (RunningServer) async -> Void
  ) throws {
    guard (0...65535).contains(configuration.port) else {
      throw ServerError(.configuration, "The port has to be a number from 0 to 65535, not \(configuration.port).")
    }
    if let quota = configuration.quota, quota <= 0 {
      throw ServerError(.configuration, "The quota has to be a number of bytes above 0, not \(quota).")
    }
    let authoritative = Set(configuration.authoritative.map(\.canonical))
    guard authoritative.count <= Wallet.maximumCurrencies else {
      throw ServerError(
        .configuration,
        "At most \(Wallet.maximumCurrencies) currencies can be authoritative, not \(authoritative.count).")
    }
    for objection in authoritative.compactMap({ NameRule.currency.objection(to: $0) }) {
      throw ServerError(.configuration, "\(objection).")
    }
    self.configuration = configuration
    self.logger = logger
    self.onRunning = onRunning
    self.stopSwitch = stopSwitch
    folder = try DataFolder(at: configuration.data)
    appKeys = configuration.appKeys.isEmpty ? [try folder.ownAppKey()] : configuration.appKeys
    let keys = try AppKeys(appKeys)
    let tokens = TokenSigner(secret: try folder.secret())
    storage = try SQLiteCloudStorage(
      database: folder.database, contents: folder.contents, witness: folder.witness, clock: configuration.clock,
      logger: logger)
    let partials = try PartialUploads(folder: folder.incoming, clock: configuration.clock, logger: logger)
    cloud = CloudRoutes(
      storage: storage, appKeys: keys, tokens: tokens, events: EventHub(), guesses: GuessLimiter(),
      uploads: UploadSpool(folder: folder.incoming), partials: partials, clock: configuration.clock,
      quota: configuration.quota, serverKeys: try ServerKeys(data: folder.url), authoritative: authoritative)
  }

  /// The method and the path of each route, for a comparison with their description.
  var routes: [(method: String, path: String)] { cloud.described }

  func run() async throws {
    let running = onRunning
    let host = configuration.host
    let keys = appKeys
    let graceSeconds = configuration.slowGraceSeconds
    let stopSwitch = stopSwitch
    let logger = logger
    let application = Application(
      router: cloud.routes(),
      server: .http1(
        configuration: .init(
          additionalChannelHandlers: [RequestGuard(graceSeconds: graceSeconds)],
          idleTimeout: .seconds(Int64(configuration.idleSeconds)),
          httpDecoderConfiguration: .init(
            maxHeaderFieldSize: ServerLimits.headerBytes, maxHeaderListSize: ServerLimits.headerBytes,
            maxHeaderFieldCount: ServerLimits.headerCount))),
      configuration: .init(
        address: .hostname(host, port: configuration.port), serverName: "Keepsake",
        availableConnectionsDelegate: MaximumAvailableConnections(ServerLimits.connections)),
      services: [cloud.events, cloud.partials],
      onServerRunning: { channel in
        guard let port = channel.localAddress?.port, let url = Self.url(host: host, port: port) else { return }
        logger.info("Keepsake's server is running", metadata: ["port": "\(port)", "host": "\(host)"])
        await running(RunningServer(port: port, appKeys: keys, url: url, stopSwitch: stopSwitch))
      },
      logger: logger)
    defer { folder.unlock() }
    do {
      try await application.run()
    } catch {
      // The first failure is the one to throw.
      do { try await storage.close() } catch { logger.failure("The database can't be closed", error) }
      throw error
    }
    try await storage.close()
    logger.info("Keepsake's server has stopped")
  }

  /// Returns an address that this machine can use: a server that listens on all addresses is reached on loopback, too.
  private static func url(host: String, port: Int) -> URL? {
    var parts = URLComponents()
    parts.scheme = "http"
    parts.host = ["0.0.0.0", "::", ""].contains(host) ? "127.0.0.1" : host
    parts.port = port
    return parts.url
  }
}
#endif
