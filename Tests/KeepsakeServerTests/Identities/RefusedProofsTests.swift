#if Cloud
import KeepsakeReplication
import Testing

@testable import KeepsakeServer

@Suite struct RefusedProofsTests {
  private static let phone = DeviceID(high: 1, low: 1)

  private func code(_ body: () async throws -> Void) async -> APIError.Code? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? APIError)?.code
    }
  }

  private func refuse(_ proofs: RefusedProofs, _ device: DeviceID = phone, now: Int64) async -> APIError.Code? {
    await code { try await proofs.counting(device, now: now) { throw APIError.identityRefused("x") } }
  }

  @Test("a device waits after ten refused proofs, until their window is over; others don't")
  func window() async throws {
    let proofs = RefusedProofs()
    for _ in 0..<10 { #expect(await refuse(proofs, now: 5) == .identityRefused) }
    #expect(await refuse(proofs, now: 5) == .tooManyGuesses)
    #expect(await refuse(proofs, now: 600_004) == .tooManyGuesses)
    #expect(await refuse(proofs, DeviceID(high: 1, low: 2), now: 5) == .identityRefused)
    #expect(await refuse(proofs, now: 600_005) == .identityRefused)
  }

  @Test("checks that are under way, went well or couldn't be made aren't refused proofs, and only a few run at a time")
  func underWay() async throws {
    let proofs = RefusedProofs()
    for _ in 0..<20 {
      #expect(await code { try await proofs.counting(Self.phone, now: 5) {} } == nil)
      let failed = await code {
        try await proofs.counting(Self.phone, now: 5) { throw APIError.identityUnavailable("x") }
      }
      #expect(failed == .identityUnavailable)
    }
    @Sendable func nested(_ depth: Int) async throws {
      if depth > 0 { try await proofs.counting(Self.phone, now: 5) { try await nested(depth - 1) } }
    }
    #expect(await code { try await nested(ServerLimits.identityChecksPerDevice) } == nil)
    #expect(await code { try await nested(ServerLimits.identityChecksPerDevice + 1) } == .busy)
    #expect(await code { try await nested(1) } == nil)
  }
}
#endif
