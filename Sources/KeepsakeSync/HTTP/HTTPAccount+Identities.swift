import Foundation
import KeepsakePlatform
package import KeepsakeReplication

/// Identities of other services at a Keepsake server, with which players sign in.
extension HTTPAccount {
  private static let path = "v1/identities"

  private struct Proof: Encodable {
    var issuer: String
    var proof: String
    var name: String?
  }
  private struct NonceRequest: Encodable {
    var issuer: String
  }
  private struct Nonce: Decodable {
    var nonce: String
  }

  /// Returns the identities that lead to the player, the oldest first. One round trip.
  package static func identities(for credentials: CloudCredentials) async throws(AccountError) -> [LinkedIdentity] {
    try decode(IdentityList.self, try await ask("GET", path, credentials)).identities
  }

  /// Has an identity lead to nobody any more. One round trip.
  package static func unlink(_ identity: ContentHash, for credentials: CloudCredentials) async throws(AccountError) {
    _ = try await ask("DELETE", "\(path)/\(identity)", credentials)
  }

  /// Returns a nonce for a token of this issuer, which only this device can use, once, for ten minutes. One round trip.
  ///
  /// - Throws: `AccountError` with `retired` if this device is nobody's any more.
  package static func nonce(
    ofIssuer issuer: String, for credentials: CloudCredentials
  ) async throws(AccountError) -> String {
    try decode(Nonce.self, try await show(NonceRequest(issuer: issuer), path + "/nonce", credentials)).nonce
  }

  /// Has an identity lead to this device's player. One round trip; repeating it does no harm.
  ///
  /// - Throws: `AccountError` with `identityTaken` if it leads to another player, and `retired` if this device is
  ///   nobody's any more.
  @discardableResult
  package static func link(
    _ proof: String, ofIssuer issuer: String, for credentials: CloudCredentials
  ) async throws(AccountError) -> LinkedIdentity {
    let answer = try await show(Proof(issuer: issuer, proof: proof), path, credentials)
    return try decode(LinkedIdentity.self, answer)
  }

  /// Makes this device one of the player to whom an identity leads. One round trip.
  ///
  /// After a lost response, the same request has the same result, until another device signs in with the identity.
  ///
  /// - Throws: `AccountError` with `identityUnknown` if it leads to nobody, and as `link`.
  package static func signIn(
    _ proof: String, ofIssuer issuer: String, name: String, for credentials: CloudCredentials
  ) async throws(AccountError) -> CloudCredentials {
    let answer = try await show(Proof(issuer: issuer, proof: proof, name: name), path + "/join", credentials)
    return try decode(Account.self, answer).credentials(at: credentials.url)
  }

  private static func show(
    _ proof: some Encodable, _ path: String, _ credentials: CloudCredentials
  ) async throws(AccountError) -> HTTPSession.Answer {
    let answer: HTTPSession.Answer
    let body = try encode(proof)
    do {
      var request = HTTPRequests.request("POST", credentials, path)
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      let session = HTTPSession(idleSeconds: SyncLimits.idleSeconds)
      answer = try await session.send(request, body: body, limit: SyncLimits.accountBytes)
    } catch {
      throw AccountError(error)
    }
    if let refusal = AccountError(answer) { throw refusal }
    do {
      try HTTPAnswer.check(answer.response, body: answer.body)
    } catch {
      throw HTTPAnswer.isRetired(answer) ? AccountError(.retired, error.message) : AccountError(error)
    }
    return answer
  }

  private static func encode(_ value: some Encodable) throws(AccountError) -> Data {
    do {
      return try HTTPRequests.encode(value)
    } catch {
      throw AccountError(error)
    }
  }

  private static func decode<Value: Decodable>(
    _ type: Value.Type, _ answer: HTTPSession.Answer
  ) throws(AccountError) -> Value {
    do {
      return try HTTPAnswer.decode(type, answer.body)
    } catch {
      throw AccountError(error)
    }
  }
}
