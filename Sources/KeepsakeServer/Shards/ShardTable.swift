#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL

/// A table that has rows of players, with what a move has to know of it.
struct ShardTable: Sendable {
  struct Column: Hashable, Sendable {
    var name: String
    var isNumber = false
  }
  let name: String
  /// The column that says whose a row is.
  var owner = "container"
  /// The others.
  let columns: [Column]
  /// Those by which a container's rows are told apart, and in whose order they are read.
  let key: [String]
  /// The columns of the table's primary key, or of another unique index that rows of two databases could violate.
  var unique: [String]
  /// How many rows are read at a time.
  var pageRows = 256
  /// The column of bytes whose rows may be large: of those, some 4 MiB are read at a time.
  var bulk: String?
  /// Which rows are moved; all if it is empty.
  var filter = ""
  /// Whether home has a row of each container in the cloud, so that two players can't have the same.
  var isClaimed = false

  /// - Parameter columns: Their names; those of numbers end with a `#`.
  private init(
    _ name: String, _ columns: String, key: String, owner: String = "container", unique: String? = nil
  ) {
    func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }
    (self.name, self.owner, self.key) = (name, owner, words(key))
    self.columns = words(columns).map {
      $0.hasSuffix("#") ? Column(name: String($0.dropLast()), isNumber: true) : Column(name: $0)
    }
    self.unique = unique.map(words) ?? [owner] + words(key)
  }

  private func with(_ change: (inout ShardTable) -> Void) -> ShardTable {
    var copy = self
    change(&copy)
    return copy
  }

  /// Rows of large contents whose bytes a row names. What isn't named is swept where it is, with its bytes.
  private static let named = "taken = 9223372036854775807"

  /// In the order in which they are removed: as long as a content is there, so must its bytes be.
  static let all: [ShardTable] = [
    ShardTable("content_part", "name number# stored# bytes", key: "name number").with {
      $0.bulk = "bytes"
      $0.filter = """
        name IN (SELECT object.name FROM content_object AS object
        WHERE object.container = content_part.container AND object.\(named) AND object.place = 'rows'::bytea)
        """
    },
    ShardTable("content_object", "name place size# taken#", key: "name").with { $0.filter = named },
    ShardTable(
      "content", "hash length# base leans# file size# taken# suspect# holders# leaning# bytes", key: "hash"
    ).with { $0.bulk = "bytes" },
    ShardTable("cell", "collection key seq# mark# state", key: "collection key"),
    ShardTable("version", "id seq# mark# accepted# holds# head# slot record", key: "id"),
    ShardTable("covered", "id pruned#", key: "id"),
    ShardTable("mark", "seq# mark#", key: "seq"),
    ShardTable("past_position", "milliseconds# seq# devices", key: "milliseconds"),
    ShardTable("offer_part", "offer number# size# touched# items", key: "offer number").with { $0.bulk = "items" },
    ShardTable("device", "id player app name created# seen# set_back", key: "id"),
    ShardTable("reached", "device seq#", key: "device"),
    ShardTable("device_chain", "device chain", key: "device chain"),
    ShardTable("retired", "device at#", key: "device"),
    ShardTable("bank_decision", "operation chain verdict fingerprint# details arrival#", key: "operation"),
    ShardTable("packed_decision", "level# first entries", key: "level first"),
    ShardTable("paid_claim", "key currency amount# number#", key: "key"),
    ShardTable("paid_voucher", "bank chain", key: "bank chain"),
    ShardTable("vouched_claim", "bank key unsubtracted#", key: "bank key"),
    ShardTable("bank_order", "number# id kind details", key: "number"),
    ShardTable("good", "name count# number#", key: "name"),
    ShardTable("closed_chain", "chain count# hash follows voucher claims#", key: "chain").with { $0.pageRows = 64 },
    ShardTable("token_use", "device issued#", key: "device"),
    ShardTable("ban", "reason at#", key: ""),
    ShardTable("pairing", "app code player expires#", key: "app code", unique: "app code"),
    ShardTable("recovery", "app player code used device created#", key: ""),
    ShardTable("identity", "id app player issuer device created# joiner joined", key: "id", unique: "id").with {
      $0.isClaimed = true
    },
    ShardTable("shared", "container share player current#", key: "container", owner: "parent"),
    ShardTable("shared_device", "device share parent parent_device", key: "device"),
    ShardTable("leaving", "device until#", key: "device"),
    ShardTable("receipt", "app receipt operation", key: "app receipt", unique: "app receipt").with {
      $0.isClaimed = true
    },
  ]

  private static let bulkBytes = 4 << 20

  // MARK: Statements

  /// Reads a page of a container's rows, behind a key. Every round trip counts: the player waits meanwhile.
  func page(of container: Data, after key: [PostgreSQLValue]?) -> PostgreSQLStatement {
    var conditions = ["\(owner) = $1"]
    if !filter.isEmpty { conditions.append(filter) }
    if key != nil { conditions.append("(\(list(self.key))) > (\(Self.parameters(self.key.count, from: 2)))") }
    let order = self.key.isEmpty ? "" : " ORDER BY \(list(self.key))"
    let names = list(columns.map(\.name))
    let values = [.bytes(container)] + (key ?? [])
    func rows(_ more: String = "") -> String {
      "SELECT \(names)\(more) FROM \(name) WHERE \(conditions.joined(separator: " AND "))\(order) LIMIT \(pageRows)"
    }
    guard let bulk else { return PostgreSQLStatement(rows(), values) }
    return PostgreSQLStatement(
      """
      SELECT \(names) FROM (
        SELECT *, sum(row_bytes) OVER (\(order.dropFirst())) - row_bytes AS bytes_before
        FROM (\(rows(", coalesce(octet_length(\(bulk)), 0) AS row_bytes"))) AS page
      ) AS measured WHERE bytes_before < \(Self.bulkBytes)\(order)
      """, values)
  }

  /// Removes what a page takes the place of: everything between two keys.
  func removal(of container: Data, after lower: [PostgreSQLValue]?, through upper: [PostgreSQLValue]?)
    -> PostgreSQLStatement
  {
    var (conditions, values) = (["\(owner) = $1"], [PostgreSQLValue.bytes(container)])
    if !filter.isEmpty { conditions.append(filter) }
    for (bound, comparison) in [(lower, ">"), (upper, "<=")] {
      guard let bound, !bound.isEmpty else { continue }
      conditions.append("(\(list(key))) \(comparison) (\(Self.parameters(key.count, from: values.count + 1)))")
      values += bound
    }
    return PostgreSQLStatement("DELETE FROM \(name) WHERE \(conditions.joined(separator: " AND "))", values)
  }

  /// Writes a page of rows. One that another player has by now, of those that home has for all, stays that player's.
  func insertion(of page: PostgreSQLRows, _ container: Data) throws -> PostgreSQLStatement {
    let rows = Array(page)
    let values = try columns.enumerated().map { index, column -> PostgreSQLValue in
      column.isNumber
        ? .numbers(try rows.map { try $0.optionalInt(index) }) : .list(try rows.map { try $0.optionalBytes(index) })
    }
    return PostgreSQLStatement(
      """
      INSERT INTO \(name) (\(list([owner] + columns.map(\.name)))) \
      SELECT $1, * FROM unnest(\(Self.parameters(columns.count, from: 2))) ON CONFLICT (\(list(unique))) DO NOTHING
      """, [.bytes(container)] + values)
  }

  /// Removes some of a container's rows.
  func removal(of container: Data) -> PostgreSQLStatement {
    let filter = filter.isEmpty ? "" : " AND \(filter)"
    guard !key.isEmpty else {
      return PostgreSQLStatement("DELETE FROM \(name) WHERE \(owner) = $1\(filter)", [.bytes(container)])
    }
    return PostgreSQLStatement(
      """
      DELETE FROM \(name) WHERE \(owner) = $1 AND (\(list(key))) IN (
        SELECT \(list(key)) FROM \(name) WHERE \(owner) = $1\(filter) LIMIT \(removedAtOnce))
      """, [.bytes(container)])
  }

  private var removedAtOnce: Int { bulk == nil ? 4 * pageRows : 32 }

  /// Whether nothing is left after as many rows were removed.
  func isWhole(removed count: Int) -> Bool { key.isEmpty || count < removedAtOnce }

  /// Returns the key with which a page ends; nil if no further one follows.
  func end(of page: PostgreSQLRows) throws -> [PostgreSQLValue]? {
    guard !key.isEmpty, let last = page.last else { return nil }
    let bulk = bulk.flatMap { name in columns.firstIndex { $0.name == name } }
    let bytes = bulk.map { index in page.rows.reduce(0) { $0 + ($1[index]?.count ?? 0) } } ?? 0
    return page.rows.count == pageRows || bytes >= Self.bulkBytes ? try key(of: last) : nil
  }

  private func values(of row: PostgreSQLRow) throws -> [PostgreSQLValue] {
    try columns.enumerated().map { index, column in
      column.isNumber ? .int(try row.optionalInt(index)) : .bytes(try row.optionalBytes(index))
    }
  }

  private func key(of row: PostgreSQLRow) throws -> [PostgreSQLValue] {
    let values = try values(of: row)
    return key.compactMap { name in columns.firstIndex { $0.name == name }.map { values[$0] } }
  }

  private func list(_ names: [String]) -> String { names.joined(separator: ", ") }

  private static func parameters(_ count: Int, from first: Int) -> String {
    (first..<first + count).map { "$\($0)" }.joined(separator: ", ")
  }
}
#endif
