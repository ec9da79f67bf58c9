#if Cloud
import Foundation
import Logging

/// The keys of one issuer: in a file, or at an address.
enum IssuerKeys: Sendable {
  case file(WatchedFiles<KeySet>)
  case address(KeyRing)

  /// Reads a file; asks no address yet.
  ///
  /// - Throws: A `ServerError` if the file has no key for the issuer's algorithm.
  init(
    of issuer: IdentityIssuer, source: any KeySource, clock: @escaping @Sendable () -> Int64, logger: Logger
  ) throws {
    switch issuer.keys {
    case .file(let url):
      let (name, algorithm) = (issuer.name, issuer.algorithm)
      self = .file(
        try WatchedFiles([url], what: "keys of the identity issuer \(name)", logger: logger) {
          guard let bytes = try PrivateFile.read(url) else {
            throw ServerError(.missing, "There is no file \(url.path) with the keys of the identity issuer \(name).")
          }
          do {
            return try KeySet(bytes, for: algorithm)
          } catch {
            throw ServerError(
              .configuration, "\(url.path) has no public key for \(algorithm.rawValue) of the identity issuer \(name).",
              cause: error)
          }
        })
    case .address(let url):
      self = .address(
        KeyRing(issuer: issuer.name, address: url, algorithm: issuer.algorithm, source: source, clock: clock, logger))
    }
  }

  /// Returns a key by its name; nil if the issuer has no such key, as far as it is known.
  ///
  /// - Throws: `IdentityFailure` with `unavailable` if no keys are known.
  func key(named id: String?) async throws -> VerificationKey? {
    switch self {
    case .file(let file): file.value.key(named: id)
    case .address(let ring): try await ring.key(named: id)
    }
  }

  /// Reads a file again, whether it looks changed or not.
  func reload() {
    if case .file(let file) = self { file.reload() }
  }
}
#endif
