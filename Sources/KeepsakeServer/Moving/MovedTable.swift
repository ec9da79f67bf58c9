#if Cloud
import Foundation

/// A table whose rows can be moved from one database into another: its columns in a form that both have.
///
/// Names are those in PostgreSQL; in SQLite the same words are joined by capital letters.
struct MovedTable: Sendable {
  struct Column: Sendable {
    enum Kind: Sendable { case number, bytes, text }
    var name: String
    /// Text only in SQLite: in PostgreSQL it is bytes.
    var kind: Kind

    static func number(_ name: String) -> Self { Self(name: name, kind: .number) }
    static func bytes(_ name: String) -> Self { Self(name: name, kind: .bytes) }
    static func text(_ name: String) -> Self { Self(name: name, kind: .text) }

    var local: String { MovedTable.local(name) }
  }
  /// How SQLite keeps the rows.
  enum Layout: Sendable {
    /// As PostgreSQL does.
    case plain
    /// By the number of their container.
    case numbered
    /// With something else than columns: see `SQLiteMovedRows`.
    case containers, reached, versions, contents
  }
  var name: String
  /// Its name in SQLite.
  var local: String
  var layout: Layout
  /// The column that says whose the rows are.
  var owner: String
  /// The other columns, those first by which the rows of one owner are told apart.
  var columns: [Column]
  /// How many of them that are.
  var keys: Int
  /// Columns that no two rows of the whole cloud share, of a table whose rows can go from one owner to another.
  var unique: [String]
  /// How many rows are read at a time where they are read in pages.
  var page: Int64

  /// - Parameter local: Its name in SQLite; nil for the same words.
  init(
    name: String, local: String? = nil, layout: Layout = .plain, owner: String = "container", columns: [Column],
    keys: Int, unique: [String] = [], page: Int64 = 500
  ) {
    (self.name, self.local, self.layout, self.owner) = (name, local ?? Self.local(name), layout, owner)
    (self.columns, self.keys, self.unique, self.page) = (columns, keys, unique, page)
  }

  var localOwner: String { Self.local(owner) }

  /// Whether SQLite names the container by its number.
  var isNumbered: Bool {
    switch layout {
    case .plain, .containers, .reached: false
    case .numbered, .versions, .contents: true
    }
  }

  static func local(_ name: String) -> String {
    let words = name.split(separator: "_")
    return words.prefix(1).joined() + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
  }
}
#endif
