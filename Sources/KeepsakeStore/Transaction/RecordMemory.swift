import Foundation
import KeepsakeReplication
import Synchronization

/// The records of versions that were written or read lately: every commit asks several times for the same two or three.
///
/// It is asked with the row, so that one which was altered since isn't found.
final class RecordMemory: Sendable {
  private struct Known {
    var place: String
    var body: Data
    var record: VersionRecord
  }

  private static let maximumCount = 64
  /// What is larger has a thumbnail, and isn't kept: all of them together take less than a megabyte.
  private static let maximumBytes = 4_096

  private let known = Mutex<[VersionID: Known]>([:])

  func record(in row: VersionRow) -> VersionRecord? {
    let place = row.place
    return known.withLock { known in
      guard let entry = known[row.id], entry.body == row.body, entry.place == place else { return nil }
      return entry.record
    }
  }

  func insert(_ record: VersionRecord, body: Data, place: String) {
    guard body.count <= Self.maximumBytes else { return }
    known.withLock { known in
      if known.count >= Self.maximumCount { known.removeAll(keepingCapacity: true) }
      known[record.id] = Known(place: place, body: body, record: record)
    }
  }
}
