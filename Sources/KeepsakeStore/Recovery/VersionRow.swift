import Crypto
import Foundation
import GRDB
import KeepsakeReplication

/// A row of the table `version`. Its body's checksum covers the columns beside it: a slot, a mark or a name that was altered
/// in the file shows when the row is read.
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
    Self.place(of: id, slot: slot, acknowledged: acknowledged, offered: offered, thinned: thinned)
  }

  static func place(of id: VersionID, slot: String, acknowledged: Bool, offered: Bool, thinned: Bool) -> String {
    "version \(id) \(acknowledged ? 1 : 0)\(offered ? 1 : 0)\(thinned ? 1 : 0) \(slot)"
  }
}

/// A row of the table `covered`: an id without a body, so it has a checksum of its own.
enum CoveredRow {
  private static let checksumLength = 8

  static func checksum(of id: VersionID) -> Data {
    Data(SHA256.hash(data: Data("covered".utf8) + id.bytes).prefix(checksumLength))
  }

  static func isSound(id: Data, checksum: Data) -> Bool {
    guard let id = VersionID(bytes: id) else { return false }
    return Self.checksum(of: id) == checksum
  }
}
