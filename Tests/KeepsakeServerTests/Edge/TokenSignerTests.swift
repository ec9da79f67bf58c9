#if Cloud
import Crypto
import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeServer

@Suite("Tokens and their ages")
struct TokenSignerTests {
  private static let day: Int64 = 86_400_000
  private let identity: DeviceIdentity

  init() {
    var source = SystemRandomNumberGenerator()
    identity = DeviceIdentity(
      device: DeviceID(using: &source), player: PlayerID(using: &source), container: ContainerID(using: &source),
      app: AppID(ofKey: "an-app-key"))
  }

  private func secret(_ byte: UInt8, created: Int64 = 0) -> ServerSecrets.Secret {
    ServerSecrets.Secret(createdMilliseconds: created, bytes: Data(repeating: byte, count: 32))
  }

  /// A token as releases without ages made it.
  private func undated(_ secret: ServerSecrets.Secret) -> String {
    var payload = Data([1])
    for part in [identity.device.bytes, identity.player.bytes, identity.container.bytes, identity.app.bytes] {
      payload.append(part)
    }
    payload.append(
      contentsOf: HMAC<SHA256>.authenticationCode(for: payload, using: SymmetricKey(data: secret.bytes)))
    return payload.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  @Test("a token has its holder and the time of its issue; it is due after half of its lifetime and then expires")
  func ages() throws {
    let signer = TokenSigner(secrets: [secret(1)], lifetimeDays: 10)
    let token = signer.token(for: identity, now: 5 * Self.day)
    let new = try #require(signer.verify(token, now: 5 * Self.day))
    #expect(new.identity == identity && new.issuedMilliseconds == 5 * Self.day && new.renewals == 0)
    #expect(!new.isDue && !new.isExpired)
    let used = try #require(signer.verify(token, now: 10 * Self.day + 1))
    #expect(used.isDue && !used.isExpired)
    let old = try #require(signer.verify(token, now: 15 * Self.day + 1))
    #expect(old.isDue && old.isExpired)
    let renewed = try #require(signer.verify(signer.renewed(old, now: 16 * Self.day), now: 16 * Self.day))
    #expect(renewed.identity == identity && renewed.renewals == 1 && !renewed.isDue && !renewed.isExpired)
  }

  @Test("a clock that was set back makes no token old")
  func clockSetBack() throws {
    let signer = TokenSigner(secrets: [secret(1)], lifetimeDays: 10)
    let token = signer.token(for: identity, now: 100 * Self.day)
    let early = try #require(signer.verify(token, now: 0))
    #expect(!early.isDue && !early.isExpired)
    let renewed = try #require(signer.verify(signer.renewed(early, now: 0), now: 0))
    #expect(renewed.issuedMilliseconds == 100 * Self.day, "the later token counts")
    let extreme = TokenSigner(secrets: [secret(1)]).token(for: identity, now: .min)
    #expect(signer.verify(extreme, now: .max) != nil, "the difference of the times doesn't overflow")
  }

  @Test("two secrets are valid, and a token under the second is due; under older ones it is for renewal only")
  func secrets() throws {
    let token = TokenSigner(secrets: [secret(1)]).token(for: identity, now: 0)
    let previous = try #require(TokenSigner(secrets: [secret(2), secret(1)]).verify(token, now: 0))
    #expect(previous.isDue && !previous.isExpired)
    let older = try #require(TokenSigner(secrets: [secret(3), secret(2), secret(1)]).verify(token, now: 0))
    #expect(older.isDue && older.isExpired)
    #expect(TokenSigner(secrets: [secret(3), secret(2)]).verify(token, now: 0) == nil)
  }

  @Test("a token of a release without ages counts from when its secret was first seen, and is renewed at once")
  func undatedTokens() throws {
    let own = secret(1, created: 100 * Self.day)
    let signer = TokenSigner(secrets: [own], lifetimeDays: 10)
    let token = undated(own)
    let verified = try #require(signer.verify(token, now: 101 * Self.day))
    #expect(verified.identity == identity && verified.isDue && !verified.isExpired && verified.renewals == 0)
    #expect(try #require(signer.verify(token, now: 111 * Self.day)).isExpired)
    #expect(signer.verify(undated(secret(2)), now: 0) == nil)
  }

  @Test("banks accept what each known secret signed, and sign with the newest")
  func bankKeys() {
    let before = TokenSigner(secrets: [secret(1)]).bankKeys
    let after = TokenSigner(secrets: [secret(2), secret(1)]).bankKeys
    #expect(after.count == 2 && after[1] == before[0] && after[0] != before[0])
  }
}
#endif
