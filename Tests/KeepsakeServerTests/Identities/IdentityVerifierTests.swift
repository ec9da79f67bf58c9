#if Cloud
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Verifiers that hang", .hangLimit) struct IdentityVerifierTests {
  /// Doesn't end when it is cancelled, but when it is released.
  private final class Stuck: IdentityVerifier {
    private let waiting = Mutex<[CheckedContinuation<Void, Never>]?>([])

    var count: Int { waiting.withLock { $0?.count ?? 0 } }

    func subject(of proof: IdentityProof) async throws -> String {
      await withCheckedContinuation { continuation in
        let isReleased = waiting.withLock { waiting in
          waiting?.append(continuation)
          return waiting == nil
        }
        if isReleased { continuation.resume() }
      }
      return "ada"
    }

    func release() {
      let all = waiting.withLock { waiting in
        defer { waiting = nil }
        return waiting ?? []
      }
      for continuation in all { continuation.resume() }
    }
  }

  @Test("calls of a verifier that ignore their end count until they end, and hold up no other verifier")
  func stuck() async throws {
    let (stuck, other) = (Stuck(), Stuck())
    other.release()
    func change(_ configuration: inout ServerConfiguration) {
      configuration.identityVerifiers = ["stuck": stuck, "other": other]
      configuration.identityLimit = .milliseconds(100)
    }
    try await LiveServer.with(change: change) { server in
      let (phone, _) = try await server.client.register()
      func show(_ issuer: String) async throws -> Client.Answer {
        try await phone.call("POST", "/v1/identities", json: #"{"issuer": "\#(issuer)", "proof": "a ticket"}"#)
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        let each = ServerLimits.identityChecksPerDevice
        for _ in 0..<ServerLimits.identityChecks / each {
          let (device, _) = try await server.client.register()
          for _ in 0..<each {
            group.addTask {
              let answer = try await device.call(
                "POST", "/v1/identities", json: #"{"issuer": "stuck", "proof": "a ticket"}"#)
              #expect(answer.status == 503 && answer.code == "identity_unavailable")
            }
          }
        }
        try await group.waitForAll()
      }
      try await until("all hang") { stuck.count == ServerLimits.identityChecks }
      let refused = try await show("stuck")
      #expect(refused.status == 503 && refused.code == "busy")
      #expect(stuck.count == ServerLimits.identityChecks)
      try await until("another one answers in time") { try await show("other").status == 200 }
      stuck.release()
      try await until("there is room again") { try await show("stuck").status == 200 }
    }
  }
}
#endif
