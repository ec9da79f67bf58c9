#if Cloud
import Crypto
import Foundation
import GRDB
import Hummingbird
import KeepsakeReplication

/// What the audit log says about one act of the studio: who, what, about whom, when, and what came of it.
///
/// A row is never changed or removed, not even when everything of the player is deleted. So it has no id of a player, a
/// device, a version or an order, but the SHA-256 of it: with the id one finds its rows, and from a row nobody finds
/// the id. The ids are random and too long to be guessed.
struct AuditEntry: Sendable {
  static let done = "done"

  var atMilliseconds: Int64
  /// The key's id, and its name.
  var key: String
  var name: String
  /// Such as `save.restore`.
  var act: String
  /// The request's id, which its response has, too.
  var request: String
  /// The SHA-256 of the player's id; nil if it is about none.
  var player: ContentHash?
  /// The SHA-256 of the id of what it is about: a device, a version, an order.
  var subject: ContentHash?
  /// What else an auditor should know. Nothing here may come from a player, except the name of a currency.
  var details: [String: String] = [:]
  /// `done`, or the code of the error with which it was refused.
  var result = done

  /// The hash under which an id is in the log.
  static func hash(_ id: Identifier<some Any>) -> ContentHash { ContentHash(of: Data(id.description.utf8)) }

  /// Appends it in the transaction of the act.
  func append(in db: Database) throws {
    let last = try Row.fetchOne(
      db.cachedStatement(sql: "SELECT number, chain FROM audit ORDER BY number DESC LIMIT 1"))
    // If the last rows were cut off, the next one doesn't take their place: the gap stays, and is found.
    let newest = max(
      try last?.decode(Int64.self, atIndex: 0) ?? 0, Int64(clamping: try CloudNumber.auditRows.value(in: db)))
    guard newest < .max else { throw ServerError(.damaged, "The audit log's rows can't be counted any more.") }
    let row = try AuditRow(self, number: newest + 1, after: try last?.decode(Data.self, atIndex: 1) ?? Data())
    try db.cachedStatement(
      sql: """
        INSERT INTO audit (number, at, key, name, act, request, details, result, player, subject, chain)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    ).execute(
      arguments: [
        row.number, row.atMilliseconds, row.key, row.name, row.act, row.request, row.details, row.result, row.player,
        row.subject, row.chain,
      ])
    try CloudNumber.auditRows.set(UInt64(row.number), in: db)
  }
}

/// A row of the audit log, as a database has it.
struct AuditRow: Sendable {
  var number: Int64
  var atMilliseconds: Int64
  var key: String
  var name: String
  var act: String
  var request: String
  /// As JSON.
  var details: String
  var result: String
  var player: Data?
  var subject: Data?
  /// The hash of all of this and the row before it.
  var chain = Data()

  /// What `chain` has to be.
  func hash(after previous: Data) -> Data {
    AuditLink(
      number: number, atMilliseconds: atMilliseconds, texts: [key, name, act, request, details, result],
      hashes: [player, subject]
    ).hash(after: previous)
  }
}

extension AuditRow {
  /// - Parameter previous: The hash of the row before it; no bytes for the first one.
  init(_ entry: AuditEntry, number: Int64, after previous: Data) throws {
    self.init(
      number: number, atMilliseconds: entry.atMilliseconds, key: entry.key, name: entry.name, act: entry.act,
      request: entry.request, details: try Response.text(of: entry.details), result: entry.result,
      player: entry.player?.bytes, subject: entry.subject?.bytes)
    chain = hash(after: previous)
  }
}

/// What a row's hash is made of, with the hash of the row before it.
struct AuditLink {
  var number: Int64
  var atMilliseconds: Int64
  var texts: [String]
  var hashes: [Data?]

  func hash(after previous: Data) -> Data {
    var hasher = SHA256()
    // With their lengths, so that no two rows are the same bytes.
    func add(_ bytes: Data) {
      withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { hasher.update(bufferPointer: $0) }
      hasher.update(data: bytes)
    }
    add(previous)
    for value in [number, atMilliseconds] {
      withUnsafeBytes(of: value.bigEndian) { hasher.update(bufferPointer: $0) }
    }
    for text in texts { add(Data(text.utf8)) }
    for hash in hashes { add(hash ?? Data()) }
    return Data(hasher.finalize())
  }
}

extension Response {
  fileprivate static func text(of details: [String: String]) throws -> String {
    String(decoding: try json(details), as: UTF8.self)
  }
}
#endif
