#if Cloud
import KeepsakeMirror
import KeepsakeReplication

/// Slots as people write them, and as stores have them: the slot keys of local slots and of tracked files begin with
/// characters that nobody can type.
enum SlotName {
  private static let tracked = "tracked:"

  /// Returns a slot key, given as its text, as people write it.
  static func shown(_ text: String) -> String {
    let key = SlotKey(text: text)
    return key.fileName.map { tracked + $0 } ?? key.name
  }

  /// Returns the slot that was typed. A game's own slot that is named like a tracked file can't be reached in this way;
  /// the game's other commands reach it.
  static func slot(_ typed: String) -> String {
    typed.utf8.starts(with: tracked.utf8) ? SlotKey.file(String(typed.dropFirst(tracked.count))).text : typed
  }

  /// Returns what is still to be done after a slot got a new version; nil if nothing is.
  static func followingStep(_ typed: String) -> String? {
    guard typed.hasPrefix(SavePath.slotPrefix) else { return nil }
    return "the file itself changes at the next keepsake sync or keepsake wrap"
  }

  /// Returns the slot keys under which the store may have versions of it: the one that every device has, and the one
  /// that stays on this device.
  static func keys(of typed: String) -> [SlotKey] {
    let key = SlotKey(text: slot(typed))
    return [key, key.local]
  }
}
#endif
