#if Cloud
import KeepsakeReplication

/// Slots as people write them, and as stores have them: the names of places on this device and of tracked files begin with characters that
/// nobody can type.
enum SlotName {
  private static let tracked = "tracked:"

  /// Of a store's name for it.
  static func shown(_ place: String) -> String {
    let slot = LocalSlot.slot(at: place)
    return FileSlot.name(of: slot).map { tracked + $0 } ?? slot
  }

  /// The slot that was typed. A game's own slot can't be called like a tracked file here, and is reached by its other commands.
  static func slot(_ typed: String) -> String {
    typed.utf8.starts(with: tracked.utf8) ? FileSlot.slot(String(typed.dropFirst(tracked.count))) : typed
  }

  /// Where the store has versions of it: what every device has, and what stays on this one.
  static func places(of typed: String) -> [String] { [slot(typed), LocalSlot.place(of: slot(typed))] }
}
#endif
