#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL

/// Which server delivers an endpoint's events: a row of each endpoint says so. No transaction of a player touches it.
extension PostgreSQLStorage {
  func webhookClaims() async throws -> [String: WebhookClaim] {
    let statement = PostgreSQLStatement("SELECT holder, beat, retries, report, name FROM webhook_endpoint")
    var claims: [String: WebhookClaim] = [:]
    for row in try await read([statement])[0] { claims[try row.text(4)] = try WebhookClaim(row) }
    return claims
  }

  func takeWebhooks(of endpoint: String, by holder: Data, after claim: WebhookClaim?) async throws -> WebhookClaim? {
    guard let claim else {
      let added = try await run([Self.addingEndpoint(endpoint, holder: holder, beat: 1)])[0].count
      return added > 0 ? WebhookClaim(holder: holder, beat: 1) : nil
    }
    let statement = PostgreSQLStatement(
      """
      UPDATE webhook_endpoint SET holder = $2, beat = beat + 1 WHERE name = $1 AND holder = $3 AND beat = $4
      RETURNING holder, beat, retries, report
      """, [.bytes(Data(endpoint.utf8)), .bytes(holder), .bytes(claim.holder), .int(claim.beat)])
    return try await run([statement])[0].first.map(WebhookClaim.init)
  }

  func renewWebhooks(of endpoint: String, by holder: Data, _ report: WebhookReport) async throws -> WebhookClaim? {
    let statement = PostgreSQLStatement(
      """
      UPDATE webhook_endpoint SET beat = beat + 1, report = $3 WHERE name = $1 AND holder = $2
      RETURNING holder, beat, retries, report
      """, [.bytes(Data(endpoint.utf8)), .bytes(holder), .bytes(try EncodedRows.encode(report))])
    return try await run([statement])[0].first.map(WebhookClaim.init)
  }

  func releaseWebhooks(of endpoint: String, by holder: Data, _ report: WebhookReport) async throws {
    let statement = PostgreSQLStatement(
      """
      UPDATE webhook_endpoint SET holder = '', beat = beat + 1, report = $3 WHERE name = $1 AND holder = $2
      """, [.bytes(Data(endpoint.utf8)), .bytes(holder), .bytes(try EncodedRows.encode(report))])
    _ = try await run([statement])
  }
}

extension WebhookClaim {
  fileprivate init(_ row: PostgreSQLRow) throws {
    self.init(
      holder: try row.bytes(0), beat: try row.int(1), retries: try row.int(2),
      report: try row.optionalBytes(3).map { try decoded(WebhookReport.self, $0) } ?? WebhookReport())
  }
}
#endif
