import Foundation
import GRDB
import KeepsakeReplication

/// Seals rows and frames again: with the current key what earlier keys sealed, and everything when a store changes its
/// seal.
///
/// The work is listed once, then done in steps, each in a transaction of the caller. Each row is valid at any moment,
/// under one key or the other, so a crash between steps loses nothing but the list.
struct Resealing {
  /// The maximum number of bytes that one step seals, except for a single content beyond it. Holds up the writer for
  /// some milliseconds.
  static let stepBytes = 1 << 20

  private enum Item {
    case row(SealedTable, [DatabaseValue])
    case frame(ContentHash)
  }

  private let old: StoreSeal
  private let new: StoreSeal
  private var items: [Item] = []

  /// Lists what `old` can open and `new` would seal differently. Reads the beginning of every row, and of every frame
  /// if frames are encrypted.
  init(from old: StoreSeal, to new: StoreSeal, in database: Database) throws {
    self.old = old
    self.new = new
    let head = try new.currentHead()
    for table in SealedTable.allCases {
      items += try table.keys(sealedOtherwiseThan: head, in: database).map { .row(table, $0) }
    }
    if old.kind == .sealed || new.kind == .sealed {
      let hashes = try Data.fetchAll(
        database, sql: "SELECT hash FROM content WHERE substr(bytes, 1, \(StoreSeal.headBytes)) IS NOT ?",
        // No frame's beginning equals empty data, so all frames are listed if they are to be unencrypted.
        arguments: [new.kind == .sealed ? head : Data()])
      items += hashes.compactMap { ContentHash(bytes: $0) }.map { .frame($0) }
    }
    items.reverse()
  }

  var isDone: Bool { items.isEmpty }

  /// Seals up to `bytes` bytes, and returns how many it sealed. Skips rows that no longer exist or don't verify.
  mutating func step(in database: Database, bytes limit: Int = stepBytes) throws -> Int {
    var done = 0
    let (reading, writing) = (RowCodec(seal: old), RowCodec(seal: new))
    while done < limit, let item = items.popLast() {
      switch item {
      case .row(let table, let key):
        guard let row = try table.row(key, in: database), let place = row.place, let body = row.body,
          let json = try opened({ try reading.json(in: body, place: place, strictly: true) })
        else { continue }
        try table.update(row, body: writing.body(of: json, place: place), in: database)
        done += body.count
      case .frame(let hash):
        done += try reseal(hash, in: database)
      }
    }
    return done
  }

  private func reseal(_ hash: ContentHash, in database: Database) throws -> Int {
    let content = ContentTable(database: database, context: StoreContext(seal: old))
    let statement = try database.cachedStatement(sql: "SELECT bytes FROM content WHERE hash = ?")
    guard let entry = try opened({ try content.entry(hash) }) ?? nil,
      let bytes = try Data.fetchOne(statement, arguments: [hash.bytes]),
      let frame = try opened({ try old.open(frame: bytes, of: hash, length: entry.length, base: entry.base) })
    else { return 0 }
    try database.cachedStatement(sql: "UPDATE content SET bytes = ? WHERE hash = ?")
      .execute(arguments: [
        new.close(frame: frame, of: hash, length: entry.length, base: entry.base), hash.bytes,
      ])
    return bytes.count
  }

  /// Returns nil for what is damaged or tampered with: it is left as it is, and the error is reported when it is read.
  private func opened<Value>(_ body: () throws -> Value) throws -> Value? {
    do {
      return try body()
    } catch let error as StoreError where error.code == .damaged || error.code == .tampered {
      return nil
    }
  }
}
