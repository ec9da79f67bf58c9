import Foundation
import KeepsakePlatform
package import KeepsakeReplication

/// A player's devices, and leaving the cloud.
extension HTTPAccount {
  /// Returns the player's devices, including this one. One round trip.
  package static func devices(for credentials: CloudCredentials) async throws(AccountError) -> [AccountDevice] {
    let answer = try await ask("GET", "v1/devices", credentials)
    do {
      return try HTTPAnswer.decode(DeviceList.self, answer.body).devices
    } catch {
      throw AccountError(error)
    }
  }

  /// Removes a device of the player, this one or another: its token is refused from then on. One round trip.
  package static func remove(_ device: DeviceID, for credentials: CloudCredentials) async throws(AccountError) {
    _ = try await ask("DELETE", "v1/devices/\(device)", credentials)
  }

  /// Deletes everything that the cloud has of the player, and refuses all of the player's devices from then on. One
  /// round trip.
  package static func deletePlayer(for credentials: CloudCredentials) async throws(AccountError) {
    _ = try await ask("DELETE", "v1/player", credentials)
  }

  /// Makes a request as this device, and returns the response, a success.
  static func ask(
    _ method: String, _ path: String, _ credentials: CloudCredentials, json: Data? = nil
  ) async throws(AccountError) -> HTTPSession.Answer {
    try checked(try await answer(to: method, path, credentials, json: json))
  }

  /// Makes a request as this device, and returns the response, whatever it is.
  static func answer(
    to method: String, _ path: String, _ credentials: CloudCredentials, json: Data? = nil
  ) async throws(AccountError) -> HTTPSession.Answer {
    do {
      let session = HTTPSession(idleSeconds: SyncLimits.idleSeconds)
      var request = HTTPRequests.request(method, credentials, path)
      if json != nil { request.setValue("application/json", forHTTPHeaderField: "Content-Type") }
      return try await session.send(request, body: json, limit: SyncLimits.deviceBytes)
    } catch {
      throw AccountError(error)
    }
  }

  @discardableResult
  static func checked(_ answer: HTTPSession.Answer) throws(AccountError) -> HTTPSession.Answer {
    if let refusal = AccountError(answer) { throw refusal }
    do {
      try HTTPAnswer.check(answer.response, body: answer.body)
    } catch {
      throw AccountError(error)
    }
    return answer
  }
}
