#if Cloud
import Foundation
import KeepsakeReplication
import Logging

/// Issues and verifies tokens with the secrets of a data folder, which an operator may rotate while the server runs.
struct TokenAuthority: Sendable {
  private let signer: WatchedFiles<TokenSigner>
  private let clock: @Sendable () -> Int64

  /// - Parameters:
  ///   - secrets: Of the data folder. The first secret is made if there is none.
  ///   - lifetimeDays: How long a token is valid.
  init(
    _ secrets: ServerSecrets, lifetimeDays: Int = TokenSigner.defaultLifetimeDays,
    clock: @escaping @Sendable () -> Int64, logger: Logger
  ) throws {
    self.clock = clock
    _ = try secrets.prepare(now: clock())
    signer = try WatchedFiles([secrets.file], what: "secrets", logger: logger) {
      let all = try secrets.read(now: clock())
      guard !all.isEmpty else {
        throw ServerError(.damaged, "\(secrets.file.path) is gone: restore it from a backup.")
      }
      return TokenSigner(secrets: all, lifetimeDays: lifetimeDays)
    }
  }

  /// What the banks of this cloud sign with, the newest first.
  var bankKeys: [Data] { signer.value.bankKeys }
  /// What nonces are made with, the newest first.
  var nonceKeys: [Data] { signer.value.nonceKeys }

  /// Reads the secrets again, whether they look changed or not.
  func reload() { signer.reload() }

  /// Returns the first token of a device.
  func token(for identity: DeviceIdentity) -> String { signer.value.token(for: identity, now: clock()) }

  /// Returns the next token of a device.
  ///
  /// - Parameter app: The app that it is for from now on; nil for the same.
  func renewed(_ token: VerifiedToken, app: AppID? = nil) -> String {
    signer.value.renewed(token, app: app, now: clock())
  }

  /// Returns what `token` says; nil if this server didn't issue it.
  func verify(_ token: String) -> VerifiedToken? { signer.value.verify(token, now: clock()) }
}
#endif
