import Foundation
import KeepsakeReplication
import Synchronization

/// Caches the records of versions that were written or read recently: each commit requests the same two or three
/// several times, and each exchange with a cloud all those that it sends.
///
/// A lookup compares the row, so that a record whose row was changed since isn't found.
final class RecordMemory: Sendable {
  private struct Known {
    var row: VersionRow
    var record: VersionRecord
  }

  private struct Cache {
    var known: [VersionID: Known] = [:]
    /// Of all bodies, also of those that were replaced since.
    var bytes = 0
  }

  /// As many as an exchange may send, and some.
  private static let maximumCount = ExchangeRules.maximumVersions + 64
  /// Of all bodies. With all records, the whole cache takes three megabytes at most.
  private static let maximumBytes = 1 << 20
  /// Larger bodies contain a thumbnail and aren't cached.
  private static let maximumBodyBytes = 4_096

  private let cache = Mutex(Cache())

  func record(in row: VersionRow) -> VersionRecord? {
    cache.withLock { cache in
      guard let entry = cache.known[row.id], entry.row.isSame(as: row) else { return nil }
      return entry.record
    }
  }

  func insert(_ record: VersionRecord, as row: VersionRow) {
    let count = row.body.count
    guard count <= Self.maximumBodyBytes else { return }
    cache.withLock { cache in
      if cache.known.count >= Self.maximumCount || cache.bytes + count > Self.maximumBytes {
        (cache.known, cache.bytes) = ([:], 0)
      }
      cache.bytes += count
      cache.known[record.id] = Known(row: row, record: record)
    }
  }
}
