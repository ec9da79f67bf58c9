import KeepsakeReplication

/// The place of one saved game: its name, its type and what happens when two devices saved it.
///
///     extension Slot<World> { static var main: Self { "main" } }
///     extension Slot<Settings> { static var settings: Self { Slot("settings", resolving: .newest) } }
///
/// The name is the same on every device, so it must not change once there are saves.
public struct Slot<Value: Archivable>: Sendable, ExpressibleByStringLiteral {
  /// The most bytes of a name; control characters are refused too.
  public static var maximumNameBytes: Int { ExchangeRules.maximumSlotBytes }

  /// The slot's name, on every device, in Unicode's form NFC: however it is spelled, what looks alike is one slot.
  public let name: String
  /// What `load` gives when two devices saved without knowing of each other.
  public let policy: ConflictPolicy<Value>

  /// - Parameter policy: What `load` gives when two devices saved without knowing of each other.
  public init(_ name: String, resolving policy: ConflictPolicy<Value> = .automatic) {
    self.name = name.canonical
    self.policy = policy
  }

  public init(stringLiteral name: String) { self.init(name) }
}
