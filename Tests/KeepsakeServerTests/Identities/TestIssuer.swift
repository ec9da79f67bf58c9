#if Cloud
import Crypto
import Foundation
import JWTKit
import Synchronization
import Testing

@testable import KeepsakeServer

/// An issuer of identities in a test: makes keys, and tokens that are good or bad.
struct TestIssuer: Sendable {
  static let address = "https://login.test"
  static let audience = "garden"

  var kid = "one"
  let key = P256.Signing.PrivateKey()

  /// A token's part, from any JSON.
  static func part(_ object: [String: Any]) -> String {
    // Values of tests can always be written.
    base64URL((try? JSONSerialization.data(withJSONObject: object, options: .sortedKeys)) ?? Data())
  }

  static func base64URL(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// The claims of a good token, with these changes; NSNull leaves a claim out.
  static func claims(of subject: String, at now: Int64, _ changes: [String: Any] = [:]) -> [String: Any] {
    let seconds = now / 1_000
    let good: [String: Any] = [
      "iss": address, "aud": audience, "sub": subject, "iat": seconds, "exp": seconds + 600, "jti": UUID().uuidString,
    ]
    return good.merging(changes) { $1 }.filter { !($0.value is NSNull) }
  }

  /// A token, signed with this issuer's key.
  func token(
    of subject: String, at now: Int64, _ changes: [String: Any] = [:], header: [String: Any] = [:]
  ) throws -> String {
    let head = ["alg": "ES256", "typ": "JWT", "kid": kid].merging(header) { $1 }.filter { !($0.value is NSNull) }
    let signed = Self.part(head) + "." + Self.part(Self.claims(of: subject, at: now, changes))
    return signed + "." + Self.base64URL(try key.signature(for: Data(signed.utf8)).rawRepresentation)
  }

  /// A token now.
  func token(of subject: String, _ changes: [String: Any] = [:], header: [String: Any] = [:]) throws -> String {
    try token(of: subject, at: Int64(Date().timeIntervalSince1970 * 1_000), changes, header: header)
  }

  var privatePEM: String { key.pemRepresentation }

  /// Its public key as a JWK.
  var jwk: [String: Any] {
    let point = key.publicKey.rawRepresentation
    return [
      "kty": "EC", "crv": "P-256", "kid": kid, "use": "sig", "alg": "ES256", "x": Self.base64URL(point.prefix(32)),
      "y": Self.base64URL(point.suffix(32)),
    ]
  }

  static func set(_ keys: [[String: Any]]) throws -> Data {
    try JSONSerialization.data(withJSONObject: ["keys": keys])
  }

  /// How a server knows it, with its key in a file.
  func configuration(named name: String = "login", in folder: URL) throws -> IdentityIssuer {
    let file = folder.appendingPathComponent("\(name).pem")
    try Data(key.publicKey.pemRepresentation.utf8).write(to: file)
    return IdentityIssuer(
      name: name, issuers: [Self.address], audiences: [Self.audience], algorithm: .es256, keys: .file(file))
  }

  /// A key of 2,048 bits that only tests have.
  static let rsaKey = """
    -----BEGIN PRIVATE KEY-----
    MIIEvwIBADANBgkqhkiG9w0BAQEFAASCBKkwggSlAgEAAoIBAQC6RLn/6Xu28z70
    KqvBDx4ZWJK/mykAP8d+ur5s0gKGgAllwbmaS6gDVO8kMmS0kHkTHSVTEhbgnYAJ
    jknY7NounaiYAFRiRrSTERjvdzrUTqyDfJfmuVbTCXRXn60XnX5KNpZyRBY99hxD
    s5cg9x/ERCnKY9lX5USAZO2l9OGme5djUrIkJF24KdVJ/4zGn2yJBW2zgP4TkKq0
    bWit7EeW29oyu/tmjXqp47eEGH8Ca7SgAUxoB6ha9tsuDLOyHJhCDoTAkxAG6daf
    60sdKdBhXELqXm7sugStp7C++NBD5ar/zzaRAJKVt992NIXhP8l8YDxjefqA4WFL
    9RPVDxsBAgMBAAECggEAFXdSJXyXi0/2aKvPkLeDSnx7UlA5UL6zk5abLMNPEzJc
    4uMz1o+dfzTMkn6pkxLglnlSEdll1YuRHojNWI3YicLAPomF2rA3Td43N3GleqN5
    HMtrs2VB7PQ2pNp8AjAI8S3f91nYDlqh4JN+eTLBmxwX4ivQ97YuR3WvhY6hFU8P
    XMscj7JoPjjurDUPydRUvvB/0h16w8IRL+WO1TLGX69T2t5MRbkhadXX33D6cKVT
    MKr0Xm3hbXBpP9hNAS4N4952CWnbfGfqWAp3svvLE/76LMtRr9sEMoMIYJkWLw2+
    eJa59GHMHNbUd5ZxPVsicktttIPntkOyxnimqADM2QKBgQD+tO2zHnFO/uSvVCBw
    PF6jlve9cx2qanLkIxDJsVy+2GpMvvDHRtLivYEw/jjr9OfvaAil/Yx3uj9eVLyX
    e0UcTrEFLEHysGKeeGLZWINT21imGRnG45QH69iHRjw8nRr2Mgnm6szNtjlKUqp2
    6gJGP845Azd2XNtu+dQ7N3mKZwKBgQC7NtdKWv4O/wJpdsAhneK9ZpDh/S+eMDep
    iDUY02zROBe5FIrx0vE9RvSrW4VCPIv6hmCmo+Qz1kbdN0NtWseyqQg+WK/yH7S0
    PD/ZdhNbJ7FgckP2URKwFEqUHmmY3dzj6DDr79TM2cprKYq1VLAyz6KToulF/loE
    UyRbC48eVwKBgQC/5NH8k9/sEw95pFj4FhN7Dj9BpRvhi2dZx61bN1vXkLatcWF3
    0T0KhJlzruR1qMKg1PFHFXohrdkWGaMoQT/1LrghXJGm5Qq3t51JgG0Y3XWxVdHc
    zRJ20VIFwH2bcQWiHFrndVitVy9cdmFlS7JA+MtGmszLSPQtbN1fa9EO2wKBgQCl
    E080ThV0raC307DIM4ppjRW1XuVs64E5KFQBRvPNa1Nnq9h0MJbsfDNjITjYVcDr
    ry9r4Flo58jmaEM5GnG5dFhDeTnzGcfhoLqACiA5IT/DFh4dBBGhVtMH1eUwmHic
    MPFqKLgPxP46DZA0Ia+XrgPhgCWGxSckZxdIfGG+0wKBgQDeYUiYHfo6GVNVAoj7
    6LnNzBHVgj3Z3UgG5bsbFISBJEqfe8gK0qDnJDKtuJMckdovqfHRCwiFccGokSP6
    F1ZOaqycIw5Zs0e9llTiL6QcFgVjo38AFwYo6q7VvzRKHRJexid6Il9hZUv5hVRS
    LON1lWh3iSRg8WK1qN3Ap8AibA==
    -----END PRIVATE KEY-----
    """
}

/// Stands in for the addresses of issuers: returns what a test says, and counts.
final class StubKeySource: KeySource {
  struct Unreachable: Error {}
  private let state: Mutex<(keys: Data?, count: Int)>
  private let wait: @Sendable () async throws -> Void

  /// - Parameter wait: What each request waits for.
  init(_ keys: Data?, wait: @escaping @Sendable () async throws -> Void = {}) {
    state = Mutex((keys, 0))
    self.wait = wait
  }

  /// How often it was asked.
  var count: Int { state.withLock { $0.count } }

  /// Has it return other keys, or fail.
  func change(to keys: Data?) { state.withLock { $0.keys = keys } }

  func keys(at address: URL, limit: Int) async throws -> Data {
    let keys = state.withLock { state in
      state.count += 1
      return state.keys
    }
    try await wait()
    guard let keys else { throw Unreachable() }
    return keys
  }
}

/// A clock that a test sets.
final class IdentityClock: Sendable {
  private let now = Mutex<Int64>(1_700_000_000_000)
  var read: @Sendable () -> Int64 { { self.now.withLock { $0 } } }
  var milliseconds: Int64 { read() }
  func pass(seconds: Int64) { now.withLock { $0 += seconds * 1_000 } }
}
#endif
