#if Cloud
import KeepsakeReplication

/// Slots as people write them, and as stores have them: local keys and those of tracked files begin with characters that nobody can type.
enum SlotName {
  private static let tracked = "tracked:"

  /// Of its key's text.
  static func shown(_ text: String) -> String {
    let key = SlotKey(text: text)
    return key.fileName.map { tracked + $0 } ?? key.name
  }

  /// The slot that was typed. A game's own slot can't be called like a tracked file here, and is reached by its other commands.
  static func slot(_ typed: String) -> String {
    typed.utf8.starts(with: tracked.utf8) ? SlotKey.file(String(typed.dropFirst(tracked.count))).text : typed
  }

  /// Under what the store has versions of it: what every device has, and what stays on this one.
  static func keys(of typed: String) -> [SlotKey] {
    let key = SlotKey(text: slot(typed))
    return [key, key.local]
  }
}
#endif
