import Foundation
import GRDB
import KeepsakeReplication

@testable import KeepsakeStore

/// A store's whole state in one comparable value: equal if and only if a game and its sync would see the same.
///
/// Left out is what an opening changes (`offered`), and how contents are encoded, which depends on what was saved
/// together.
struct StoreDigest: Hashable, Sendable {
  private var hash: ContentHash

  init(of transaction: StoreTransaction) throws {
    try self.init(Self.text(of: Self.state, in: transaction), in: transaction)
  }

  /// Also reads everything through the store's own types, so that a row that doesn't decode or a content with another
  /// hash throws.
  ///
  /// A state that is stored byte for byte as at an earlier call isn't read again: `known` contains these states.
  init(checking transaction: StoreTransaction, known: inout Set<ContentHash>) throws {
    let state = try Self.text(of: Self.state, in: transaction)
    let stored = ContentHash(of: Data(try (state + Self.text(of: Self.contents, in: transaction)).utf8))
    if !known.contains(stored) {
      try Self.readAll(transaction)
      known.insert(stored)
    }
    try self.init(state, in: transaction)
  }

  private init(_ state: String, in transaction: StoreTransaction) throws {
    var text = state
    // A new store draws its wallet's chain at random, which means nothing before the first operation.
    if let wallet = try transaction.wallet(), wallet.head.count > 0 {
      text += "\(wallet.chain) \(wallet.head.count) \(wallet.head.hash)"
    }
    hash = ContentHash(of: Data(text.utf8))
  }

  private static func readAll(_ transaction: StoreTransaction) throws {
    for slot in try transaction.slots() {
      for head in try transaction.heads(of: slot) { _ = try transaction.version(head) }
      for version in try transaction.history(of: slot) {
        for hash in version.record.contents { _ = try transaction.plainContent(hash) }
      }
    }
    for content in try transaction.contentSummaries() { _ = try transaction.plainContent(content.hash) }
    _ = try transaction.cells(in: nil)
    for preference in try transaction.preferences().kept { _ = try preference.bytes() }
    _ = try transaction.outbox(limit: .max)
    _ = try transaction.staged()
    _ = try transaction.facts()
  }

  private typealias Table = (name: String, columns: [String])

  private static let state: [Table] = [
    ("fact WHERE name <> 'wallet'", ["name", "body"]),
    ("cell", ["collection", "key", "body"]),
    ("preference", ["name", "body"]),
    // Without the checksum, which covers `offered` too.
    ("version", ["position", "id", "slot", "acknowledged", "thinned", "substr(body, \(RowCodec.checksumLength + 1))"]),
    ("score", ["board", "rank", "date", "id", "player", "body"]),
    ("covered", ["id"]),
    ("performed", ["key", "fingerprint"]),
    ("head", ["slot", "id"]),
    ("content_use", ["hash", "version"]),
    ("outbox", ["id", "body"]),
    ("staged", ["position", "body"]),
  ]
  private static let contents: [Table] = [("content", ["hash", "length", "base", "bytes"])]

  /// Every value, as SQLite would write it in a statement. Joined by SQLite, which is much faster here than row by row.
  private static func text(of tables: [Table], in transaction: StoreTransaction) throws -> String {
    try tables.map { name, columns in
      let row = columns.map { "quote(\($0))" }.joined(separator: " || ',' || ")
      let order = columns.prefix(2).joined(separator: ", ")
      let query = "SELECT group_concat(row, ';') FROM (SELECT \(row) AS row FROM \(name) ORDER BY \(order))"
      return "\(name): \(try String.fetchOne(transaction.statement(query)) ?? "")\n"
    }.joined()
  }
}
