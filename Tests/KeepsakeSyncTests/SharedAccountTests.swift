import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeSync

/// Asking for a shared container over HTTP.
@Suite(.hangLimit) struct SharedAccountTests {
  private func credentials(_ server: CannedServer) -> CloudCredentials {
    CloudCredentials(
      url: server.url, device: DeviceID(high: 0, low: 1), player: PlayerID(high: 0, low: 2),
      container: ContainerID(high: 0, low: 3), token: "parent")
  }

  private static func refusal(_ code: String) -> CannedServer.Reply {
    .http("403 Forbidden", body: #"{"error":{"code":"\#(code)","message":"no"}}"#)
  }

  @Test("a shared container is asked for with its name and the parent's token, and without an app key")
  func requests() async throws {
    let server = try CannedServer { _, _ in Self.refusal("not_entitled") }
    defer { server.stop() }
    let account = HTTPAccount(shared: "studio.coins", parent: credentials(server))
    var random = SystemRandomNumberGenerator()
    let (code, next) = (RecoveryCode(using: &random), RecoveryCode(using: &random))
    let calls: [() async throws -> Void] = [
      { _ = try await account.register(name: "x") }, { _ = try await account.join(code: "ABC", name: "x") },
      { _ = try await account.recover(code, next: next, name: "x") },
    ]
    for call in calls {
      await #expect { try await call() } throws: { ($0 as? AccountError)?.code == .notEntitled }
    }
    let paths = ["devices", "pairing/join", "recovery/join"].map { "POST /v1/shared/studio.coins/\($0) " }
    #expect(server.requests.count == 3)
    for (head, path) in zip(server.requests, paths) {
      #expect(head.hasPrefix(path) && head.contains("Bearer parent"), "\(head)")
      #expect(!head.lowercased().contains("keepsake-app-key"), "\(head)")
    }
  }

  @Test("a server that doesn't know shared containers is refused with a sentence that says so")
  func olderServer() async throws {
    let server = try CannedServer { _, _ in
      .http("404 Not Found", body: #"{"error":{"code":"not_found","message":"no"}}"#)
    }
    defer { server.stop() }
    let account = HTTPAccount(shared: "studio.coins", parent: credentials(server))
    let error = await #expect(throws: AccountError.self) { _ = try await account.register(name: "x") }
    #expect(error?.message.contains("newer version") == true && error?.isRefusal == true)
  }

  @Test("a game that may only read is told so by everything that it asks for as a device")
  func readOnly() async throws {
    let server = try CannedServer { _, _ in Self.refusal("read_only") }
    defer { server.stop() }
    let credentials = credentials(server)
    let code: RecoveryCode = {
      var random = SystemRandomNumberGenerator()
      return RecoveryCode(using: &random)
    }()
    let calls: [() async throws -> Void] = [
      { _ = try await HTTPAccount.pairingCode(for: credentials) },
      { try await HTTPAccount.setRecoveryCode(code, for: credentials) },
      { try await HTTPAccount.deletePlayer(for: credentials) },
      { _ = try await HTTPAccount.link("proof", ofIssuer: "login", for: credentials) },
    ]
    for call in calls { await #expect { try await call() } throws: { ($0 as? AccountError)?.code == .readOnly } }
  }

  @Test(
    "each 403 of an exchange has its kind of failure, and no device is told that it was removed",
    arguments: [
      ("not_entitled", TransportFailure.Kind.notEntitled), ("read_only", .server(retryAfterMilliseconds: nil)),
      ("retired", .unauthorized),
    ])
  func kinds(code: String, kind: TransportFailure.Kind) async throws {
    let server = try CannedServer { _, _ in Self.refusal(code) }
    defer { server.stop() }
    let failure = await #expect(throws: TransportFailure.self) {
      _ = try await HTTPTransport(credentials(server)).exchange(ExchangeRequest(cursor: .start, limit: 10))
    }
    #expect(failure?.kind == kind)
  }
}
