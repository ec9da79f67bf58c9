import Foundation
import KeepsakeReplication
import Synchronization

/// Caches the records of versions that were written or read recently: each commit requests the same two or three
/// several times.
///
/// A lookup compares the row, so that a record whose row was changed since isn't found.
final class RecordMemory: Sendable {
  private struct Known {
    var place: String
    var body: Data
    var record: VersionRecord
  }

  private static let maximumCount = 64
  /// Larger bodies contain a thumbnail and aren't cached, so the whole cache takes less than a megabyte.
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
