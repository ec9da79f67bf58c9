import Foundation
import GRDB
import KeepsakeReplication

/// A row of the table `version`. Its body's checksum and seal cover the columns beside it (`RowPlace.version`).
struct VersionRow {
  var id: VersionID
  var slot: String
  var acknowledged: Bool
  var offered: Bool
  var thinned: Bool
  var body: Data

  init(_ row: Row) throws {
    guard let id = VersionID(bytes: try row.checked("id")) else {
      throw StoreError(.damaged, "a version of the store has no proper name")
    }
    self.id = id
    slot = try row.checked("slot")
    acknowledged = try row.checked("acknowledged")
    offered = try row.checked("offered")
    thinned = try row.checked("thinned")
    body = try row.checked("body")
  }

  var place: String {
    RowPlace.version(id, slot: slot, acknowledged: acknowledged, offered: offered, thinned: thinned)
  }
}
