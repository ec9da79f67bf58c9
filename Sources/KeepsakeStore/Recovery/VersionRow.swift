import Crypto
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
