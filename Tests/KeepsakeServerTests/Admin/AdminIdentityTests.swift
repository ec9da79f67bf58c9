#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// The ways back of a player, as the studio sees and ends them.
@Suite("Identities in the studio's hand", .hangLimit) struct AdminIdentityTests {
  @Test("identities are shown, exported with the recovery code, and unlinked by a key for devices")
  func identities() async throws {
    try await TemporaryFolder.with { folder in
      let (issuer, data) = (TestIssuer(), folder.appendingPathComponent("server"))
      let login = try issuer.configuration(in: folder)
      let server = try await LiveServer.start(
        data: data, change: { ($0.adminPort, $0.saves, $0.identityIssuers) = (0, TextReader(), [login]) })
      let stage = AdminStage(server: server, data: data, folder: folder)
      let (phone, account) = try await server.client.register()
      let token = try issuer.token(of: "ada")
      let linked = try await phone.call(
        "POST", "/v1/identities", json: #"{"issuer": "login", "proof": "\#(token)"}"#)
      let id = try #require(linked.json["id"] as? String)
      let digest = String(repeating: "a", count: 64)
      #expect(try await phone.call("PUT", "/v1/recovery", json: #"{"digest": "\#(digest)"}"#).status == 204)

      let client = try stage.client()
      let player = "/admin/v1/players/\(account.player)"
      let shown = try await client.call("GET", player).json["identities"] as? [[String: Any]]
      #expect(shown?.count == 1 && shown?[0]["id"] as? String == id && shown?[0]["issuer"] as? String == "login")
      let export = try await client.call("GET", "\(player)/export").body
      for line in [#"{"identity""#, #"{"recoveryCode""#] {
        #expect(export.range(of: Data(line.utf8)) != nil, "\(line)")
      }
      #expect(export.range(of: Data(id.utf8)) == nil)

      let path = "\(player)/identities/\(id)"
      #expect(try await stage.client([.read], name: "reader").call("DELETE", path).code == "scope_missing")
      #expect(try await client.call("DELETE", "\(player)/identities/xyz").status == 400)
      #expect(try await client.call("DELETE", path).status == 204)
      #expect(try await client.call("DELETE", path).status == 404)
      #expect((try await phone.call("GET", "/v1/identities").json["identities"] as? [Any])?.isEmpty == true)
      let rows = try stage.audit().filter { $0.act == "identity.unlink" }
      #expect(rows.map(\.result) == ["scope_missing", "bad_request", "done", "not_found"])
      #expect(rows[2].subject == ContentHash(of: Data(id.utf8)))
      try await server.stop()
    }
  }
}
#endif
