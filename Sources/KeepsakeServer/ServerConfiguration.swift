#if Cloud
package import Foundation
package import KeepsakeReplication

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// How a server is run: where it keeps its data, where it listens, and who may register.
///
///     try await KeepsakeServer.run(configuration: ServerConfiguration(data: folder, port: 8080))
package struct ServerConfiguration: Sendable {
  /// Most requests take milliseconds; a stop waits this many seconds for the slow ones and then ends them.
  package static let defaultStopSeconds = 20

  /// The folder that the server owns: its database, large contents, its secret. Created if it doesn't exist. Two
  /// servers never share one.
  package var data: URL
  /// Where the database is that other servers use, too, `postgres://user@host/name`; nil for one in the data folder.
  package var database: String?
  /// How many connections to it, and to each further one, there are: about two for each core of the database, shared by
  /// its servers, are enough.
  package var databaseConnections = 16
  /// Further databases over which the players are spread, as `ShardAddress` reads them: `NAME=postgres://...`. The one
  /// above says where each player lives.
  package var shards: [String] = []
  /// For how many seconds a server that starts waits for databases that can't be reached: they may start with it.
  package var databaseWaitSeconds = 60
  /// After how many seconds there a statement is given up. Longer in tests.
  package var databaseSeconds = 10
  #if PostgreSQL
  /// Set by tests.
  var databaseStandIn: PostgreSQLStandIn?
  #endif

  /// Has the database behave as another one of PostgreSQL's family may, for measurements.
  package mutating func useDatabaseStandIn() {
    #if PostgreSQL
    databaseStandIn = .other
    #endif
  }

  /// Where large contents of such a database are put, as `ContentPlace` reads it, and behind it, where earlier ones
  /// are: `rows`, `folder:/PATH`, `s3://BUCKET/PREFIX?...`. In the database if there are none.
  package var contents: [String] = []
  /// The port to listen on. 0 takes any free port; the callback of `run` reports which.
  package var port: Int
  /// The address to listen on: only this machine by default. On any other address the server needs `tls`, or
  /// `isBehindProxy`.
  package var host: String
  /// The certificate; nil for plain HTTP. With one, clients may use HTTP/2.
  package var tls: TLSFiles?
  /// Whether plain HTTP is accepted on any address, because a proxy with TLS stands in front of the server.
  package var isBehindProxy = false
  /// The port for monitoring: health and metrics, in plain HTTP; 0 for any free one, nil for none.
  package var metricsPort: Int?
  /// The address of that port: only this machine by default.
  package var metricsHost = "127.0.0.1"
  /// The port for the studio, the admin API, in plain HTTP; 0 for any free one, nil for none.
  package var adminPort: Int?
  /// The address of that port: only this machine by default. Any other needs `isBehindProxy`.
  package var adminHost = "127.0.0.1"
  /// Shows saves to the studio; the admin API needs it.
  package var saves: (any SaveReading)?
  /// Where the metrics are kept.
  package var metrics = PrometheusRegistry()
  /// Keys with which an installation may register. If none is given, one is generated at the first start and kept in
  /// the data folder.
  package var appKeys: [String]
  /// A file with further app keys, one on each line, which may change while the server runs; nil for none.
  package var appKeysFile: URL?
  /// For how many days a device's token is valid, 2 to 10,000. It is renewed by use after half of them.
  package var tokenDays = TokenSigner.defaultLifetimeDays
  /// The number of bytes that each player may keep here: frames of contents, records of versions and values, which all
  /// of a player's devices share. Once it is reached, the server accepts no more saves of that player, but still
  /// accepts deletions, values and money.
  ///
  /// Nil, the default, for as many as fit on the disk. May differ from start to start: what a player has beyond a lower
  /// quota stays.
  package var quota: Int64?
  /// What happens with a device whose store went back to an older state, as when an old copy of it is put back: it is
  /// marked in any case. May differ from start to start, also for devices that are marked already.
  package var setBackPolicy = SetBackPolicy.flag
  /// Currencies of which only the bank's own operations make more: what a device earns of them is declined. At most
  /// 256.
  package var authoritative: Set<String> = []
  /// Issuers of signed identities with which players sign in. At most 64, each with a name of its own.
  package var identityIssuers: [IdentityIssuer] = []
  /// Further services at which players prove who they are, by the names with which games sign in: those of issuers, and
  /// other than theirs.
  package var identityVerifiers: [String: any IdentityVerifier] = [:]
  /// Gets the keys of issuers that are at an address. Replaced by tests.
  package var keySource: any KeySource = HTTPKeySource()
  /// How long a check of an identity waits for another service.
  package var identityLimit = Duration.seconds(ServerLimits.identitySeconds)
  /// Backends of the studio that are told what happens. At most 8, each with a name of its own.
  package var webhooks: [WebhookEndpoint] = []
  /// For how many minutes a slot has to show several versions before backends are told, 1 to 10,080.
  package var webhookConflictMinutes = 10
  /// Sends to them. Replaced by tests.
  package var webhookSender: any WebhookSender = HTTPWebhookSender()
  var webhookLimits = WebhookLimits()
  /// The number of seconds that a stop waits for requests and event streams to end.
  package var stopSeconds: Int
  /// The number of seconds that a connection may be idle, or a body slow, before the connection is closed. Shorter in
  /// tests.
  package var idleSeconds = ServerLimits.idleSeconds
  package var slowGraceSeconds = ServerLimits.slowGraceSeconds
  /// The number of seconds after which a new connection without a request is closed.
  package var requestSeconds = ServerLimits.requestSeconds
  /// The number of seconds after which a silent event stream gets a sign of life, and it is looked whether its device
  /// is still admitted. Shorter in tests.
  package var heartbeatSeconds = ServerLimits.heartbeatSeconds
  /// How much of the disk the unfinished uploads of all players may take together.
  package var uploadBudget = UploadBudget()
  /// How fast requests may come.
  package var rates = RateLimits()
  /// The most open connections; nil for as many as the process's descriptors allow.
  package var connections: Int?
  /// Proxies whose `X-Forwarded-For` says who a client is. Limits by address then count the clients, and not the proxy.
  package var trustedProxies: [AddressRange] = []
  /// Whether connections from these begin with the header of the PROXY protocol.
  package var expectsProxyProtocol = false
  package var handshakeSeconds = ServerLimits.handshakeSeconds
  /// The number of seconds after which a database that makes no transaction counts as not ready. Longer in tests.
  package var probeSeconds = ServerLimits.probeSeconds
  static let systemClock: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970 * 1000) }

  /// Returns milliseconds since 1970. Replaced by tests.
  package var clock: @Sendable () -> Int64

  package init(data: URL, port: Int = 8080, host: String = "127.0.0.1", appKeys: [String] = []) {
    self.data = data
    self.port = port
    self.host = host
    self.appKeys = appKeys
    stopSeconds = Self.defaultStopSeconds
    clock = Self.systemClock
  }
}
#endif
