#if Cloud
import ArgumentParser
import KeepsakeReplication

/// A setting of `keepsake serve`. Each has a name, from which follow the flag (`--metrics-port`), the variable of the
/// environment (`KEEPSAKE_METRICS_PORT`) and the field of the file (`"metrics-port"`).
///
/// This is the only list of them: the help, the reading and `--print-config` use it, and a test compares it with
/// docs/COMMAND.md.
struct ServeSetting: Sendable {
  enum Kind: Sendable {
    case text
    case number(ClosedRange<Int>)
    /// True or false; as a flag, its mere presence is true.
    case flag
    /// Bytes, as a number or with K, M, G or T; or `none`.
    case size
    case list
    /// Issuers of identities, each as `IdentityIssuer` reads it.
    case issuers
    /// Webhooks, each as `WebhookEndpoint` reads it.
    case webhooks
    case choice([String])
  }
  var name: String
  /// What stands for the value in the help.
  var value: String
  var kind: Kind
  /// What counts if no source has it; nil for nothing.
  var standard: String?
  /// Whether its value is never printed.
  var isSecret = false
  var help: String

  var flag: String { "--" + name }
  var variable: String { Self.prefix + name.uppercased().replacing("-", with: "_") }

  static let prefix = "KEEPSAKE_"
  /// The variable that names the file; not a setting, because a file can't name itself.
  static let fileVariable = prefix + "CONFIG"

  static let all: [ServeSetting] = [
    ServeSetting(
      name: "data", value: "folder", kind: .text,
      help: "The folder of the cloud's data; created if it doesn't exist. Required."),
    ServeSetting(
      name: "database", value: "address", kind: .text, isSecret: true,
      help: """
        Where a PostgreSQL database is that other servers use, too, such as postgres://keepsake@host/keepsake; without \
        it, the database is a file in the folder.
        """),
    ServeSetting(
      name: "database-connections", value: "count", kind: .number(1...256), standard: "16",
      help: """
        With --database, how many connections to each database this server has, besides one to listen; about two for \
        each core of the database, for all servers together, are enough.
        """),
    ServeSetting(
      name: "shard", value: "name=address", kind: .list, isSecret: true,
      help: """
        With --database, a further PostgreSQL database over which the players are spread, such as \
        two=postgres://keepsake@host/keepsake; may be repeated. All servers need the same ones, under the same names.
        """),
    ServeSetting(
      name: "contents", value: "place", kind: .list,
      help: """
        With --database, where contents above 1 MiB are kept: rows (in the database, the default), folder:/PATH for a \
        folder that all servers share, or s3://BUCKET/PREFIX?region=REGION for object storage, with endpoint=, style=, \
        credentials= and profile=. May be repeated: new ones are put in the first place, and the others are read, too.
        """),
    ServeSetting(
      name: "port", value: "port", kind: .number(0...65_535), standard: "8080",
      help: "The port; 0 picks any free one."),
    ServeSetting(
      name: "host", value: "host", kind: .text, standard: "127.0.0.1",
      help: "The address to listen on. Any other than loopback needs a certificate, or --behind-proxy."),
    ServeSetting(
      name: "tls-certificate", value: "file", kind: .text,
      help: """
        The certificate and its chain in PEM: the server then speaks HTTPS, with HTTP/2. Read again when the file \
        changes.
        """),
    ServeSetting(name: "tls-key", value: "file", kind: .text, help: "The certificate's private key in PEM."),
    ServeSetting(
      name: "behind-proxy", value: "flag", kind: .flag, standard: "false",
      help: "Accept plain HTTP on any address, because a proxy with TLS stands in front of the server."),
    ServeSetting(
      name: "metrics-port", value: "port", kind: .number(0...65_535),
      help: "A port for monitoring: /health/live, /health/ready and /metrics; 0 picks any free one."),
    ServeSetting(
      name: "metrics-host", value: "host", kind: .text, standard: "127.0.0.1",
      help: "The address of the port for monitoring."),
    ServeSetting(
      name: "admin-port", value: "port", kind: .number(0...65_535),
      help: "A port for the studio's staff and servers, /admin/v1, with admin keys; 0 picks any free one."),
    ServeSetting(
      name: "admin-host", value: "host", kind: .text, standard: "127.0.0.1",
      help: "The address of the port for the studio. Any other than loopback needs --behind-proxy."),
    ServeSetting(
      name: "app-keys-file", value: "file", kind: .text,
      help: """
        A file with the keys with which games register, one on each line. Read again when it changes: removing a key \
        revokes it. Without any key, one is created at the first start.
        """),
    ServeSetting(
      name: "app-key", value: "key", kind: .list, isSecret: true,
      help: """
        A key with which games register; may be repeated. Other users of the machine see it: rather use \
        --app-keys-file, or the variable.
        """),
    ServeSetting(
      name: "token-days", value: "days", kind: .number(2...10_000), standard: "400",
      help: "How long a device's token is valid. It is renewed by use after half of that."),
    ServeSetting(
      name: "quota", value: "size", kind: .size, standard: "64M",
      help: """
        How much each player may store: bytes, or a number with K, M, G or T (1G is 1 GiB); none for \
        no limit but the disk.
        """),
    ServeSetting(
      name: "set-back", value: "policy", kind: .choice(SetBackPolicy.allCases.map(\.rawValue)), standard: "flag",
      help: """
        What happens with a device whose store went back to an older state: flag only marks it for the studio, ask \
        also tells the game, and refuse takes nothing that it saves until the studio clears it.
        """),
    ServeSetting(
      name: "upload-room", value: "size", kind: .size, standard: "8G",
      help: "How much of the disk the unfinished uploads of all players may take together, at least 256M."),
    ServeSetting(
      name: "upload-files", value: "count", kind: .number(1...1_000_000), standard: "16384",
      help: "How many unfinished uploads there may be, of all players together."),
    ServeSetting(
      name: "authoritative", value: "currencies", kind: .list,
      help: """
        Currencies that no device can earn, separated by commas: only orders of the game's own servers make more of \
        them.
        """),
    ServeSetting(
      name: "identity", value: "issuer", kind: .issuers,
      help: """
        An issuer of identities with which players sign in: a name, and then key=value, such as \
        "apple audience=com.example.garden"; may be repeated. docs/OPERATIONS.md has all keys.
        """),
    ServeSetting(
      name: "webhook", value: "endpoint", kind: .webhooks,
      help: """
        A backend that is told what happens: a name, and then key=value, such as \
        "shop url=https://shop.example.com/hook secrets=/etc/keepsake/shop"; may be repeated. docs/WEBHOOKS.md has all \
        keys.
        """),
    ServeSetting(
      name: "webhook-conflict-minutes", value: "minutes", kind: .number(1...10_080), standard: "10",
      help: "How long a slot has to show several versions before webhooks are told."),
    ServeSetting(
      name: "trusted-proxy", value: "range", kind: .list,
      help: """
        A proxy, or a range of them (10.0.0.0/8), whose X-Forwarded-For says who a client is; may be repeated. Without \
        it, limits by address count a proxy as one client.
        """),
    ServeSetting(
      name: "proxy-protocol", value: "flag", kind: .flag, standard: "false",
      help: "Connections from trusted proxies begin with the header of the PROXY protocol (v1 or v2)."),
    ServeSetting(
      name: "registrations-per-address", value: "count", kind: .number(1...1_000_000), standard: "600",
      help: "New players from one address in an hour, a sixth of them at once."),
    ServeSetting(
      name: "log-level", value: "level", kind: .choice(["trace", "debug", "info", "notice", "warning", "error"]),
      standard: "notice", help: "What is logged: this level and those above it."),
    ServeSetting(
      name: "log-format", value: "format", kind: .choice(["text", "json"]), standard: "text",
      help: "How it is logged, on standard error: lines for people, or one JSON object on each line."),
  ]

  static func named(_ name: String) -> ServeSetting? { all.first { $0.name == name } }
}

extension ArgumentHelp {
  /// The help of a setting's flag.
  static func setting(_ name: String) -> ArgumentHelp {
    guard let setting = ServeSetting.named(name) else { return ArgumentHelp("\(name)") }
    let standard = setting.standard.map { $0 == "false" ? "" : " (default: \($0))" } ?? ""
    return ArgumentHelp("\(setting.help)\(standard)", valueName: setting.value)
  }
}
#endif
