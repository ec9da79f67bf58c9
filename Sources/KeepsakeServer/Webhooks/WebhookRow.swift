#if Cloud
import Foundation
import KeepsakeReplication

/// An event as it waits for an endpoint, or as a dead letter.
struct WebhookRow: Sendable {
  /// Its place among the events of its endpoint.
  var number: Int64
  /// Stays the same whenever it is sent.
  var id: OperationID
  var lane: Data
  /// Nil for a deleted player.
  var player: PlayerID?
  var kind: String
  var createdMilliseconds: Int64
  var data: Data
  var deadMilliseconds: Int64?
  var reason: String?

  static let unreadable = ServerError(.damaged, "An event for a webhook can't be read.")

  /// What is sent: the same bytes each time.
  var body: Data {
    let player = player.map { "\"\($0)\"" } ?? "null"
    let head = """
      {"id":"\(id)","kind":"\(kind)","player":\(player),"createdMilliseconds":\(createdMilliseconds),"data":
      """
    return Data(head.utf8) + data + Data("}".utf8)
  }
}

/// How much waits for an endpoint.
struct WebhookCounts: Sendable {
  var waiting = 0
  /// Since when the one that has waited longest does.
  var oldestMilliseconds: Int64?
  var dead = 0
  /// When the oldest of these became one.
  var oldestDeadMilliseconds: Int64?
  /// Dead letters that were dropped, since the database was made.
  var dropped: Int64 = 0
}
#endif
