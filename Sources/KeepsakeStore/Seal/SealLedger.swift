import Crypto
import Foundation
import GRDB

/// A keyed sum over all rows of a sealed store, and a count of their changes, kept in a row of its own.
///
/// Each row verifies on its own, so it would go unnoticed if one were removed or replaced with yesterday's: money that
/// was spent would be there again. The sum reveals that. Triggers update it within the transaction that changes a row,
/// so that no way of writing can forget it. It can't detect that a whole store was replaced with an older copy; only
/// somebody who keeps the count elsewhere can.
///
/// The sum is one of HMACs modulo 2^256, and is itself protected by an HMAC, so that known sums can't be combined into
/// new ones. The outbox and staged changes are left out: they change often, and the cloud requests again what it lacks.
struct SealLedger: Sendable, Equatable {
  private static let bodyBytes = 8 + 32 + 32
  private static let function = "keepsake_ledger"

  /// The tables, what identifies a row in each (with `$` for the row), and its body.
  private static let sources: [(table: String, key: String, body: String, columns: String)] = [
    ("fact", "$.name", "$.body", "name, body"),
    // Prefixed with the length: no two pairs give the same text.
    ("cell", "length($.collection) || '/' || $.collection || '/' || $.key", "$.body", "collection, key, body"),
    ("preference", "$.name", "$.body", "name, body"),
    ("version", "hex($.id) || '/' || $.slot", "$.body", "id, slot, body"),
    ("covered", "hex($.id)", "x''", "id"),
    ("performed", "hex($.key)", "CAST($.fingerprint AS TEXT)", "key, fingerprint"),
    // The body is bound to the other columns.
    (
      "score", "hex($.id) || '/' || length($.board) || '/' || $.board || '/' || $.player", "$.body",
      "board, rank, date, id, player, body"
    ),
  ]

  /// How many rows were ever changed.
  private(set) var count: UInt64 = 0
  private var sum = Sum()

  // MARK: Keeping

  /// Returns the stored ledger; nil if it is missing or wasn't written with this key.
  static func read(from database: Database, key: SealKey) throws -> SealLedger? {
    let value = try DatabaseValue.fetchOne(database, sql: "SELECT body FROM ledger")
    return value.flatMap(Data.fromDatabaseValue).flatMap { SealLedger($0, key: key) }
  }

  /// Computes the sum over the existing rows. Costs a pass over the rows, with an HMAC for each.
  static func counted(in database: Database, key: SealKey) throws -> SealLedger {
    var ledger = SealLedger()
    var elements = Elements(key: key)
    for source in sources {
      let name = source.key.replacingOccurrences(of: "$.", with: "")
      let body = source.body.replacingOccurrences(of: "$.", with: "")
      let rows = try Row.fetchCursor(
        database, sql: "SELECT \(name) AS key, \(body) AS body FROM \(source.table) \(condition(source.table, ""))")
      while let row = try rows.next() {
        ledger.sum.add(elements.element(source.table, row[0], row[1]))
      }
    }
    return ledger
  }

  /// Returns whether both are sums over the same rows.
  func isSame(as other: SealLedger) -> Bool { sum == other.sum }

  func write(to database: Database, key: SealKey, count: UInt64) throws {
    var ledger = self
    ledger.count = count
    try database.execute(sql: "INSERT OR REPLACE INTO ledger (id, body) VALUES (1, ?)", arguments: [ledger.body(key)])
  }

  /// Makes the connection keep the ledger up to date, whatever is written through it.
  static func keep(on database: Database, key: SealKey) throws {
    let elements = Elements(key: key)
    database.add(
      function: DatabaseFunction(function, argumentCount: 6, pure: true) { values in
        guard let body = Data.fromDatabaseValue(values[0]), var ledger = SealLedger(body, key: key) else {
          // Changed or damaged while the store is open. The next opening detects that; saving must continue until then.
          return values[0]
        }
        let table = String.fromDatabaseValue(values[1]) ?? ""
        var elements = elements
        if !values[2].isNull { ledger.sum.subtract(elements.element(table, values[2], values[3])) }
        if !values[4].isNull { ledger.sum.add(elements.element(table, values[4], values[5])) }
        ledger.count &+= 1
        return ledger.body(key)
      })
    // Otherwise a row that REPLACE removes would go unnoticed.
    try database.execute(sql: "PRAGMA recursive_triggers = ON")
    for source in sources {
      func trigger(_ event: String, _ name: String, old: Bool, new: Bool) -> String {
        func row(_ isThere: Bool, _ prefix: String) -> String {
          guard isThere else { return "NULL, NULL" }
          return "\(source.key), \(source.body)".replacingOccurrences(of: "$", with: prefix)
        }
        return """
          CREATE TEMP TRIGGER keepsake_ledger_\(source.table)_\(name) AFTER \(event) ON main.\(source.table)
          \(condition(source.table, new ? "new." : "old.").replacingOccurrences(of: "WHERE", with: "WHEN")) BEGIN
            UPDATE ledger SET body = \(function)(body, '\(source.table)', \(row(old, "old")), \(row(new, "new")));
          END
          """
      }
      try database.execute(sql: trigger("INSERT", "insert", old: false, new: true))
      try database.execute(sql: trigger("DELETE", "delete", old: true, new: false))
      try database.execute(sql: trigger("UPDATE OF \(source.columns)", "update", old: true, new: true))
    }
  }

  /// The header is excluded, because it changes together with the ledger: it names the key that the ledger is written
  /// with.
  private static func condition(_ table: String, _ prefix: String) -> String {
    table == "fact" ? "WHERE \(prefix)name <> '\(SealHeader.factName)'" : ""
  }

  // MARK: Bytes

  private init() {}

  /// Nil if it wasn't written with this key.
  init?(_ body: Data, key: SealKey) {
    guard body.count == Self.bodyBytes,
      HMAC<SHA256>.isValidAuthenticationCode(
        body.suffix(32), authenticating: Data([2]) + body.prefix(40), using: key.ledger)
    else { return nil }
    let words = body.withUnsafeBytes { raw in
      (0..<5).map { UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self)) }
    }
    count = words[0]
    sum = Sum(words: Array(words[1...]))
  }

  private func body(_ key: SealKey) -> Data {
    var body = Data(capacity: Self.bodyBytes)
    for word in [count] + sum.words { withUnsafeBytes(of: word.bigEndian) { body.append(contentsOf: $0) } }
    return body + Data(HMAC<SHA256>.authenticationCode(for: Data([2]) + body, using: key.ledger))
  }

  /// Computes what each row adds to the sum. Keeps what all rows share: the key's part of the HMAC, and a buffer for a
  /// row's bytes.
  private struct Elements: Sendable {
    private let keyed: HMAC<SHA256>
    private var bytes: [UInt8] = []

    init(key: SealKey) { keyed = HMAC(key: key.ledger) }

    mutating func element(
      _ table: String, _ name: (any DatabaseValueConvertible)?, _ body: (any DatabaseValueConvertible)?
    ) -> Sum {
      bytes.removeAll(keepingCapacity: true)
      bytes.append(1)
      append(table.databaseValue)
      append(name?.databaseValue)
      append(body?.databaseValue)
      var code = keyed
      code.update(data: bytes)
      let words = code.finalize().withUnsafeBytes { raw in
        (0..<4).map { UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self)) }
      }
      return Sum(words: words)
    }

    /// A value of the wrong type counts as a different value.
    private mutating func append(_ value: DatabaseValue?) {
      let part = value.flatMap { Data.fromDatabaseValue($0) } ?? Data()
      withUnsafeBytes(of: UInt64(part.count).bigEndian) { bytes.append(contentsOf: $0) }
      part.withUnsafeBytes { bytes.append(contentsOf: $0) }
    }
  }

  /// A number modulo 2^256, most significant word first.
  private struct Sum: Sendable, Equatable {
    var words: [UInt64] = [0, 0, 0, 0]

    mutating func add(_ other: Sum) {
      var carry = false
      for index in words.indices.reversed() {
        let (partial, over) = words[index].addingReportingOverflow(other.words[index])
        let (total, overAgain) = partial.addingReportingOverflow(carry ? 1 : 0)
        words[index] = total
        carry = over || overAgain
      }
    }

    mutating func subtract(_ other: Sum) {
      var borrow = false
      for index in words.indices.reversed() {
        let (partial, under) = words[index].subtractingReportingOverflow(other.words[index])
        let (rest, underAgain) = partial.subtractingReportingOverflow(borrow ? 1 : 0)
        words[index] = rest
        borrow = under || underAgain
      }
    }
  }
}
