import KeepsakeReplication

/// The rows of versions that a transaction has read since its last change of anything but their marks; no row for a
/// version that isn't here. A decision about a version reads it several times, and puts it.
final class KnownRows {
  /// More than an exchange has versions.
  static let maximumCount = 2_048
  /// Of all bodies: one with a thumbnail has many thousands of bytes.
  static let maximumBytes = 1 << 20

  private(set) var rows: [VersionID: VersionRow?] = [:]
  /// Also of rows that were kept anew since.
  private var bytes = 0

  /// Makes room by forgetting all others: the newest row is kept however large it is.
  func keep(_ row: VersionRow?, of id: VersionID) {
    let count = row?.body.count ?? 0
    if rows.count >= Self.maximumCount || bytes + count > Self.maximumBytes { forget() }
    rows[id] = .some(row)
    bytes += count
  }

  func forget() {
    bytes = 0
    if !rows.isEmpty { rows.removeAll(keepingCapacity: true) }
  }
}
