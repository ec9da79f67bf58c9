import Foundation
import KeepsakePlatform
import KeepsakeReplication
import Synchronization

/// How a device gets new tokens for its credentials, and keeps them.
package struct CredentialsRenewal: Sendable {
  /// The game's app key, with which the cloud renews a token that has expired.
  var appKey: String
  /// Stores new credentials in place of those with the token `replacing`, durably.
  var keep: @Sendable (_ new: CloudCredentials, _ replacing: String) async throws -> Void

  package init(
    appKey: String, keep: @escaping @Sendable (_ new: CloudCredentials, _ replacing: String) async throws -> Void
  ) {
    (self.appKey, self.keep) = (appKey, keep)
  }
}

/// The credentials of one connection, whose token the cloud replaces from time to time.
///
/// A new token is stored before it is used: after its first use, the cloud may refuse the one before.
final class RenewableCredentials: Sendable {
  private struct Renewed: Decodable {
    var token: String
  }
  private static let header = "Keepsake-Token"
  /// Longer than any token; something else isn't stored.
  private static let maximumTokenBytes = 4_096

  private let credentials: Mutex<CloudCredentials>
  /// Nil if the token stays what it is.
  private let renewal: CredentialsRenewal?
  /// The renewal in progress, shared by all requests that were refused.
  private let underWay = Mutex<Task<CloudCredentials?, Never>?>(nil)

  init(_ credentials: CloudCredentials, renewal: CredentialsRenewal?) {
    self.credentials = Mutex(credentials)
    self.renewal = renewal
  }

  var current: CloudCredentials { credentials.withLock { $0 } }

  /// Takes over the token that came with a response, if there is one.
  func didReceive(_ response: HTTPURLResponse) async {
    guard renewal != nil, let token = response.value(forHTTPHeaderField: Self.header) else { return }
    _ = await adopt(token, replacing: current)
  }

  /// Returns other credentials with which to repeat a request that was refused for its token; nil if there are none.
  func renewed(after answer: HTTPSession.Answer, to request: URLRequest, over session: HTTPSession) async
    -> CloudCredentials?
  {
    guard let renewal, answer.response.statusCode == 401,
      answer.response.value(forHTTPHeaderField: "Keepsake-Protocol") != nil,
      ["token_expired", "app_revoked"].contains(HTTPAnswer.code(answer.body))
    else { return nil }
    let held = current
    // Another request has renewed it meanwhile.
    guard request.value(forHTTPHeaderField: "Authorization") == HTTPRequests.authorization(held) else { return held }
    let task = underWay.withLock { task in
      if let task { return task }
      let new = Task { await self.renew(held, renewal, over: session) }
      task = new
      return new
    }
    let result = await task.value
    underWay.withLock { if $0 == task { $0 = nil } }
    return result
  }

  /// Asks the cloud for a new token. Nil if it refuses, or doesn't know the request: the first refusal then stands.
  private func renew(
    _ held: CloudCredentials, _ renewal: CredentialsRenewal, over session: HTTPSession
  ) async -> CloudCredentials? {
    var message = HTTPRequests.request("POST", held, "v1/token")
    message.setValue(renewal.appKey, forHTTPHeaderField: "Keepsake-App-Key")
    let (answer, failure) = await session.collectOnce(message, body: Data(), limit: SyncLimits.accountBytes)
    guard failure == nil, let answer, answer.response.statusCode == 200,
      answer.response.value(forHTTPHeaderField: "Keepsake-Protocol") != nil,
      let renewed = try? JSONDecoder().decode(Renewed.self, from: answer.body)
    else { return nil }
    return await adopt(renewed.token, replacing: held)
  }

  /// Stores a new token and uses it from now on. If it can't be stored, the one before stays in use, and the cloud
  /// offers another one with the next response.
  private func adopt(_ token: String, replacing old: CloudCredentials) async -> CloudCredentials? {
    guard let renewal, (1...Self.maximumTokenBytes).contains(token.utf8.count), token != old.token else { return nil }
    var new = old
    new.token = token
    do {
      try await renewal.keep(new, old.token)
    } catch {
      return nil
    }
    return credentials.withLock { held in
      // Two responses may bring a token each: the first one stays, and both are valid.
      if held.token == old.token { held = new }
      return held
    }
  }
}
