package import Foundation
import KeepsakePlatform
package import KeepsakeReplication

/// Releases the banks of a Keepsake server that was restored from a backup, with a server key.
package struct HTTPBank: Sendable {
  private let url: URL
  private let key: String

  package init(url: URL, key: String) {
    self.url = url
    self.key = key
  }

  /// What became of a page of banks.
  package struct Page: Sendable, Decodable {
    /// How many had waited for devices.
    package var released: Int
    /// How many can't be read.
    package var unreadable: Int
    /// Where the next page begins; nil after the last one.
    package var next: ContainerID?
  }
  private struct Place: Encodable {
    var after: ContainerID?
  }
  private struct Released: Decodable {
    var released: Bool
  }

  /// Ends the wait of a player's bank for devices that haven't shown what they were granted. One round trip.
  ///
  /// - Returns: Whether it had waited; nil if the cloud has no such player.
  package func release(_ player: PlayerID) async throws(TransportFailure) -> Bool? {
    let answer = try await send("v1/bank/\(player)/release", body: Data())
    if answer.response.statusCode == 404, HTTPAnswer.code(answer.body) == "player_unknown" { return nil }
    return try decode(Released.self, answer).released
  }

  /// The same for a page of all banks. One round trip.
  ///
  /// - Parameter place: Where the page before ended; nil for the first one.
  package func releasePage(after place: ContainerID?) async throws(TransportFailure) -> Page {
    try decode(Page.self, try await send("v1/bank/release", body: try HTTPRequests.encode(Place(after: place))))
  }

  private func send(_ path: String, body: Data) async throws(TransportFailure) -> HTTPSession.Answer {
    var request = HTTPRequests.request("POST", url, path)
    request.setValue("Bearer " + key, forHTTPHeaderField: "Authorization")
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    let session = HTTPSession(idleSeconds: SyncLimits.idleSeconds)
    return try await session.send(request, body: body, limit: SyncLimits.accountBytes)
  }

  private func decode<Value: Decodable>(
    _ type: Value.Type, _ answer: HTTPSession.Answer
  ) throws(TransportFailure) -> Value {
    try HTTPAnswer.check(answer.response, body: answer.body)
    return try HTTPAnswer.decode(type, answer.body)
  }
}
