import Foundation
import GRDB
import KeepsakeReplication

/// What a store keeps of a version beside its record.
struct VersionMarks: Hashable, Sendable, CustomStringConvertible {
  var acknowledged = false
  var offered = false
  /// Only the record is kept; the contents are not.
  var pruned = false
  /// The player wants it kept, whatever the rules say.
  var pinned = false
  /// As its record says: a delete.
  var tombstone = false
  /// Thinned, and not because it was replaced: the cloud has its contents, and the game asks for them when it wants them.
  var notDownloaded = false

  /// One digit each; the last only where it is set, as rows of the first format have none.
  var description: String {
    [acknowledged, offered, pruned, pinned, tombstone].map { $0 ? "1" : "0" }.joined() + (notDownloaded ? "1" : "")
  }
}

/// A row of the table `version`. Its body's checksum and seal cover the columns beside it (`RowIdentity.version`).
struct VersionRow {
  /// In the order in which `init(_:at:)` reads them.
  static let columns = "id, slot, saved_at, acknowledged, offered, thinned, pinned, tombstone, deferred, body"

  var id: VersionID
  var slot: String
  /// As its record says: milliseconds since 1970. A column, so that the rules for history needn't read records.
  var savedAt: Int64
  var marks: VersionMarks
  var body: Data

  /// From a row in which `columns` begin at `first`.
  init(_ row: Row, at first: Int = 0) throws {
    id = try StoreTransaction.versionID(row.checked(at: first, "id"))
    slot = try row.checked(at: first + 1, "slot")
    savedAt = try row.checked(at: first + 2, "saved_at")
    marks = VersionMarks(
      acknowledged: try row.checked(at: first + 3, "acknowledged"), offered: try row.checked(at: first + 4, "offered"),
      pruned: try row.checked(at: first + 5, "thinned"), pinned: try row.checked(at: first + 6, "pinned"),
      tombstone: try row.checked(at: first + 7, "tombstone"), notDownloaded: try row.checked(at: first + 8, "deferred"))
    body = try row.checked(at: first + 9, "body")
  }

  /// From a row that was found somewhere; nil if it lacks a column, or has one of another kind.
  init?(_ row: SalvagedRow) {
    guard let id = row.data("id").flatMap({ VersionID(bytes: $0) }), let slot = row.text("slot"),
      let savedAt = row.integer("saved_at"), let acknowledged = row.integer("acknowledged"), let offered = row.integer("offered"),
      let pruned = row.integer("thinned"), let pinned = row.integer("pinned"), let tombstone = row.integer("tombstone"),
      let body = row.data("body")
    else { return nil }
    (self.id, self.slot, self.savedAt, self.body) = (id, slot, savedAt, body)
    marks = VersionMarks(
      acknowledged: acknowledged != 0, offered: offered != 0, pruned: pruned != 0, pinned: pinned != 0, tombstone: tombstone != 0,
      notDownloaded: row.integer("deferred").map { $0 != 0 } ?? false)
  }

  var place: String { RowIdentity.version(id, slot: slot, savedAt: savedAt, marks: marks) }
}
