#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Issuers as operators write them.
@Suite("Configured issuers") struct IdentityIssuerTests {
  private func address(_ issuer: IdentityIssuer) -> String? {
    if case .address(let url) = issuer.keys { url.absoluteString } else { nil }
  }

  @Test("a preset knows all of a service but the game's own identifiers")
  func presets() throws {
    let apple = try IdentityIssuer("apple audience=com.example.garden audience=web nonce=required single-use=yes")
    #expect(apple.issuers == ["https://appleid.apple.com"] && apple.audiences == ["com.example.garden", "web"])
    #expect(apple.algorithm == .rs256 && address(apple) == "https://appleid.apple.com/auth/keys")
    #expect(apple.requiresNonce && apple.isSingleUse && apple.skewSeconds == 60 && apple.maximumAgeSeconds == 3_600)
    let google = try IdentityIssuer("android preset=google audience=1.apps.googleusercontent.com skew=0 max-age=600")
    #expect(google.name == "android" && google.issuers == ["https://accounts.google.com", "accounts.google.com"])
    #expect(google.skewSeconds == 0 && google.maximumAgeSeconds == 600 && !google.requiresNonce && !google.isSingleUse)
    let firebase = try IdentityIssuer("firebase project=garden-1")
    #expect(firebase.issuers == ["https://securetoken.google.com/garden-1"] && firebase.audiences == ["garden-1"])
    let microsoft = try IdentityIssuer("microsoft tenant=consumers audience=x")
    #expect(
      microsoft.issuers == ["https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0"]
        && address(microsoft)
          == "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/discovery/v2.0/keys"
    )
    let own = try IdentityIssuer(
      "login issuer=https://login.example.com issuer=old audience=garden algorithm=EdDSA keys=/etc/login.pem")
    #expect(own.issuers == ["https://login.example.com", "old"] && own.algorithm == .edDSA)
    #expect(own.keys == .file(URL(fileURLWithPath: "/etc/login.pem")))
    #expect(
      try IdentityIssuer("apple audience=x keys=file:///my%20keys/a.pem").keys
        == .file(URL(fileURLWithPath: "/my keys/a.pem")))
    #expect(try address(IdentityIssuer("google audience=x keys=https://keys.test/a")) == "https://keys.test/a")
  }

  @Test(
    "a mistyped issuer is refused with what is wrong",
    arguments: [
      ("", "begin with a name"), ("audience=x", "begin with a name"), ("Apple audience=x", "lowercase letters"),
      ("apple", "needs an audience"), ("apple audience", "a key, =, and a value"), ("apple audience=", "a key, ="),
      ("apple audience=x nonse=required", "nonse is no key"), ("apple audience=x nonce=yes", "nonce takes"),
      ("apple audience=x issuer=https://evil.test", "issuer is no key"),
      ("apple audience=x algorithm=HS256", "algorithm is no key"),
      ("apple audience=x skew=1 skew=2", "skew may be given once"), ("apple audience=x skew=x", "skew takes a number"),
      ("apple audience=x skew=601", "skew has to be"), ("apple audience=x max-age=0", "max-age has to be"),
      ("apple preset=pear audience=x", "no preset pear"), ("firebase audience=x", "project is missing"),
      ("microsoft audience=x tenant=common", "tenant takes"), ("microsoft audience=x", "tenant is missing"),
      ("login audience=x algorithm=ES256 keys=/k", "needs its issuer"),
      ("login issuer=a audience=x keys=/k", "algorithm is missing"),
      ("login issuer=a audience=x algorithm=ES256", "keys is missing"),
      ("login issuer=a audience=x algorithm=HS256 keys=/k", "algorithm takes one of"),
      ("login issuer=a audience=x algorithm=none keys=/k", "algorithm takes one of"),
      ("login issuer=a audience=x algorithm=ES256 keys=http://login.test/k", "begin with https://"),
      ("login issuer=a audience=x algorithm=ES256 keys=ftp://127.0.0.1/k", "begin with https://"),
      ("log_in preset=apple audience=x", "lowercase letters"),
    ])
  func mistyped(text: String, reason: String) throws {
    let error = #expect(throws: ServerError.self) { try IdentityIssuer(text) }
    #expect(error?.code == .configuration && error?.message.contains(reason) == true, "\(error as Any)")
  }

  @Test("a server refuses two issuers of one name, and one whose keys aren't there")
  func server() throws {
    let folder = try TemporaryFolder()
    var configuration = ServerConfiguration(data: folder.url)
    let issuer = try TestIssuer().configuration(in: folder.url)
    configuration.identityIssuers = [issuer]
    try configuration.check()
    configuration.identityVerifiers = ["steam": NobodysVerifier()]
    try configuration.check()
    configuration.identityVerifiers["login"] = NobodysVerifier()
    #expect(throws: ServerError.self) { try configuration.check() }
    configuration.identityVerifiers = ["No": NobodysVerifier()]
    #expect(throws: ServerError.self) { try configuration.check() }
    configuration.identityVerifiers = [:]
    configuration.identityIssuers = [issuer, issuer]
    #expect(throws: ServerError.self) { try configuration.check() }
    var missing = issuer
    missing.keys = .file(folder.url.appendingPathComponent("nothing"))
    configuration.identityIssuers = [missing]
    #expect { try IdentityChecks(configuration, nonceKeys: { [] }, logger: RecordedLog().logger) } throws: {
      ($0 as? ServerError)?.code == .missing
    }
  }
}

private struct NobodysVerifier: IdentityVerifier {
  func subject(of proof: IdentityProof) async throws -> String { throw IdentityFailure(.refused, "nobody") }
}
#endif
