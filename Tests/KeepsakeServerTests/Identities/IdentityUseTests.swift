#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Tokens that may be used once, whatever comes of it.
@Suite("Identities for one use", .hangLimit) struct IdentityUseTests {
  private let issuer = TestIssuer()

  private func with(_ body: (LiveServer) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      var login = try issuer.configuration(in: folder)
      login.isSingleUse = true
      func change(_ configuration: inout ServerConfiguration) { configuration.identityIssuers = [login] }
      try await LiveServer.with(change: change, body)
    }
  }

  /// Tokens of the same person, each another one.
  private func tokens() throws -> [String] { try (0..<5).map { try issuer.token(of: "ada", ["jti": "\($0)"]) } }

  private func link(_ client: Client, _ token: String) async throws -> Client.Answer {
    try await client.call("POST", "/v1/identities", json: #"{"issuer": "login", "proof": "\#(token)"}"#)
  }

  private func join(_ client: Client, _ token: String) async throws -> Client.Answer {
    try await client.call(
      "POST", "/v1/identities/join", json: #"{"issuer": "login", "proof": "\#(token)", "name": "new"}"#)
  }

  @Test("a token that a device has shown to join is no good for another one, also if nothing came of it")
  func shown() async throws {
    let tokens = try tokens()
    try await with { server in
      let (phone, _) = try await server.client.register("phone")
      let (guest, _) = try await server.client.register("guest")
      let (thief, _) = try await server.client.register("thief")
      func expectUseless(_ token: String, _ what: String) async throws {
        #expect(try await link(thief, token).code == "identity_refused", "\(what)")
        #expect(try await join(thief, token).code == "identity_refused", "\(what)")
      }
      #expect(try await join(phone, tokens[1]).code == "identity_unknown")
      try await expectUseless(tokens[1], "it led to nobody")
      // The device itself may do something else with it.
      #expect(try await link(phone, tokens[1]).status == 200)
      #expect(try await join(phone, tokens[2]).status == 400)
      try await expectUseless(tokens[2], "it led to the device's own player")
      let joined = try await join(guest, tokens[3])
      let again = try await join(guest, tokens[4])
      #expect(joined.status == 201 && again.json["device"] as? String == joined.json["device"] as? String)
      try await expectUseless(tokens[4], "the device had joined with another one")
    }
  }

  @Test("a device that has joined and was removed doesn't come back with the token that it joined with")
  func removed() async throws {
    let tokens = try tokens()
    try await with { server in
      let (phone, _) = try await server.client.register("phone")
      let (guest, _) = try await server.client.register("guest")
      #expect(try await link(phone, tokens[1]).status == 200)
      let joined = try await join(guest, tokens[2])
      // Its response may have been lost.
      #expect(try await join(guest, tokens[2]).json["device"] as? String == joined.json["device"] as? String)
      let device = try #require(joined.json["device"] as? String)
      #expect(try await phone.call("DELETE", "/v1/devices/\(device)").status == 204)
      // That has removed what it had linked, too: the player links it anew.
      #expect(try await link(phone, tokens[3]).status == 200)
      #expect(try await join(guest, tokens[2]).code == "identity_refused")
      #expect((try await phone.call("GET", "/v1/devices").json["devices"] as? [Any])?.count == 1)
      let fresh = try await join(guest, tokens[4])
      #expect(fresh.status == 201 && fresh.json["device"] as? String != device)
    }
  }
}
#endif
