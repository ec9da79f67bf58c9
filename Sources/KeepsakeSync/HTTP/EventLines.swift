import Foundation
import KeepsakeReplication

/// Parses the events from the pieces of a stream (server-sent events).
struct EventLines {
  private var line = Data()
  private var data = Data()

  /// Parses the next piece.
  ///
  /// - Returns: The events that it completes.
  /// - Throws: If a line is longer than any that a Keepsake server sends, or an event can't be read.
  mutating func take(_ piece: Data) throws(TransportFailure) -> [CloudEvent] {
    var events: [CloudEvent] = []
    for byte in piece {
      guard byte == UInt8(ascii: "\n") else {
        line.append(byte)
        guard line.count <= SyncLimits.eventLineBytes else {
          throw TransportFailure(.interrupted, "The event stream isn't in Keepsake's format.")
        }
        continue
      }
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      if line.isEmpty {
        if !data.isEmpty { events.append(try HTTPAnswer.decode(CloudEvent.self, data)) }
        data.removeAll(keepingCapacity: true)
      } else if line.starts(with: "data:".utf8) {
        data.append(contentsOf: line.dropFirst(5).drop { $0 == UInt8(ascii: " ") })
        guard data.count <= SyncLimits.eventLineBytes else {
          throw TransportFailure(.interrupted, "The event stream isn't in Keepsake's format.")
        }
      }
      line.removeAll(keepingCapacity: true)
    }
    return events
  }
}
