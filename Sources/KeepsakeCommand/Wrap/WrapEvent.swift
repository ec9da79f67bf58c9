#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakeReplication
import KeepsakeSync

/// What `keepsake wrap` reports on standard error, since the output is the game's: sentences for people, lines of JSON
/// for programs.
enum WrapEvent {
  /// What people should know, and programs needn't tell from other things.
  case notice(String)
  /// What opening the store had to repair.
  case repaired(String)
  case pairing(PairingCode)
  /// Saves are back in a folder that was gone.
  case putBack(Int)
  /// Saves of other devices are in their places.
  case received(Int)
  /// Both devices had changed a save; the other side's versions are beside it under these names.
  case conflict(SavePath, FolderMirror.Settlement, beside: [SavePath])
  /// What isn't synced.
  case issues([MirrorIssue])
  /// The newest saves are in place, and the game starts. For programs only.
  case ready(game: String, stateFolder: String)
  case end(SaveAreas.Counts, WrapSummary.Cloud, conflicts: Int, troubled: Int)

  /// One line of JSON.
  struct Line: Encodable {
    var event: String
    var path: String?
    var message: String?
    var game: String?
    var stateFolder: String?
    var pairingCode: String?
    var expiresInMilliseconds: Int?
    var saveCount: Int?
    /// `mine`, `theirs` or `both`.
    var choice: String?
    var beside: [String]?
    var captured: Int?
    var deleted: Int?
    var conflicts: Int?
    var troubled: Int?
    /// `none` without a cloud, `done`, `later` if it can't be reached, or `refused`.
    var upload: String?
  }

  /// The sentences for people.
  var texts: [String] {
    switch self {
    case .notice(let text): [text]
    case .repaired(let text): [Printable.text(text)]
    case .pairing(let code):
      ["pairing code: \(Printable.text(code.code))  (there: --join \(Printable.text(code.code)))"]
    case .putBack(let count): ["the folder of the saves was gone; \(CountText.of(count, "save")) put back"]
    case .received(let count): ["received \(CountText.of(count, "save"))"]
    case .conflict(let path, let choice, let beside): [Self.text(Printable.text(path.text), choice, beside)]
    case .issues(let issues): WrapSummary.lines(issues)
    case .ready: []
    case .end(let counts, let cloud, let conflicts, let troubled):
      [WrapSummary.line(counts, cloud, conflicts: conflicts, troubled: troubled)]
    }
  }

  private static func text(_ path: String, _ choice: FolderMirror.Settlement, _ beside: [SavePath]) -> String {
    switch choice {
    case .mine: return "conflict: \(path) stays as it is here; the other is in the history"
    case .theirs: return "conflict: \(path) comes from the other device; the one here is in the history"
    case .both:
      let names = beside.map { Printable.text($0.text) }.joined(separator: ", ")
      return """
        conflict: \(path) stays as it is here; the other is beside it as \
        \(names.isEmpty ? "nothing, but in the history" : names)
        """
    }
  }

  /// The lines for programs.
  var lines: [Line] {
    switch self {
    case .notice(let text): [Line(event: "notice", message: text)]
    case .repaired(let text): [Line(event: "repaired", message: text)]
    case .pairing(let code):
      [Line(event: "pairing", pairingCode: code.code, expiresInMilliseconds: code.expiresInSeconds * 1_000)]
    case .putBack(let count): [Line(event: "putBack", saveCount: count)]
    case .received(let count): [Line(event: "received", saveCount: count)]
    case .conflict(let path, let choice, let beside):
      [Line(event: "conflict", path: path.text, choice: choice.rawValue, beside: beside.map(\.text))]
    case .issues(let issues): issues.map { Line(event: "issue", path: $0.path, message: $0.message) }
    case .ready(let game, let stateFolder): [Line(event: "ready", game: game, stateFolder: stateFolder)]
    case .end(let counts, let cloud, let conflicts, let troubled):
      [
        Line(
          event: "end", message: cloud.message, captured: counts.versions, deleted: counts.deleted,
          conflicts: conflicts, troubled: troubled, upload: cloud.upload)
      ]
    }
  }

  /// Writes it on standard error.
  func write(json: Bool) {
    if json {
      for line in lines { Output.complaint(Output.json(line)) }
    } else {
      for text in texts { Output.complaint("keepsake: " + text) }
    }
  }
}

extension WrapSummary.Cloud {
  fileprivate var upload: String {
    switch self {
    case .none: "none"
    case .synced: "done"
    case .away: "later"
    case .refused: "refused"
    }
  }

  fileprivate var message: String? {
    switch self {
    case .none, .synced: nil
    case .away(let why): why
    case .refused(let count): "the cloud refused \(CountText.of(count, "item"))"
    }
  }
}
#endif
