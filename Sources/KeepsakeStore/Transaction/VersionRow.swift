import Foundation
import GRDB
import KeepsakeReplication

/// What a store keeps about a version besides its record.
struct VersionMarks: Hashable, Sendable, CustomStringConvertible {
  var acknowledged = false
  var offered = false
  /// Only the record is kept, not the contents.
  var pruned = false
  /// The player wants it kept, whatever the rules for history are.
  var pinned = false
  /// Copied from the record: whether the version is a delete.
  var tombstone = false
  /// Pruned, but not because it was replaced: the cloud has its contents, and the game requests them when it wants
  /// them.
  var notDownloaded = false

  /// One digit per mark. The last one is present only if set, because rows of the first format don't have it.
  var description: String {
    // A name that a string holds in itself.
    var text = ""
    for mark in [acknowledged, offered, pruned, pinned, tombstone] { text += mark ? "1" : "0" }
    return notDownloaded ? text + "1" : text
  }
}

extension VersionMarks {
  /// In the order in which `init(_:at:)` reads them.
  static let columns = "acknowledged, offered, thinned, pinned, tombstone, deferred"

  /// Reads the marks from a row in which `columns` begin at `first`.
  init(_ row: Row, at first: Int) throws {
    acknowledged = try row.checked(at: first, "acknowledged")
    offered = try row.checked(at: first + 1, "offered")
    pruned = try row.checked(at: first + 2, "thinned")
    pinned = try row.checked(at: first + 3, "pinned")
    tombstone = try row.checked(at: first + 4, "tombstone")
    notDownloaded = try row.checked(at: first + 5, "deferred")
  }
}

extension VersionMarks {
  fileprivate init(_ columns: Columns, at first: Int32) throws {
    acknowledged = try columns.flag(first, "acknowledged")
    offered = try columns.flag(first + 1, "offered")
    pruned = try columns.flag(first + 2, "thinned")
    pinned = try columns.flag(first + 3, "pinned")
    tombstone = try columns.flag(first + 4, "tombstone")
    notDownloaded = try columns.flag(first + 5, "deferred")
  }
}

/// A row of the table `version`, and the only type that knows the table's columns. The checksum and seal of its body
/// cover the columns beside it (`RowIdentity.version`).
struct VersionRow {
  /// In the order in which `init(_:at:)` reads them.
  static let columns = "id, slot, saved_at, body, \(VersionMarks.columns)"

  /// Inserts a row with `arguments`, or updates all columns of the row that has its id.
  static let upsert: String = {
    let names = columns.components(separatedBy: ", ")
    let values = names.map { _ in "?" }.joined(separator: ", ")
    let changes = names.dropFirst().map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
    return "INSERT INTO version (\(columns)) VALUES (\(values)) ON CONFLICT (id) DO UPDATE SET \(changes)"
  }()

  var id: VersionID
  var slot: String
  /// Copied from the record, in milliseconds since 1970. A column, so that the rules for history needn't read records.
  var savedAt: Int64
  var marks: VersionMarks
  var body: Data

  /// Reads a row in which `columns` begin at `first`.
  init(_ row: Row, at first: Int = 0) throws {
    id = try StoreTransaction.versionID(row.checked(at: first, "id"))
    slot = try row.checked(at: first + 1, "slot")
    savedAt = try row.checked(at: first + 2, "saved_at")
    body = try row.checked(at: first + 3, "body")
    marks = try VersionMarks(row, at: first + 4)
  }

  /// Reads a row in which `columns` are the first ones.
  init(_ columns: Columns) throws {
    id = try StoreTransaction.versionID(columns.data(0, "id"))
    slot = try columns.text(1, "slot")
    savedAt = try columns.integer(2, "saved_at")
    body = try columns.data(3, "body")
    marks = try VersionMarks(columns, at: 4)
  }

  /// Makes the row for a record whose body was encoded for it.
  init(_ record: VersionRecord, marks: VersionMarks, body: Data) {
    (id, slot, savedAt) = (record.id, record.slot, record.savedAtMilliseconds)
    (self.marks, self.body) = (marks, body)
  }

  /// The values of `columns`, in their order.
  var arguments: StatementArguments {
    [
      id.bytes, slot, savedAt, body, marks.acknowledged, marks.offered, marks.pruned, marks.pinned, marks.tombstone,
      marks.notDownloaded,
    ]
  }

  /// Converts a salvaged row; nil if it lacks a column or has one of the wrong type.
  init?(_ row: SalvagedRow) {
    guard let id = row.data("id").flatMap({ VersionID(bytes: $0) }), let slot = row.text("slot"),
      let savedAt = row.integer("saved_at"), let acknowledged = row.integer("acknowledged"),
      let offered = row.integer("offered"),
      let pruned = row.integer("thinned"), let pinned = row.integer("pinned"), let tombstone = row.integer("tombstone"),
      let body = row.data("body")
    else { return nil }
    (self.id, self.slot, self.savedAt, self.body) = (id, slot, savedAt, body)
    marks = VersionMarks(
      acknowledged: acknowledged != 0, offered: offered != 0, pruned: pruned != 0, pinned: pinned != 0,
      tombstone: tombstone != 0,
      notDownloaded: row.integer("deferred").map { $0 != 0 } ?? false)
  }

  /// Whether both rows have the same values, the slot's name byte by byte.
  func isSame(as other: VersionRow) -> Bool {
    id == other.id && savedAt == other.savedAt && marks == other.marks && body == other.body
      && slot.utf8.elementsEqual(other.slot.utf8)
  }

  var place: String { RowIdentity.version(id, slot: slot, savedAt: savedAt, marks: marks) }
}
