#if Cloud
import KeepsakeMirror
import KeepsakeReplication

/// What `keepsake wrap` says: on standard error, since the output is the game's.
enum WrapSummary {
  /// How the last exchange with the cloud ended.
  enum Cloud: Hashable, Sendable {
    /// None was named.
    case none
    case synced
    /// It can't be reached, or took too long; why.
    case away(String)
    /// It refused this many items.
    case refused(Int)
  }
  private static let issuesShown = 10

  /// Returns the line for the end.
  static func line(_ counts: SaveAreas.Counts, _ cloud: Cloud, conflicts: Int, troubled: Int) -> String {
    var parts: [String] = []
    let isUnchanged = counts.changed.isEmpty && counts.deleted == 0
    if isUnchanged { parts.append("no save changed") }
    if !counts.changed.isEmpty {
      let files = CountText.of(counts.changed.count, "save")
      parts.append("kept \(CountText.of(counts.versions, "version")) of \(files)")
    }
    if counts.deleted > 0 { parts.append("\(CountText.of(counts.deleted, "save")) deleted, the history stays") }
    switch cloud {
    case .none: parts.append("on this device only: no cloud or shared folder is named")
    case .synced: parts.append(isUnchanged ? "everything is uploaded" : "uploaded")
    case .away(let why): parts.append("not uploaded (\(trimmed(why))): that follows at the next start")
    case .refused(let count): parts.append("the cloud refused \(CountText.of(count, "item"))")
    }
    if conflicts > 0 {
      parts.append("another device changed \(CountText.of(conflicts, "save")) meanwhile: decided at the next start")
    }
    if troubled > 0 { parts.append("\(CountText.of(troubled, "file")) could not be kept") }
    return parts.joined(separator: "; ")
  }

  /// Returns the lines about what isn't synced.
  static func lines(_ issues: [MirrorIssue]) -> [String] {
    var lines = issues.prefix(issuesShown).map {
      "skipped \(Printable.text($0.path)): \(Printable.text($0.message))"
    }
    if issues.count > issuesShown { lines.append("skipped \(issues.count - issuesShown) more") }
    return lines
  }

  static func trimmed(_ why: String) -> String {
    Printable.text(why.hasSuffix(".") ? String(why.dropLast()) : why)
  }
}
#endif
