import KeepsakeReplication

/// A named slot for saved games: its name, the type of its saves, and its conflict policy.
///
/// ```swift
/// extension Slot<World> { static let main = Slot("main") }
/// extension Slot<Settings> { static let settings = Slot("settings", resolving: .newest) }
/// ```
///
/// The name is the same on every device. Don't change it once there are saves.
///
/// Calls that need no type, such as `delete` and `copy`, also take the plain name, as `SaveSlots.list` returns it.
public struct Slot<Value: Archivable>: Sendable {
  /// The greatest length of a name, in bytes of UTF-8. Control characters are refused too.
  public static var maximumNameBytes: Int { ExchangeRules.maximumSlotBytes }

  /// The slot's name in Unicode's form NFC, so that names that look alike are one slot.
  public let name: String
  /// What `load` returns in a conflict.
  public let policy: ConflictPolicy<Value>

  /// Creates a slot. The name is checked when the slot is used.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes`, without control characters.
  ///   - policy: What `load` returns in a conflict.
  public init(_ name: String, resolving policy: ConflictPolicy<Value> = .automatic) {
    self.name = name.canonical
    self.policy = policy
  }
}
