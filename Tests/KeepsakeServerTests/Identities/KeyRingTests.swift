#if Cloud
import Crypto
import Foundation
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// When the address of an issuer's keys is asked, and what is done with what it says.
@Suite("Keys at an issuer's address", .hangLimit) struct KeyRingTests {
  private let clock = IdentityClock()
  private let log = RecordedLog()

  private func ring(_ source: StubKeySource, limit: Duration = Patience.limit) throws -> KeyRing {
    KeyRing(
      issuer: "login", address: try #require(URL(string: "https://login.test/keys")), algorithm: .es256,
      source: source, limit: limit, clock: clock.read, log.logger)
  }

  private func isUnavailable(_ ring: KeyRing, _ id: String) async -> Bool {
    do {
      _ = try await ring.key(named: id)
      return false
    } catch {
      return (error as? IdentityFailure)?.kind == .unavailable
    }
  }

  @Test("however many tokens come with unknown keys, the address is asked once a minute")
  func flood() async throws {
    let source = StubKeySource(try TestIssuer.set([TestIssuer().jwk, TestIssuer(kid: "two").jwk]))
    let ring = try ring(source)
    #expect(try await ring.key(named: "one") != nil && source.count == 1)
    for number in 0..<1_000 { #expect(try await ring.key(named: "unknown \(number)") == nil) }
    clock.pass(seconds: 59)
    #expect(try await ring.key(named: "unknown") == nil && source.count == 1)
    clock.pass(seconds: 1)
    source.change(to: try TestIssuer.set([TestIssuer(kid: "three").jwk]))
    #expect(try await ring.key(named: "three") != nil && source.count == 2)
    #expect(try await ring.key(named: "one") == nil && source.count == 2, "it was withdrawn")
    // Also while the address says nothing usable.
    source.change(to: nil)
    clock.pass(seconds: 60)
    for _ in 0..<100 { #expect(try await ring.key(named: "unknown") == nil) }
    #expect(source.count == 3)
  }

  @Test("those who need keys at the same time wait for one request")
  func together() async throws {
    let gate = AsyncStream<Void>.makeStream()
    let source = StubKeySource(try TestIssuer.set([TestIssuer().jwk])) { for await _ in gate.stream {} }
    let ring = try ring(source)
    let waiting = (0..<20).map { _ in Task { try await ring.key(named: "one") != nil } }
    try await until("the address is asked") { source.count == 1 }
    gate.continuation.finish()
    var found = 0
    for task in waiting where try await task.value { found += 1 }
    #expect(found == 20 && source.count == 1)
  }

  @Test("a withdrawn key is accepted for an hour at most, and while the address is down, keys stay for a day")
  func ages() async throws {
    let source = StubKeySource(try TestIssuer.set([TestIssuer().jwk, TestIssuer(kid: "two").jwk]))
    let ring = try ring(source)
    #expect(try await ring.key(named: "one") != nil)
    source.change(to: try TestIssuer.set([TestIssuer(kid: "two").jwk, TestIssuer(kid: "three").jwk]))
    clock.pass(seconds: 3_599)
    #expect(try await ring.key(named: "one") != nil && source.count == 1)
    clock.pass(seconds: 1)
    #expect(try await ring.key(named: "one") == nil && source.count == 2)
    source.change(to: nil)
    clock.pass(seconds: 86_399)
    #expect(try await ring.key(named: "two") != nil && source.count == 3)
    #expect(log.lines.value.contains { $0.level == .error && $0.text.contains("login") })
    clock.pass(seconds: 1)
    #expect(await isUnavailable(ring, "two") && source.count == 3, "it was asked a second ago")
    clock.pass(seconds: 60)
    #expect(await isUnavailable(ring, "two") && source.count == 4)
    source.change(to: try TestIssuer.set([TestIssuer(kid: "two").jwk]))
    #expect(await isUnavailable(ring, "two"))
    clock.pass(seconds: 60)
    #expect(try await ring.key(named: "two") != nil)
  }

  @Test("an address that says nothing, or too late, leaves the identity unchecked, and nobody hangs")
  func hanging() async throws {
    let source = StubKeySource(try TestIssuer.set([TestIssuer().jwk])) {
      // Until it is cancelled.
      for await _ in AsyncStream<Void>.makeStream().stream {}
      throw CancellationError()
    }
    let ring = try ring(source, limit: .milliseconds(1))
    #expect(await isUnavailable(ring, "one") && source.count == 1)
    #expect(log.lines.value.contains { $0.text.contains("took too long") })
  }

  @Test("keys of other kinds and purposes are left out; what is too much, ambiguous or nothing is refused")
  func sets() throws {
    let (one, two) = (TestIssuer().jwk, TestIssuer(kid: "two").jwk)
    let others: [[String: Any]] = [
      ["kty": "oct", "k": "c2VjcmV0", "kid": "shared"], ["kty": "new", "kid": "x"], [:],
      two.merging(["use": "enc"]) { $1 }, two.merging(["alg": "ES384"]) { $1 }, two.merging(["x": "AA"]) { $1 },
      two.merging(["crv": "P-384"]) { $1 },
    ]
    let set = try KeySet(TestIssuer.set(others + [one]), for: .es256)
    #expect(set.key(named: "one") != nil && set.key(named: nil) != nil)
    #expect(set.key(named: "two") == nil && set.key(named: "shared") == nil)
    let both = try KeySet(TestIssuer.set([one, two]), for: .es256)
    #expect(both.key(named: "two") != nil && both.key(named: nil) == nil, "it isn't known which")
    let alone = try KeySet(JSONSerialization.data(withJSONObject: one), for: .es256)
    #expect(alone.key(named: "one") != nil)
    func failure(_ bytes: Data) -> String? {
      do {
        _ = try KeySet(bytes, for: .es256)
        return nil
      } catch {
        return "\(error)"
      }
    }
    #expect(failure(try TestIssuer.set([one, one]))?.contains("two keys") == true)
    #expect(failure(try TestIssuer.set(others))?.contains("no key") == true)
    #expect(failure(try TestIssuer.set((0...64).map { TestIssuer(kid: "\($0)").jwk }))?.contains("larger") == true)
    #expect(failure(Data(repeating: 0x20, count: KeySet.maximumBytes + 1))?.contains("larger") == true)
    #expect(failure(Data("not JSON".utf8)) != nil && failure(Data()) != nil)
    #expect(failure(Data(TestIssuer().privatePEM.utf8)) != nil, "a private key is no public one")
  }

  @Test("a real address is asked by HTTP: what is too large, redirected or an error is refused")
  func real() async throws {
    try await LiveServer.with { server in
      let source = HTTPKeySource()
      let health = server.url.appendingPathComponent("health")
      #expect(try await source.keys(at: health, limit: 1_000) == Data(#"{"status":"ok"}"#.utf8))
      await #expect(throws: KeyDownload.Failure.self) { try await source.keys(at: health, limit: 5) }
      let missing = server.url.appendingPathComponent("nothing")
      await #expect(throws: KeyDownload.Failure.self) { try await source.keys(at: missing, limit: 1_000) }
      let port = try TestPort.unused()
      let closed = try #require(URL(string: "http://127.0.0.1:\(port)/"))
      await #expect(throws: (any Error).self) { try await source.keys(at: closed, limit: 1_000) }
    }
  }

  @Test("a file of keys is read again when it changes, and a mistake in it locks nobody out")
  func file() async throws {
    let folder = try TemporaryFolder()
    let (old, new) = (TestIssuer(), TestIssuer(kid: "two"))
    let issuer = try old.configuration(in: folder.url)
    let keys = try IssuerKeys(of: issuer, source: StubKeySource(nil), clock: clock.read, logger: log.logger)
    guard case .file(let file) = issuer.keys else { return }
    #expect(try await keys.key(named: "any") != nil)
    try TestIssuer.set([old.jwk, new.jwk]).write(to: file)
    #expect(try await keys.key(named: "two") != nil)
    #expect(try await keys.key(named: "any") == nil)
    try Data("a mistake".utf8).write(to: file)
    #expect(try await keys.key(named: "two") != nil)
    try FileManager.default.removeItem(at: file)
    #expect(throws: ServerError.self) {
      try IssuerKeys(of: issuer, source: StubKeySource(nil), clock: clock.read, logger: log.logger)
    }
  }
}
#endif
