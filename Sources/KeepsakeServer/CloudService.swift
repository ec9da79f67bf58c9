#if Cloud
import Foundation
import Hummingbird
import HummingbirdCore
import HummingbirdHTTP2
import KeepsakePlatform
import KeepsakeReplication
import Logging
import NIOCore
import ServiceLifecycle

/// A server as a service: opens the data folder, listens, and closes everything when its service group stops.
struct CloudService: Service {
  /// Answers on the port for monitoring; nil without one. Runs beside this service, and longer.
  let monitoring: MonitoringService?
  /// Answers the studio; nil without a port for it. Ends before the database is closed.
  let admin: AdminService?
  private let configuration: ServerConfiguration
  private let logger: Logger
  private let folder: DataFolder
  private let storage: any AdminStorage
  private let cloud: CloudRoutes
  private let certificates: TLSCertificates?
  private let health: ServerHealth
  private let stopSwitch: StopSwitch
  /// Learns what other servers do with the same database; nil for one of this machine's own.
  private let watching: (any Service)?
  /// Tells the studio's backends what happened; nil without any.
  private let webhooks: WebhookService?
  private let onRunning: @Sendable (RunningServer) async -> Void

  /// Opens the data folder and the database. Throws a `ServerError` if they can't be used.
  init(
    configuration: ServerConfiguration, logger: Logger, stopSwitch: StopSwitch,
    onRunning: @escaping @Sendable (RunningServer) async -> Void
  ) async throws {
    try configuration.check()
    self.configuration = configuration
    self.logger = logger
    self.onRunning = onRunning
    self.stopSwitch = stopSwitch
    let certificates = try configuration.tls.map { try TLSCertificates($0, logger: logger) }
    self.certificates = certificates
    let clock = configuration.clock
    // The cloud's former server may be about to end.
    if try await CloudDatabase.awaitMoved(configuration, logger: logger) {
      folder = try await Succession.folder(at: configuration.data, logger: logger)
      try await Succession.port(configuration.port, of: configuration.host)
      if let port = configuration.metricsPort { try await Succession.port(port, of: configuration.metricsHost) }
      if let port = configuration.adminPort { try await Succession.port(port, of: configuration.adminHost) }
    } else {
      folder = try DataFolder(at: configuration.data)
    }
    let registry = AppRegistry(file: folder.url.appendingPathComponent(AppRegistry.fileName), clock: clock)
    var hasKeys = !configuration.appKeys.isEmpty || configuration.appKeysFile != nil
    // Devices that registered with the generated key go on, whatever apps are created beside it.
    if !hasKeys, !folder.hasOwnAppKey { hasKeys = try !registry.list().isEmpty }
    let appKeys = try AppKeys(
      hasKeys ? configuration.appKeys : [folder.ownAppKey()], file: configuration.appKeysFile, registry: registry,
      logger: logger)
    let tokens = try TokenAuthority(
      ServerSecrets(data: folder.url), lifetimeDays: configuration.tokenDays, clock: clock, logger: logger)
    let metrics = ServerMetrics(configuration.metrics)
    let storage: any AdminStorage
    if configuration.database != nil {
      storage = try await CloudDatabase.open(configuration, logger: logger)
    } else {
      storage = try SQLiteCloudStorage(
        database: folder.database, contents: folder.contents, witness: folder.witness, clock: clock, logger: logger,
        webhooks: configuration.webhooks)
    }
    self.storage = storage
    let webhooks = try WebhookService(configuration, storage: storage, metrics: metrics, logger: logger)
    self.webhooks = webhooks
    storage.observeCommits { metrics.committed($0, nanoseconds: $1, failed: $2) }
    let refusals = RefusalLog(metrics: metrics, logger: logger, clock: clock)
    let descriptors = Descriptors.raiseLimit()
    ProcessResources.returnFreedMemory()
    let connections = configuration.connections ?? Descriptors.connections(for: descriptors)
    logger.notice(
      "Limits of this process", metadata: ["descriptors": "\(descriptors)", "connections": "\(connections)"])
    let gate = ServerGate(
      folder: folder.incoming, connections: connections, proxies: configuration.trustedProxies,
      rates: configuration.rates, log: refusals, clock: clock)
    let partials = try PartialUploads(
      folder: folder.incoming, budget: configuration.uploadBudget, refusals: refusals, clock: clock,
      logger: logger)
    let events = EventHub(heartbeatSeconds: configuration.heartbeatSeconds)
    watching = storage.watching(events, heartbeatSeconds: configuration.heartbeatSeconds)
    cloud = CloudRoutes(
      storage: storage, appKeys: appKeys, tokens: tokens, tokenUses: TokenUses(storage, logger: logger),
      events: events, guesses: GuessLimiter(),
      identityChecks: try IdentityChecks(configuration, nonceKeys: { tokens.nonceKeys }, logger: logger),
      uploads: UploadSpool(folder: folder.incoming, sharing: partials), partials: partials, gate: gate, clock: clock,
      quota: configuration.quota, setBackPolicy: configuration.setBackPolicy,
      serverKeys: try ServerKeys(data: folder.url), metrics: metrics, refusals: refusals,
      authoritative: Set(configuration.authoritative.map(\.canonical)))
    if let port = configuration.adminPort, let saves = configuration.saves {
      admin = AdminService(
        AdminRoutes(cloud: cloud, storage: storage, saves: saves, webhooks: webhooks), port: port, configuration,
        logger: logger)
    } else {
      admin = nil
    }
    let health = ServerHealth(
      folder: folder.url, patienceSeconds: configuration.probeSeconds, logger: logger
    ) { try await storage.probe() }
    self.health = health
    let figures = ServerFigures(
      data: folder.url, metrics: metrics, streams: { events.count }, queue: { storage.waitingCommits },
      certificateExpiry: { certificates?.expiresSeconds })
    monitoring = configuration.metricsPort.map {
      MonitoringService(
        host: configuration.metricsHost, port: $0, health: health, figures: figures, registry: configuration.metrics,
        logger: logger)
    }
  }

  /// Reads the certificate and the keys again.
  func reload() {
    certificates?.reload()
    cloud.appKeys.reload()
    cloud.tokens.reload()
    cloud.identityChecks.reload()
  }

  /// The method and the path of each route, for a comparison with their description.
  var routes: [(method: String, path: String)] { cloud.described }

  func run() async throws {
    let running = onRunning
    let host = configuration.host
    let scheme = certificates == nil ? "http" : "https"
    let keys = cloud.appKeys.keys
    let pruning = PruningService(storage: storage, metrics: cloud.metrics, logger: logger, clock: configuration.clock)
    let (stopSwitch, logger, monitoring, health, admin) = (stopSwitch, logger, monitoring, health, admin)
    var services: [any Service] = [cloud.events, cloud.partials, cloud.refusals, pruning]
    if let admin { services.append(admin) }
    if let webhooks { services.append(webhooks) }
    if let watching { services.append(watching) }
    if configuration.database == nil {
      services.append(
        FenceWatch(database: folder.database, logger: logger) { target in
          logger.notice("This server ends: its cloud has moved", metadata: ["target": "\(target)"])
          health.drain()
          stopSwitch.stop()
        })
    }
    services.append(
      WebhookCleaning(
        storage: storage, names: configuration.webhooks.map(\.name), limits: configuration.webhookLimits,
        logger: logger, clock: configuration.clock))
    // Where other servers may be told of them, that has to be found out first (`WebhookCleaning`).
    if !storage.sharesWebhooks { try await storage.forgetUnwantedConflicts() }
    let (gate, events) = (cloud.gate, cloud.events)
    let application = Application(
      responder: TaskResponder(base: cloud.routes().buildResponder()), server: try server(),
      configuration: .init(
        address: .hostname(host, port: configuration.port), serverName: "Keepsake"),
      services: services,
      onServerRunning: { channel in
        guard let port = channel.localAddress?.port, let url = Self.url(scheme, host: host, port: port) else { return }
        let metricsPort = await monitoring?.openPort()
        // Without the port that was asked for, the server stops before anybody counts on it.
        guard monitoring == nil || metricsPort != nil else { return }
        let adminPort = await admin?.openPort()
        guard admin == nil || adminPort != nil else { return }
        logger.info(
          "Keepsake's server is running",
          metadata: [
            "port": "\(port)", "host": "\(host)", "scheme": "\(scheme)",
            "metricsPort": "\(metricsPort.map(String.init) ?? "none")",
            "adminPort": "\(adminPort.map(String.init) ?? "none")",
          ])
        await running(
          RunningServer(
            port: port, appKeys: keys, url: url, metricsPort: metricsPort, adminPort: adminPort,
            stopSwitch: stopSwitch, gate: gate))
      },
      logger: logger)
    defer { folder.unlock() }
    do {
      try await withGracefulShutdownHandler {
        try await application.run()
      } onGracefulShutdown: {
        logger.info("Keepsake's server is stopping")
        health.drain()
        // The server waits for its connections, and those with event streams would stay.
        events.close()
      }
    } catch is CancellationError where Task.isCancelled {
      // As below.
    } catch {
      // The first failure is the one to throw.
      do { try await close() } catch { logger.failure("The database can't be closed", error) }
      throw error
    }
    if Task.isCancelled {
      // By the service group, when the time to stop is over.
      logger.warning(
        "Requests or event streams were still in progress when the time to stop was over, and were ended",
        metadata: ["seconds": "\(configuration.stopSeconds)"])
    }
    try await close()
    logger.info("Keepsake's server has stopped")
  }

  /// In a task of its own: in one that is cancelled, the database couldn't write what it writes last.
  private func close() async throws {
    try await Task { [storage] in try await storage.close() }.value
  }

  /// Plain HTTP, or TLS with HTTP/2 and HTTP/1.1.
  private func server() throws -> HTTPServerBuilder {
    let (gate, metrics) = (cloud.gate, cloud.metrics)
    let (graceSeconds, requestSeconds) = (configuration.slowGraceSeconds, configuration.requestSeconds)
    let idleSeconds = Int64(configuration.idleSeconds)
    let http = HTTP1Channel.Configuration(
      additionalChannelHandlers: [
        TrafficHandler(metrics),
        RequestGuard(
          gate, graceSeconds: graceSeconds, requestSeconds: requestSeconds, countsConnections: certificates == nil),
        EventConnection(graceSeconds: graceSeconds),
      ],
      idleTimeout: .seconds(idleSeconds),
      httpDecoderConfiguration: .init(
        maxHeaderFieldSize: ServerLimits.headerBytes, maxHeaderListSize: ServerLimits.headerBytes,
        maxHeaderFieldCount: ServerLimits.headerCount))
    guard let certificates else {
      guard configuration.expectsProxyProtocol else {
        return HTTPServerBuilder { LoopChannel(base: HTTP1Channel(responder: $0, configuration: http)) }
      }
      return HTTPServerBuilder { responder in
        LoopChannel(
          base: ProxiedChannel(
            base: HTTP1Channel(responder: responder, configuration: http), proxies: gate.proxies,
            refusals: gate.refusals))
      }
    }
    let (refusals, handshakeSeconds) = (cloud.refusals, configuration.handshakeSeconds)
    let tls = certificates.configuration()
    return HTTPServerBuilder { responder in
      LoopChannel(
        base: SecureChannel(
          base: try HTTP2UpgradeChannel(
            tlsConfiguration: tls,
            configuration: .init(
              idleTimeout: .seconds(idleSeconds), gracefulCloseTimeout: .seconds(idleSeconds),
              streamConfiguration: http),
            responder: responder),
          handshakeSeconds: handshakeSeconds, refusals: refusals, gate: gate))
    }
  }

  /// Returns an address that this machine can use: a server that listens on all addresses is reached on loopback, too.
  private static func url(_ scheme: String, host: String, port: Int) -> URL? {
    var parts = URLComponents()
    parts.scheme = scheme
    parts.host = ["0.0.0.0", "::", ""].contains(host) ? "127.0.0.1" : host
    parts.port = port
    return parts.url
  }
}
#endif
