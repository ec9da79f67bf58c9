#if Cloud
import ArgumentParser
import Configuration
import CoreMetrics
import Foundation
import KeepsakeReplication
import KeepsakeServer
import Logging
import UnixSignals

/// `keepsake serve`: runs the cloud as one process with one folder.
struct ServeCommand: AsyncParsableCommand, PrintsLines {
  static let jsonForm = JSONForm.lines

  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Run a cloud: one process, one folder.",
    discussion: """
      Prints its URL and app key once it accepts requests, and runs until SIGTERM or SIGINT. It listens only to this \
      machine unless --host says otherwise, which needs a certificate, or a proxy with TLS. SIGHUP reads the \
      certificate and the app keys again.

      Each setting can also be given by the environment, such as KEEPSAKE_PORT for --port, or by a file. A flag counts \
      before the environment, and the environment before the file.
      """,
    examples: [
      "keepsake serve --data cloud --port 8080 --quota 1G --authoritative gems,tickets",
      "KEEPSAKE_APP_KEYS_FILE=keys keepsake serve --config cloud.json --metrics-port 9464 --print-config",
    ])

  @Option(name: .shortAndLong, help: .setting("data"), completion: .directory)
  var data: String?

  @Option(name: .long, help: .setting("database"))
  var database: String?

  @Option(name: .long, help: .setting("database-connections"))
  var databaseConnections: Int?

  @Option(name: .long, help: .setting("shard"))
  var shard: [String] = []

  @Option(name: .long, help: .setting("contents"))
  var contents: [String] = []

  @Option(name: .shortAndLong, help: .setting("port"))
  var port: Int?

  @Option(name: .long, help: .setting("host"))
  var host: String?

  @Option(name: .long, help: .setting("tls-certificate"), completion: .file())
  var tlsCertificate: String?

  @Option(name: .long, help: .setting("tls-key"), completion: .file())
  var tlsKey: String?

  @Flag(name: .long, help: .setting("behind-proxy"))
  var behindProxy = false

  @Option(name: .long, help: .setting("metrics-port"))
  var metricsPort: Int?

  @Option(name: .long, help: .setting("metrics-host"))
  var metricsHost: String?

  @Option(name: .long, help: .setting("admin-port"))
  var adminPort: Int?

  @Option(name: .long, help: .setting("admin-host"))
  var adminHost: String?

  @Option(name: .long, help: .setting("app-keys-file"), completion: .file())
  var appKeysFile: String?

  @Option(name: .long, help: .setting("app-key"))
  var appKey: [String] = []

  @Option(name: .long, help: .setting("token-days"))
  var tokenDays: Int?

  @Option(name: .long, help: .setting("quota"))
  var quota: SizeLimit?

  @Option(name: .long, help: .setting("set-back"))
  var setBack: String?

  @Option(name: .long, help: .setting("upload-room"))
  var uploadRoom: ByteSize?

  @Option(name: .long, help: .setting("upload-files"))
  var uploadFiles: Int?

  @Option(name: .long, help: .setting("authoritative"))
  var authoritative: String?

  @Option(name: .long, help: .setting("identity"))
  var identity: [String] = []

  @Option(name: .long, help: .setting("webhook"))
  var webhook: [String] = []

  @Option(name: .long, help: .setting("webhook-conflict-minutes"))
  var webhookConflictMinutes: Int?

  @Option(name: .long, help: .setting("trusted-proxy"))
  var trustedProxy: [String] = []

  @Flag(name: .long, help: .setting("proxy-protocol"))
  var proxyProtocol = false

  @Option(name: .long, help: .setting("registrations-per-address"))
  var registrationsPerAddress: Int?

  @Option(name: .long, help: .setting("log-level"))
  var logLevel: String?

  @Option(name: .long, help: .setting("log-format"))
  var logFormat: String?

  @Option(
    name: .long, help: ArgumentHelp("A file of settings: a JSON object, by their names.", valueName: "file"),
    completion: .file())
  var config: String?

  @Flag(name: .long, help: "Print all settings with where they come from, without secrets, and end.")
  var printConfig = false

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  // For processes that start a server temporarily: its input ends however such a process ends.
  @Flag(name: .long, help: .hidden)
  var untilInputEnds = false

  // For measurements of what a database of PostgreSQL's family costs that lacks what PostgreSQL itself has.
  @Flag(name: .long, help: .hidden)
  var databaseStandIn = false

  func validate() throws {
    do {
      _ = try Self.proxies(ServeSettings(flags: flags, environment: [:], file: nil))
    } catch let failure as CommandFailure {
      throw ValidationError(failure.message + ".")
    }
  }

  /// The flags that were given, by the names of their settings.
  private var flags: [String: ConfigValue] {
    func value(_ text: String) -> ConfigValue { ConfigValue(.string(text), isSecret: false) }
    func value(_ number: Int) -> ConfigValue { ConfigValue(.int(number), isSecret: false) }
    func value(_ words: [String]) -> ConfigValue { ConfigValue(.stringArray(words), isSecret: false) }
    let given: [String: ConfigValue?] = [
      "data": data.map(value), "database": database.map(value),
      "database-connections": databaseConnections.map(value), "shard": shard.isEmpty ? nil : value(shard),
      "contents": contents.isEmpty ? nil : value(contents),
      "port": port.map(value), "host": host.map(value),
      "tls-certificate": tlsCertificate.map(value), "tls-key": tlsKey.map(value),
      "behind-proxy": behindProxy ? ConfigValue(.bool(true), isSecret: false) : nil,
      "metrics-port": metricsPort.map(value), "metrics-host": metricsHost.map(value),
      "admin-port": adminPort.map(value), "admin-host": adminHost.map(value),
      "app-keys-file": appKeysFile.map(value), "app-key": appKey.isEmpty ? nil : value(appKey),
      "token-days": tokenDays.map(value), "quota": quota.map { value($0.text) },
      "set-back": setBack.map(value),
      "upload-room": uploadRoom.map { value(String($0.bytes)) }, "upload-files": uploadFiles.map(value),
      "authoritative": authoritative.map { value($0.split(separator: ",").map(String.init)) },
      "identity": identity.isEmpty ? nil : value(identity),
      "webhook": webhook.isEmpty ? nil : value(webhook),
      "webhook-conflict-minutes": webhookConflictMinutes.map(value),
      "trusted-proxy": trustedProxy.isEmpty ? nil : value(trustedProxy),
      "proxy-protocol": proxyProtocol ? ConfigValue(.bool(true), isSecret: false) : nil,
      "registrations-per-address": registrationsPerAddress.map(value),
      "log-level": logLevel.map(value), "log-format": logFormat.map(value),
    ]
    return given.compactMapValues(\.self)
  }

  func run() async throws {
    try await CommandRun.reporting(json: json, as: Self.jsonForm) {
      let environment = ProcessInfo.processInfo.environment
      let settings = try ServeSettings(flags: flags, environment: environment, file: config)
      if printConfig { return try Self.show(settings, json: json) }
      var configuration = try Self.configuration(settings)
      if databaseStandIn { configuration.useDatabaseStandIn() }
      Self.bootstrap(settings, metrics: configuration.metrics)
      let logger = Logger(label: "keepsake.server")
      for name in ServeSettings.unknownVariables(in: environment) {
        logger.warning("A variable of the environment is no setting", metadata: ["name": "\(name)"])
      }
      if !appKey.isEmpty {
        logger.warning("--app-key shows the key to every user of this machine: use --app-keys-file")
      }
      let (json, untilInputEnds, path) = (json, untilInputEnds, settings.text("data") ?? "")
      try await KeepsakeServer.run(configuration: configuration, logger: logger, reloadSignals: [.sighup]) { server in
        Self.greet(server, path: path, json: json)
        if untilInputEnds { Self.stopWhenInputEnds(server) }
      }
    }
  }

  /// What a server is run with.
  ///
  /// - Throws: `CommandFailure` if something is missing.
  static func configuration(_ settings: ServeSettings) throws -> ServerConfiguration {
    func file(_ name: String) -> URL? { settings.text(name).map { URL(fileURLWithPath: $0) } }
    guard let data = settings.text("data") else {
      throw CommandFailure(
        .usage, "the setting data is missing", next: "name the folder of the cloud's data with --data")
    }
    var configuration = ServerConfiguration(data: URL(fileURLWithPath: data, isDirectory: true))
    configuration.database = settings.text("database")
    if let count = settings.number("database-connections") { configuration.databaseConnections = count }
    configuration.shards = settings.list("shard")
    configuration.contents = settings.list("contents")
    if let port = settings.number("port") { configuration.port = port }
    if let host = settings.text("host") { configuration.host = host }
    switch (file("tls-certificate"), file("tls-key")) {
    case (let certificate?, let key?): configuration.tls = TLSFiles(certificate: certificate, key: key)
    case (nil, nil): break
    default: throw CommandFailure(.usage, "the settings tls-certificate and tls-key go together")
    }
    configuration.isBehindProxy = settings.isSet("behind-proxy")
    configuration.metricsPort = settings.number("metrics-port")
    if let host = settings.text("metrics-host") { configuration.metricsHost = host }
    configuration.adminPort = settings.number("admin-port")
    if let host = settings.text("admin-host") { configuration.adminHost = host }
    configuration.saves = AdminSaveReader()
    configuration.appKeys = settings.list("app-key")
    configuration.appKeysFile = file("app-keys-file")
    if let days = settings.number("token-days") { configuration.tokenDays = days }
    configuration.quota = settings.text("quota").flatMap(SizeLimit.init(argument:))?.bytes
    if let policy = settings.text("set-back").flatMap(SetBackPolicy.init(rawValue:)) {
      configuration.setBackPolicy = policy
    }
    if let room = settings.text("upload-room").flatMap(ByteSize.init(argument:)) {
      configuration.uploadBudget.bytes = room.bytes
    }
    if let files = settings.number("upload-files") { configuration.uploadBudget.files = files }
    configuration.authoritative = Set(settings.list("authoritative"))
    configuration.identityIssuers = try settings.list("identity").map { try IdentityIssuer($0) }
    configuration.webhooks = try settings.list("webhook").map { try WebhookEndpoint($0) }
    if let minutes = settings.number("webhook-conflict-minutes") { configuration.webhookConflictMinutes = minutes }
    configuration.trustedProxies = try proxies(settings)
    configuration.expectsProxyProtocol = settings.isSet("proxy-protocol")
    if let count = settings.number("registrations-per-address") {
      configuration.rates.registrations = .hourly(Int64(count))
    }
    return configuration
  }

  private static func proxies(_ settings: ServeSettings) throws -> [AddressRange] {
    try settings.list("trusted-proxy").map { text in
      guard let range = AddressRange(text) else {
        throw CommandFailure(
          .usage,
          "the setting trusted-proxy takes an address or a range such as 10.0.0.0/8, not \(Printable.text(text))")
      }
      return range
    }
  }

  /// Has everything in this process log and measure to one place. Standard output is for the one line that other
  /// programs wait for.
  private static func bootstrap(_ settings: ServeSettings, metrics: PrometheusRegistry) {
    let level = settings.text("log-level").flatMap(Logger.Level.init(rawValue:)) ?? .notice
    let isJSON = settings.text("log-format") == "json"
    LoggingSystem.bootstrap { label in
      if isJSON { return JSONLineLogHandler(label: label, level: level) { Output.errorBytes($0) } }
      var handler = StreamLogHandler.standardError(label: label)
      handler.logLevel = level
      return handler
    }
    MetricsSystem.bootstrap(metrics)
  }

  // MARK: Output

  private struct Shown: Encodable {
    struct Setting: Encodable {
      var name: String
      var value: String?
      var source: String
    }
    var settings: [Setting]
  }

  private static func show(_ settings: ServeSettings, json: Bool) throws {
    let shown = settings.resolved.map {
      Shown.Setting(name: $0.setting.name, value: $0.value == nil ? nil : $0.shown, source: $0.source)
    }
    if json { return try Output.document(Shown(settings: shown)) }
    let width = shown.map(\.name.count).max() ?? 0
    for setting in shown {
      let name = setting.name.padding(toLength: width, withPad: " ", startingAt: 0)
      let value = setting.value.map { " = " + Printable.text($0) } ?? ""
      Output.text("\(name)\(value)  (\(Printable.text(setting.source)))")
    }
  }

  private static func greet(_ server: RunningServer, path: String, json: Bool) {
    if json {
      Output.line(
        Hello(
          path: path, url: server.url.absoluteString, port: server.port, appKey: server.appKeys.first ?? "",
          appKeys: server.appKeys, metricsPort: server.metricsPort, adminPort: server.adminPort))
    } else {
      let keys = server.appKeys.joined(separator: ", ")
      let metrics = server.metricsPort.map { "  metrics port: \($0)" } ?? ""
      let admin = server.adminPort.map { "  admin port: \($0)" } ?? ""
      Output.text("serving \(server.url.absoluteString)  app key: \(Printable.text(keys))\(metrics)\(admin)")
    }
  }

  /// Stops the server, as SIGTERM does, once standard input ends.
  private static func stopWhenInputEnds(_ server: RunningServer) {
    let reader = Thread {
      do {
        // The input itself is ignored; only its end matters.
        while let data = try FileHandle.standardInput.read(upToCount: 4_096), !data.isEmpty {}
      } catch {
        // An input that can't be read counts as ended.
        Output.complaint("keepsake: standard input can't be read: \(ErrorReason.text(error))")
      }
      server.stop()
    }
    reader.start()
  }

  /// The line that `--json` prints once the server listens.
  struct Hello: Codable {
    var event = "ready"
    /// The folder of the cloud's data, as it was named; nil for a server without one.
    var path: String?
    var url: String
    var port: Int
    /// The first of `appKeys`: the only one if none was given.
    var appKey: String
    var appKeys: [String]
    /// The port for monitoring, if there is one.
    var metricsPort: Int?
    /// The port for the studio, if there is one.
    var adminPort: Int?
  }
}
#endif
