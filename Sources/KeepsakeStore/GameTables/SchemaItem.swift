/// One entry of a database's schema, found in a file that may come from anybody.
struct SchemaItem {
  var type: String
  var name: String
  var sql: String

  private static let table = "CREATE TABLE "
  private static let virtualTable = "CREATE VIRTUAL TABLE "

  var isVirtual: Bool { type == "table" && begins(with: Self.virtualTable) }

  /// Whether the statement creates what the entry claims, in the form in which SQLite stores it. It could be any other
  /// statement: one that writes a file somewhere, or never ends.
  var isMade: Bool {
    switch type {
    case "table": isVirtual || begins(with: Self.table) && listsColumns
    case "index": begins(with: "CREATE INDEX ") || begins(with: "CREATE UNIQUE INDEX ")
    case "view": begins(with: "CREATE VIEW ")
    case "trigger": begins(with: "CREATE TRIGGER ")
    default: false
    }
  }

  /// Compares bytes, as SQLite does: to Swift, a character followed by a combining accent is a different character.
  private func begins(with text: String) -> Bool { sql.utf8.starts(with: text.utf8) }

  /// Whether a list of columns follows the table's name, and not a query that fills the table.
  private var listsColumns: Bool {
    var rest = Array(sql.utf8.dropFirst(Self.table.utf8.count))[...]
    rest = rest.drop(while: Self.isSpace)
    guard let first = rest.first else { return false }
    if let closing = Self.closing(first) {
      repeat {
        guard let end = rest.dropFirst().firstIndex(of: closing) else { return false }
        rest = rest[(end + 1)...]
        // A doubled quotation mark represents one within the name.
      } while closing != UInt8(ascii: "]") && rest.first == closing
    } else {
      rest = rest.drop { !Self.isSpace($0) && !"(/-".utf8.contains($0) }
    }
    while true {
      rest = rest.drop(while: Self.isSpace)
      if rest.starts(with: "/*".utf8), let end = rest.dropFirst(2).firstRange(of: Array("*/".utf8)) {
        rest = rest[end.upperBound...]
      } else if rest.starts(with: "--".utf8), let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        rest = rest[end...]
      } else {
        return rest.first == UInt8(ascii: "(")
      }
    }
  }

  /// Returns the mark that closes a name beginning with this one; nil if the name isn't quoted.
  private static func closing(_ mark: UInt8) -> UInt8? {
    switch mark {
    case UInt8(ascii: "["): UInt8(ascii: "]")
    case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "`"): mark
    default: nil
    }
  }

  /// What SQLite treats as white space.
  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0C || byte == 0x0D
  }
}
