import Foundation
import GRDB
package import KeepsakeReplication

/// A head of a slot, as a list of slots needs it.
package struct SlotHead: Sendable {
  package var version: StoredVersion
  package var isPinned: Bool
  /// Only the record is here; the contents are in the cloud.
  package var isNotDownloaded: Bool
}

/// Queries for a list of many slots: one query for all of them, never one per slot.
extension StoreTransaction {
  static let headsQuery = "SELECT slot, id, \(isHeadCovered) FROM head ORDER BY slot, id"
  static let headVersionsQuery = """
    SELECT EXISTS (SELECT 1 FROM covered WHERE covered.id = version.id), \(VersionRow.columns) FROM version
    WHERE id IN (SELECT id FROM head) ORDER BY id
    """

  /// Returns the heads of every slot that has any, sorted by id. Costs one pass over the table of heads, and reads no
  /// record.
  package func headsOfAllSlots() throws -> [SlotKey: [VersionID]] {
    var heads: [SlotKey: [VersionID]] = [:]
    try database.each(Self.headsQuery) { row in
      try Self.refuseCovered(row.flag(2, "mark"))
      heads[SlotKey(text: try row.text(0, "slot")), default: []].append(try Self.versionID(row.data(1, "id")))
    }
    return heads
  }

  /// Returns the heads of every slot that has any, by its name as it is stored, sorted by its bytes: names may differ
  /// and still be equal as texts. Costs one pass over the table of heads, and reads no record.
  package func headsByName() throws -> [(slot: String, heads: [VersionID])] {
    var slots: [(slot: String, heads: [VersionID])] = []
    try database.each(Self.headsQuery) { row in
      try Self.refuseCovered(row.flag(2, "mark"))
      let (slot, id) = (try row.text(0, "slot"), try Self.versionID(row.data(1, "id")))
      if let last = slots.last, last.slot.utf8.elementsEqual(slot.utf8) {
        slots[slots.count - 1].heads.append(id)
      } else {
        slots.append((slot, [id]))
      }
    }
    return slots
  }

  /// Returns the heads of every slot with their records and marks. Costs one query and the records of the heads; reads
  /// no other version and no content.
  package func headVersionsOfAllSlots() throws -> [SlotKey: [SlotHead]] {
    var heads: [SlotKey: [SlotHead]] = [:]
    let rows = try Row.fetchCursor(statement(Self.headVersionsQuery))
    while let row = try rows.next() {
      try Self.refuseCovered(row.checked(at: 0, "mark"))
      let found = try VersionRow(row, at: 1)
      let version = StoredVersion(
        record: try codec.decode(VersionRecord.self, from: found.body, place: found.place),
        acknowledged: found.marks.acknowledged,
        offered: found.marks.offered)
      heads[SlotKey(text: found.slot), default: []].append(
        SlotHead(version: version, isPinned: found.marks.pinned, isNotDownloaded: found.marks.notDownloaded))
    }
    return heads
  }

  /// Returns whether the version is pinned on this device; false for one that isn't here.
  package func isPinned(_ id: VersionID) throws -> Bool {
    try Bool.fetchOne(statement("SELECT pinned FROM version WHERE id = ?"), arguments: [id.bytes]) ?? false
  }

  /// Returns whether the rules for history removed the contents of a version, so that only its record is left.
  package func wasPruned(_ record: VersionRecord) throws -> Bool {
    try isPruned(record.id) == true && !record.contents.allSatisfy(hasContent)
  }
}
