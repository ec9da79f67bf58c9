import Foundation
import GRDB
import KeepsakeReplication

/// A row of `content_use`, which derives from the versions that are kept whole. Each of them has one or several
/// contents.
struct ContentUse: Hashable {
  var hash: Data
  var version: Data

  /// What follows from the versions that are kept whole.
  private struct Implied {
    var uses: Set<ContentUse> = []
    /// Versions whose uses are unknown: their seal doesn't verify or can't be opened, or they are in quarantine. Their
    /// rows in the table are left as they are, so that their bytes stay.
    var mute: Set<Data> = []
  }

  /// Returns whether the table contains what follows from the versions.
  static func isAsImplied(in transaction: StoreTransaction) throws -> Bool {
    let implied = try implied(in: transaction)
    return try kept(in: transaction).filter { !implied.mute.contains($0.version) } == implied.uses
  }

  /// Rebuilds the table, and forgets which contents the cloud has, because the cloud can be asked again.
  static func rebuild(in transaction: StoreTransaction) throws {
    let implied = try implied(in: transaction)
    for version in try Set(kept(in: transaction).map(\.version)) where !implied.mute.contains(version) {
      try transaction.run("DELETE FROM content_use WHERE version = ?", [version])
    }
    // Rows with values of the wrong type.
    try transaction.run("DELETE FROM content_use WHERE typeof(hash) != 'blob' OR typeof(version) != 'blob'", [])
    try transaction.run("DELETE FROM cloud_content", [])
    for use in implied.uses {
      try transaction.run("INSERT INTO content_use (hash, version) VALUES (?, ?)", [use.hash, use.version])
    }
  }

  private static func kept(in transaction: StoreTransaction) throws -> Set<ContentUse> {
    var uses: Set<ContentUse> = []
    let rows = try Row.fetchCursor(transaction.database, sql: "SELECT hash, version FROM content_use")
    while let row = try rows.next() {
      guard let hash = Data.fromDatabaseValue(row["hash"]), let version = Data.fromDatabaseValue(row["version"]) else {
        uses.insert(ContentUse(hash: Data(), version: Data()))
        continue
      }
      uses.insert(ContentUse(hash: hash, version: version))
    }
    return uses
  }

  private static func implied(in transaction: StoreTransaction) throws -> Implied {
    var implied = Implied(mute: try quarantined(in: transaction))
    let rows = try Row.fetchCursor(
      transaction.database, sql: "SELECT \(VersionRow.columns) FROM version WHERE NOT thinned")
    while let row = try rows.next() {
      let version = try VersionRow(row)
      do {
        let record = try transaction.codec.decode(
          VersionRecord.self, from: version.body, place: version.place, strictly: true)
        implied.mute.remove(version.id.bytes)
        for hash in record.contents { implied.uses.insert(ContentUse(hash: hash.bytes, version: version.id.bytes)) }
      } catch let error as StoreError where error.code == .tampered || error.code == .wrongSecret {
        implied.mute.insert(version.id.bytes)
      }
    }
    return implied
  }

  /// Returns the versions that a seal's audit quarantined.
  private static func quarantined(in transaction: StoreTransaction) throws -> Set<Data> {
    let places = try String.fetchAll(
      transaction.database, sql: "SELECT place FROM quarantine WHERE outcome = ? AND place LIKE 'version %'",
      arguments: [SealFinding.Outcome.setAside.rawValue])
    return Set(
      places.compactMap { $0.split(separator: " ").dropFirst().first.flatMap { VersionID(String($0)) }?.bytes })
  }
}
