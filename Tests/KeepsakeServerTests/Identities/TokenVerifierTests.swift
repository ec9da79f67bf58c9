#if Cloud
import Crypto
import Foundation
import JWTKit
import TestSupport
import Testing

@testable import KeepsakeServer

/// Tokens that are good, and each way in which one can be bad.
@Suite("Tokens of issuers") struct TokenVerifierTests {
  private static let now: Int64 = 1_700_000_000_000
  private static let issuer = TestIssuer()

  private func verifier(
    _ issuer: IdentityIssuer? = nil, keys: Data? = nil, _ change: (inout IdentityIssuer) -> Void = { _ in }
  ) async throws -> TokenVerifier {
    var issuer =
      try issuer
      ?? IdentityIssuer(
        name: "login", issuers: [TestIssuer.address], audiences: [TestIssuer.audience], algorithm: .es256,
        keys: .address(#require(URL(string: "https://login.test/keys"))))
    change(&issuer)
    let source = StubKeySource(try keys ?? TestIssuer.set([Self.issuer.jwk]))
    return TokenVerifier(
      issuer: issuer,
      keys: try IssuerKeys(of: issuer, source: source, clock: { Self.now }, logger: RecordedLog().logger))
  }

  private func verify(
    _ token: String, _ verifier: TokenVerifier, nonce: (String) -> Int64? = { _ in nil }
  ) async throws -> VerifiedIdentity {
    try await verifier.verify(token, nonceExpiry: nonce, now: Self.now)
  }

  /// A bad token, and why it is refused.
  struct Attack: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var reason: String
    var token: @Sendable () throws -> String

    init(_ name: String, _ reason: String, _ token: @escaping @Sendable () throws -> String) {
      (testDescription, self.reason, self.token) = (name, reason, token)
    }

    static func claims(
      _ name: String, _ reason: String, _ changes: @escaping @Sendable () -> [String: Any]
    ) -> Attack {
      Attack(name, reason) { try TokenVerifierTests.issuer.token(of: "ada", at: TokenVerifierTests.now, changes()) }
    }
  }

  static let attacks = [
    Attack("algorithm none, without a signature", "isn't a signed JWT") {
      TestIssuer.part(["alg": "none", "kid": "one"]) + "." + TestIssuer.part(TestIssuer.claims(of: "ada", at: now))
        + "."
    },
    Attack("algorithm none, with another token's signature", "isn't signed with ES256") {
      let signature = try issuer.token(of: "ada", at: now).split(separator: ".")[2]
      return TestIssuer.part(["alg": "none", "kid": "one"]) + "."
        + TestIssuer.part(TestIssuer.claims(of: "ada", at: now)) + "." + signature
    },
    Attack("a key that isn't the issuer's, under the name of one that is", "signature is wrong") {
      try TestIssuer().token(of: "ada", at: now)
    },
    Attack("a key that the issuer doesn't have", "a key that the issuer doesn't have") {
      try TestIssuer(kid: "two").token(of: "ada", at: now)
    },
    Attack("key confusion: HS256 with the public key as the secret", "isn't signed with ES256") {
      let signed =
        TestIssuer.part(["alg": "HS256", "kid": "one"]) + "."
        + TestIssuer.part(TestIssuer.claims(of: "ada", at: now))
      let secret = SymmetricKey(data: Data(issuer.key.publicKey.pemRepresentation.utf8))
      return signed + "."
        + TestIssuer.base64URL(HMAC<SHA256>.authenticationCode(for: Data(signed.utf8), using: secret))
    },
    Attack("key confusion: HS256 with the public key as the secret, said to be ES256", "signature is wrong") {
      let signed =
        TestIssuer.part(["alg": "ES256", "kid": "one"]) + "."
        + TestIssuer.part(TestIssuer.claims(of: "ada", at: now))
      let secret = SymmetricKey(data: Data(issuer.key.publicKey.pemRepresentation.utf8))
      return signed + "."
        + TestIssuer.base64URL(HMAC<SHA256>.authenticationCode(for: Data(signed.utf8), using: secret))
    },
    Attack("a good token's claims replaced", "signature is wrong") {
      let parts = try issuer.token(of: "ada", at: now).split(separator: ".")
      return "\(parts[0])." + TestIssuer.part(TestIssuer.claims(of: "bob", at: now)) + ".\(parts[2])"
    },
    Attack("a header that its reader has to understand", "to know \"crit\"") {
      try issuer.token(of: "ada", at: now, header: ["crit": ["b64"], "b64": false])
    },
    .claims("another issuer", "another issuer's") { ["iss": "https://evil.test"] },
    .claims("no issuer", "another issuer's") { ["iss": NSNull()] },
    .claims("another audience", "another audience") { ["aud": "space"] },
    .claims("only other audiences", "another audience") { ["aud": ["space", "gardens"]] },
    .claims("no audience", "another audience") { ["aud": NSNull()] },
    .claims("expired", "has expired") { ["iat": now / 1_000 - 700, "exp": now / 1_000 - 60] },
    .claims("without an expiry", "when it expires") { ["exp": NSNull()] },
    .claims("without a time of issue", "when it was issued") { ["iat": NSNull()] },
    .claims("issued in the future", "isn't valid yet") { ["iat": now / 1_000 + 61] },
    .claims("not valid yet", "isn't valid yet") { ["nbf": now / 1_000 + 61] },
    .claims("too old, although it never expires", "too old") { ["iat": now / 1_000 - 3_660, "exp": 1e300] },
    .claims("without a subject", "who it is about") { ["sub": NSNull()] },
    .claims("with an empty subject", "who it is about") { ["sub": ""] },
    .claims("with a subject that is too long", "who it is about") { ["sub": String(repeating: "a", count: 513)] },
    .claims("with a number for its subject", "claims can't be read") { ["sub": 17] },
    .claims("oversized", "more than 8192 bytes") { ["padding": String(repeating: "a", count: 8_192)] },
    Attack("no token at all", "isn't a signed JWT") { "ada" },
    Attack("four parts", "isn't a signed JWT") { try issuer.token(of: "ada", at: now) + ".x" },
    Attack("a space after it", "isn't a signed JWT") { try issuer.token(of: "ada", at: now) + " " },
    Attack("a header that isn't JSON", "header can't be read") { "AAAA.AAAA.AAAA" },
  ]

  @Test("a bad token is refused, and its reason said", arguments: attacks)
  func refused(attack: Attack) async throws {
    let verifier = try await verifier()
    let failure = await #expect(throws: IdentityFailure.self) { try await verify(attack.token(), verifier) }
    #expect(failure?.kind == .refused && failure?.reason.contains(attack.reason) == true, "\(failure as Any)")
  }

  @Test("a good token says who it is: the same for a subject, and another for another subject, issuer or name")
  func good() async throws {
    let verifier = try await verifier()
    let ada = try await verify(Self.issuer.token(of: "ada", at: Self.now), verifier)
    #expect(ada.issuer == "login" && ada.uses.isEmpty)
    let later = try Self.issuer.token(
      of: "ada", at: Self.now,
      ["aud": ["x", TestIssuer.audience], "iat": Double(Self.now) / 1_000 - 3_659, "nbf": Self.now / 1_000 + 60])
    #expect(try await verify(later, verifier) == ada)
    let late = try Self.issuer.token(of: "ada", at: Self.now, ["exp": Self.now / 1_000 - 59])
    #expect(try await verify(late, verifier) == ada)
    let bob = try await verify(Self.issuer.token(of: "bob", at: Self.now), verifier)
    let names = [
      ("ada", "x", "login"), ("ada", TestIssuer.address, "other"), ("da", TestIssuer.address + "a", "login"),
    ]
    let others = names.map { VerifiedIdentity.id(of: $0.0, at: $0.1, named: $0.2) }
    #expect(Set(others + [ada.id, bob.id]).count == 5)
    // Further values of `iss` are other spellings of the first.
    let two = try await self.verifier { $0.issuers = [TestIssuer.address, "login.test"] }
    let spelled = try Self.issuer.token(of: "ada", at: Self.now, ["iss": "login.test"])
    #expect(try await verify(spelled, two) == ada)
  }

  @Test("what a server has configured decides: skew, age, audience")
  func configured() async throws {
    let strict = try await verifier { ($0.skewSeconds, $0.maximumAgeSeconds) = (0, 10) }
    let token = try Self.issuer.token(of: "ada", at: Self.now, ["iat": Self.now / 1_000 - 10])
    let failure = await #expect(throws: IdentityFailure.self) { try await verify(token, strict) }
    #expect(failure?.reason == "the token is too old")
    #expect(
      try await verify(Self.issuer.token(of: "ada", at: Self.now, ["iat": Self.now / 1_000 - 9]), strict)
        .issuer == "login")
    let other = try await verifier { $0.audiences = ["space"] }
    let refused = await #expect(throws: IdentityFailure.self) {
      try await verify(Self.issuer.token(of: "ada", at: Self.now), other)
    }
    #expect(refused?.reason == "the token is for another audience")
  }

  @Test("a nonce that is required has to be the server's own; a token for one use is known by what is signed")
  func uses() async throws {
    let verifier = try await verifier { ($0.requiresNonce, $0.isSingleUse) = (true, true) }
    let own: (String) -> Int64? = { $0 == "mine" ? 77 : nil }
    for claim in [NSNull(), "other"] as [Any] {
      let token = try Self.issuer.token(of: "ada", at: Self.now, ["nonce": claim])
      let failure = await #expect(throws: IdentityFailure.self) { try await verify(token, verifier, nonce: own) }
      #expect(failure?.reason.contains("nonce") == true)
    }
    let token = try Self.issuer.token(of: "ada", at: Self.now, ["nonce": "mine", "jti": "1"])
    let first = try await verify(token, verifier, nonce: own)
    #expect(first.uses.map(\.expiresMilliseconds) == [77, Self.now + 660_000])
    // The same claims, signed once more: another signature of the same token.
    let again = try Self.issuer.token(of: "ada", at: Self.now, ["nonce": "mine", "jti": "1"])
    #expect(again != token)
    #expect(try await verify(again, verifier, nonce: own).uses == first.uses)
    let next = try Self.issuer.token(of: "ada", at: Self.now, ["nonce": "mine", "jti": "2"])
    #expect(try await verify(next, verifier, nonce: own).uses[1] != first.uses[1])
  }

  @Test("each algorithm verifies its own tokens and no other's", arguments: TokenAlgorithm.allCases)
  func algorithms(algorithm: TokenAlgorithm) async throws {
    let signer = try Signer(algorithm)
    let folder = try TemporaryFolder()
    let file = folder.url.appendingPathComponent("key.pem")
    try Data(signer.pem.utf8).write(to: file)
    let token = try await signer.token(of: "ada", at: Self.now)
    let issuer = IdentityIssuer(
      name: "login", issuers: [TestIssuer.address], audiences: [TestIssuer.audience], algorithm: algorithm,
      keys: .file(file))
    #expect(try await verify(token, verifier(issuer)).issuer == "login")
    let other: TokenAlgorithm = algorithm == .rs256 ? .ps256 : .rs256
    var wrong = issuer
    wrong.algorithm = other
    if algorithm.rawValue.hasPrefix("RS") || algorithm.rawValue.hasPrefix("PS") {
      // The key fits, and the token says another algorithm than it was signed with.
      let failure = await #expect(throws: IdentityFailure.self) { try await verify(token, verifier(wrong)) }
      #expect(failure?.reason.contains("isn't signed with") == true)
      let renamed = try await signer.token(of: "ada", at: Self.now, named: other)
      let second = await #expect(throws: IdentityFailure.self) { try await verify(renamed, verifier(wrong)) }
      #expect(second?.reason.contains("signature is wrong") == true)
    } else {
      let failure = await #expect(throws: ServerError.self) { try await verifier(wrong) }
      #expect(failure?.code == .configuration)
    }
  }
}

/// Signs tokens with any algorithm.
private struct Signer {
  let algorithm: TokenAlgorithm
  let pem: String
  private let keys: @Sendable () async throws -> JWTKeyCollection

  init(_ algorithm: TokenAlgorithm) throws {
    self.algorithm = algorithm
    switch algorithm {
    case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512:
      let key = try JWTKit.Insecure.RSA.PrivateKey(pem: TestIssuer.rsaKey)
      pem = key.publicKey.pemRepresentation
      let digest: DigestAlgorithm =
        algorithm.rawValue.hasSuffix("256") ? .sha256 : algorithm.rawValue.hasSuffix("384") ? .sha384 : .sha512
      let isPadded = algorithm.rawValue.hasPrefix("PS")
      keys = {
        isPadded
          ? await JWTKeyCollection().add(pss: key, digestAlgorithm: digest)
          : await JWTKeyCollection().add(rsa: key, digestAlgorithm: digest)
      }
    case .es256:
      let key = ES256PrivateKey()
      pem = key.publicKey.pemRepresentation
      keys = { await JWTKeyCollection().add(ecdsa: key) }
    case .es384:
      let key = ES384PrivateKey()
      pem = key.publicKey.pemRepresentation
      keys = { await JWTKeyCollection().add(ecdsa: key) }
    case .es512:
      let key = ES512PrivateKey()
      pem = key.publicKey.pemRepresentation
      keys = { await JWTKeyCollection().add(ecdsa: key) }
    case .edDSA:
      let key = try EdDSA.PrivateKey()
      pem = key.publicKey.pemRepresentation
      keys = { await JWTKeyCollection().add(eddsa: key) }
    }
  }

  /// - Parameter name: What the token says that it was signed with.
  func token(of subject: String, at now: Int64, named name: TokenAlgorithm? = nil) async throws -> String {
    let signed =
      TestIssuer.part(["alg": (name ?? algorithm).rawValue]) + "."
      + TestIssuer.part(TestIssuer.claims(of: subject, at: now))
    let signature = try await keys().getKey().sign(Data(signed.utf8))
    return signed + "." + TestIssuer.base64URL(signature)
  }
}
#endif
