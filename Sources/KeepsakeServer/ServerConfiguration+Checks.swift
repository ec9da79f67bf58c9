#if Cloud
import Foundation
import KeepsakeReplication

extension ServerConfiguration {
  /// A token that ended sooner would be lost by players who pause; one that never ended couldn't be outlived.
  private static let tokenLifetimes = 2...10_000
  private static let maximumIssuers = 64
  private static let maximumWebhooks = 8

  /// Throws a `ServerError` with the code `configuration` if a server can't be run like this.
  func check() throws {
    let ports = [("port", port), ("port for monitoring", metricsPort ?? 0), ("port for the studio", adminPort ?? 0)]
    for (name, port) in ports
    where !(0...65535).contains(port) {
      throw ServerError(.configuration, "The \(name) has to be a number from 0 to 65535, not \(port).")
    }
    guard Self.tokenLifetimes.contains(tokenDays) else {
      throw ServerError(
        .configuration,
        """
        Tokens have to be valid for \(Self.tokenLifetimes.lowerBound) to \(Self.tokenLifetimes.upperBound) days, not \
        \(tokenDays).
        """)
    }
    if let quota, quota <= 0 {
      throw ServerError(.configuration, "The quota has to be a number of bytes above 0, not \(quota).")
    }
    guard uploadBudget.bytes >= Int64(ServerLimits.contentBytes), uploadBudget.files > 0 else {
      throw ServerError(
        .configuration,
        """
        Unfinished uploads need room for one content at least: \(ServerLimits.contentBytes) bytes, not \
        \(uploadBudget.bytes).
        """)
    }
    if tls == nil, !isBehindProxy, !Self.isLoopback(host) {
      throw ServerError(
        .configuration,
        """
        Without a certificate, only this machine may reach the server, and not \(host): name a certificate and its key \
        (--tls-certificate, --tls-key), or say that a proxy with TLS stands in front of it (--behind-proxy).
        """)
    }
    try checkContents()
    try checkShards()
    try checkAdmin()
    guard !expectsProxyProtocol || !trustedProxies.isEmpty else {
      throw ServerError(
        .configuration, "The PROXY protocol needs the proxies that are believed: name them with --trusted-proxy.")
    }
    guard !expectsProxyProtocol || tls == nil else {
      throw ServerError(
        .configuration, "Behind a proxy that speaks the PROXY protocol, TLS ends at the proxy: name no certificate.")
    }
    let authoritative = Set(authoritative.map(\.canonical))
    guard authoritative.count <= Wallet.maximumCurrencies else {
      throw ServerError(
        .configuration,
        "At most \(Wallet.maximumCurrencies) currencies can be authoritative, not \(authoritative.count).")
    }
    for objection in authoritative.compactMap({ NameRule.currency.objection(to: $0) }) {
      throw ServerError(.configuration, "\(objection).")
    }
    try checkIdentities()
    try checkWebhooks()
  }

  private func checkWebhooks() throws {
    var names: Set<String> = []
    for webhook in webhooks {
      try webhook.check()
      guard names.insert(webhook.name).inserted else {
        throw WebhookEndpoint.mistake(webhook.name, "there are two of this name")
      }
    }
    guard names.count <= Self.maximumWebhooks else {
      throw ServerError(.configuration, "There can be at most \(Self.maximumWebhooks) webhooks, not \(names.count).")
    }
    guard (1...10_080).contains(webhookConflictMinutes) else {
      throw ServerError(
        .configuration, "A conflict has to be open for 1 to 10080 minutes, not \(webhookConflictMinutes).")
    }
  }

  private func checkIdentities() throws {
    var names: Set<String> = []
    for name in identityIssuers.map(\.name) + identityVerifiers.keys {
      guard IdentityIssuer.isName(name) else { throw IdentityIssuer.mistake(name, IdentityIssuer.nameRule) }
      guard names.insert(name).inserted else { throw IdentityIssuer.mistake(name, "there are two of this name") }
    }
    guard names.count <= Self.maximumIssuers else {
      throw ServerError(
        .configuration, "There can be at most \(Self.maximumIssuers) issuers of identities, not \(names.count).")
    }
    for issuer in identityIssuers { try issuer.check() }
  }

  private func checkContents() throws {
    guard database != nil || contents.isEmpty else {
      throw ServerError(
        .configuration,
        "Large contents are in the data folder, unless there is a PostgreSQL database: --contents needs --database.")
    }
    _ = try ContentPlace.all(contents)
  }

  private func checkShards() throws {
    guard database != nil || shards.isEmpty else {
      throw ServerError(.configuration, "Shards are further PostgreSQL databases: --shard needs --database.")
    }
    guard shards.isEmpty || webhooks.isEmpty else {
      throw ServerError(.configuration, "With several databases there are no webhooks yet: leave out --webhook.")
    }
    _ = try ShardAddress.all(shards)
  }

  private func checkAdmin() throws {
    guard adminPort != nil else { return }
    guard saves != nil else {
      throw ServerError(.configuration, "The port for the studio needs a reader of saves.")
    }
    if !isBehindProxy, !Self.isLoopback(adminHost) {
      throw ServerError(
        .configuration,
        """
        The port for the studio is plain HTTP: only this machine may reach it, and not \(adminHost), unless a proxy \
        with TLS stands in front of it (--behind-proxy).
        """)
    }
  }

  /// Whether only this machine reaches an address.
  static func isLoopback(_ host: String) -> Bool {
    if ["localhost", "::1"].contains(host.lowercased()) { return true }
    let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
    return numbers.count == 4 && numbers[0] == 127 && !numbers.contains(nil)
  }
}
#endif
