import Foundation
package import KeepsakeReplication

extension AccountError {
  /// The server is older than recovery codes.
  static let codesUnsupported: AccountError = {
    let message = "The server doesn't know recovery codes: they need a newer version of it."
    return AccountError(.failed(TransportFailure(.rejected, message)), message)
  }()
}

/// Recovery codes at a Keepsake server.
extension HTTPAccount {
  private static let path = "v1/recovery"

  private struct NewCode: Encodable {
    var digest: String
  }
  private struct Recovering: Encodable {
    var code: String
    var next: String
    var name: String
  }

  /// Returns what the server knows of the player's recovery code; nil if it is older than recovery codes. One round
  /// trip.
  package static func recovery(for credentials: CloudCredentials) async throws(AccountError) -> RecoveryFacts? {
    let answer = try await answer(to: "GET", path, credentials)
    if HTTPAnswer.isUnknownRoute(answer) { return nil }
    try checked(answer)
    do {
      return try HTTPAnswer.decode(RecoveryFacts.self, answer.body)
    } catch {
      throw AccountError(error)
    }
  }

  /// Makes `code` the player's recovery code, in place of any earlier one. One round trip; repeating it does no harm.
  package static func setRecoveryCode(
    _ code: RecoveryCode, for credentials: CloudCredentials
  ) async throws(AccountError) {
    let body: Data
    do {
      body = try HTTPRequests.encode(NewCode(digest: code.digest.description))
    } catch {
      throw AccountError(error)
    }
    let answer = try await answer(to: "PUT", path, credentials, json: body)
    if HTTPAnswer.isUnknownRoute(answer) { throw .codesUnsupported }
    try checked(answer)
  }

  /// Adds this device to the player who has this recovery code, and makes `next` the player's code. One round trip.
  ///
  /// After a lost response, the same request with the same codes has the same result, until `next` is used or replaced.
  package func recover(
    _ code: RecoveryCode, next: RecoveryCode, name: String
  ) async throws(AccountError) -> CloudCredentials {
    try await account(
      "recovery/join", body: Recovering(code: code.text, next: next.digest.description, name: name),
      unknown: .codesUnsupported)
  }
}
