#if Cloud
import KeepsakeReplication

/// Slots as people write them, and as stores have them: the slot keys of local slots and of tracked files begin with
/// characters that nobody can type.
enum SlotName {
  private static let tracked = "tracked:"

  /// Returns a slot key of the store as people write it.
  static func shown(_ place: String) -> String {
    let slot = LocalSlot.slot(at: place)
    return FileSlot.name(of: slot).map { tracked + $0 } ?? slot
  }

  /// Returns the slot that was typed. A game's own slot that is named like a tracked file can't be reached in this way;
  /// the game's other commands reach it.
  static func slot(_ typed: String) -> String {
    typed.utf8.starts(with: tracked.utf8) ? FileSlot.slot(String(typed.dropFirst(tracked.count))) : typed
  }

  /// Returns the slot keys under which the store may have versions of it: the one that every device has, and the one
  /// that stays on this device.
  static func places(of typed: String) -> [String] { [slot(typed), LocalSlot.place(of: slot(typed))] }
}
#endif
