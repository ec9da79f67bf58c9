package import Foundation
package import KeepsakeReplication

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

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
  /// - Returns: Whether it had waited.
  package func release(_ player: PlayerID) async throws(TransportFailure) -> Bool {
    let answer: Released = try await send("v1/bank/\(player)/release", body: Data())
    return answer.released
  }

  /// The same for a page of all banks. One round trip.
  ///
  /// - Parameter place: Where the page before ended; nil for the first one.
  package func releasePage(after place: ContainerID?) async throws(TransportFailure) -> Page {
    try await send("v1/bank/release", body: try HTTPRequests.encode(Place(after: place)))
  }

  private func send<Value: Decodable>(_ path: String, body: Data) async throws(TransportFailure) -> Value {
    var request = HTTPRequests.request("POST", url, path)
    request.setValue("Bearer " + key, forHTTPHeaderField: "Authorization")
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    let session = HTTPSession(idleSeconds: SyncLimits.idleSeconds)
    let answer = try await session.send(request, body: body, limit: SyncLimits.accountBytes)
    try HTTPAnswer.check(answer.response, body: answer.body)
    return try HTTPAnswer.decode(Value.self, answer.body)
  }
}
