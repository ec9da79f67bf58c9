#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakePlatform
import KeepsakeReplication
/// How `keepsake wrap` decides where both this device and another one changed a save.
enum ConflictChoice: String, CaseIterable, Sendable {
  case ask, mine, theirs, both
}

/// The question on the terminal: one for all files that two devices changed.
enum ConflictQuestion {
  private static let filesShown = 8
  /// How often it is looked whether the command is to stop.
  private static let pollMilliseconds: Int32 = 100

  /// Whether there is somebody to ask.
  static var hasTerminal: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

  static func text(_ game: String, _ conflicts: [MirrorConflict]) -> String {
    var lines = [
      """
      keepsake: "\(Printable.text(game))" was played here and on another device since both had the same saves. \
      \(CountText.of(conflicts.count, "file differs", plural: "files differ")):
      """
    ]
    for conflict in conflicts.prefix(filesShown) {
      let theirs = conflict.theirs.map(shown).joined(separator: "; ")
      lines.append("  \(Printable.text(conflict.path.text))   here: \(shown(conflict.mine))   there: \(theirs)")
    }
    if conflicts.count > filesShown { lines.append("  ... and \(conflicts.count - filesShown) more") }
    lines.append("Keep mine (this device), theirs, or both? All of them stay in the history. [m/t/b] ")
    return lines.joined(separator: "\n")
  }

  private static func shown(_ version: VersionRecord) -> String {
    let saved = TimeText.iso(milliseconds: version.savedAtMilliseconds)
    return "\(saved), \(Printable.size(Int64(version.length)))"
  }

  /// What an answer means; nil if it means nothing.
  static func settlement(of answer: String) -> FolderMirror.Settlement? {
    let word = answer.trimmingCharacters(in: .whitespacesAndNewlines).lowercased()
    guard !word.isEmpty else { return nil }
    return FolderMirror.Settlement.allCases.first { $0.rawValue.hasPrefix(word) }
  }

  /// Reads a line of the terminal and no more: what follows it is typed for the game.
  ///
  /// - Returns: Nil at the end of the input, or once `isStopped`.
  static func readLine(isStopped: () -> Bool) -> String? {
    var line: [UInt8] = []
    while !isStopped() {
      var state = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
      guard poll(&state, 1, pollMilliseconds) > 0 else { continue }
      var byte: UInt8 = 0
      let count = read(STDIN_FILENO, &byte, 1)
      if count < 0, errno == EINTR { continue }
      guard count == 1 else { return nil }
      if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
    }
    return nil
  }
}
#endif
