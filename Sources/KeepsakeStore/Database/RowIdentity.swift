import KeepsakeReplication

/// The identity of each row, as text that its checksum and its seal are bound to.
enum RowIdentity {
  static func fact(_ name: String) -> String { "fact \(name)" }
  static func cell(_ key: CellKey) -> String { "cell \(key)" }
  static func preference(_ name: String) -> String { "preference \(name)" }
  /// Includes the columns beside the body, so that an altered slot, time or mark is detected when the row is read.
  static func version(_ id: VersionID, slot: String, savedAt: Int64, marks: VersionMarks) -> String {
    "version \(id) \(marks) \(savedAt) \(slot)"
  }
  /// Includes all columns beside the body: who achieved which score, and when.
  static func score(_ score: ScoreRow) -> String {
    "score \(score.id) \(score.rank) \(score.date) \(ScoreEntry.keyPrefix(of: score.board))\(score.player)"
  }
  static func outbox(_ id: Int64) -> String { "outbox \(id)" }
  static let staged = "staged"
}
