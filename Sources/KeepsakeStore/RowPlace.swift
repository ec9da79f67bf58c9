import KeepsakeReplication

/// What each row is, in the words that its checksum and its seal are bound to.
enum RowPlace {
  static func fact(_ name: String) -> String { "fact \(name)" }
  static func cell(_ key: CellKey) -> String { "cell \(key)" }
  static func version(_ id: VersionID) -> String { "version \(id)" }
  static func outbox(_ id: Int64) -> String { "outbox \(id)" }
  static let staged = "staged"
}
