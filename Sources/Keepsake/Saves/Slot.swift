public import KeepsakeArchive
import KeepsakeReplication

/// A named slot for saved games: its name, the type of its saves, and its conflict policy.
///
/// ```swift
/// extension Slot<World> { static let main = Slot("main") }              // @Archivable struct World
/// extension Slot<Level> { static let draft = Slot("draft", resolving: .newest) }    // struct Level: Codable
/// ```
///
/// The name is the same on every device. Don't change it once there are saves.
///
/// Calls that need no type, such as `delete` and `copy`, also take the plain name, as `SaveSlots.list` returns it.
public struct Slot<Value>: Sendable {
  /// The greatest length of a name, in bytes of UTF-8. Control characters are refused too.
  public static var maximumNameBytes: Int { ExchangeRules.maximumSlotBytes }

  /// The slot's name in Unicode's form NFC, so that names that look alike are one slot.
  public let name: String
  /// What `load` returns in a conflict.
  public let policy: ConflictPolicy<Value>
  let coding: any SlotCoding<Value>.Type

  private init(_ name: String, _ policy: ConflictPolicy<Value>, _ coding: any SlotCoding<Value>.Type) {
    self.name = name.canonical
    self.policy = policy
    self.coding = coding
  }
}

extension Slot where Value: Archivable {
  /// Creates a slot. The name is checked when the slot is used.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes`, without control characters.
  ///   - policy: What `load` returns in a conflict.
  public init(_ name: String, resolving policy: ConflictPolicy<Value> = .automatic) {
    self.init(name, policy, ArchivableSlotCoding<Value>.self)
  }
}

// If a type is also `Archivable`, the initialiser for that is chosen.
extension Slot where Value: Codable {
  /// Creates a slot for a type that is only `Codable`. A save has the value as `Coded` describes, and the name of its
  /// type, so that it isn't read as another type; a renamed type declares its old names with `FormerlyNamed`.
  ///
  /// Such a type has no merge rules: in a conflict, `automatic` takes the save with the most progress. If it becomes
  /// `@Archivable` later and stays `Codable`, its older saves can still be loaded.
  ///
  /// - Parameters:
  ///   - name: At most `maximumNameBytes`, without control characters.
  ///   - policy: What `load` returns in a conflict.
  @_disfavoredOverload
  public init(_ name: String, resolving policy: ConflictPolicy<Value> = .automatic) {
    func archivable<A: Archivable>(_ type: A.Type) -> (any SlotCoding<Value>.Type)? {
      ArchivableSlotCoding<A>.self as? any SlotCoding<Value>.Type
    }
    // In generic code, the type may turn out to be archivable.
    let type = Value.self as? any Archivable.Type
    self.init(name, policy, type.flatMap { archivable($0) } ?? CodableSlotCoding<Value>.self)
  }
}

extension Slot {
  /// Not available: a slot needs a type that can be saved.
  ///
  /// - Parameters:
  ///   - name: The slot's name.
  ///   - policy: What `load` returns in a conflict.
  @available(*, unavailable, message: "a slot's type must be @Archivable, or Codable")
  @_disfavoredOverload
  public init(_ name: String, resolving policy: ConflictPolicy<Value> = .automatic) {
    preconditionFailure("a slot's type must be @Archivable, or Codable")
  }
}
