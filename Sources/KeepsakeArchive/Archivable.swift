/// A value that can be kept in an archive.
///
/// `@Archivable` writes the conformance. By hand, implement `encode(to:)` and `init(from:)` with keys:
///
///     struct Level: Archivable {
///       var name: String
///       init(name: String) { self.name = name }
///       func encode(to writer: inout ArchiveWriter) throws { try writer.encode(name, forKey: "name") }
///       init(from reader: inout ArchiveReader) throws {
///         self.init(name: try reader.decode(String.self, forKey: "name"))
///       }
///     }
///
/// A class keeps its identity: it is written once, however many references lead to it. References that may form
/// cycles belong into `encodeReferences(to:)` and `decodeReferences(from:)`, which are called when all objects exist.
/// Hash values and comparisons of a class used in sets or as a dictionary key must not lean on such references.
///
/// Chains of objects may be as long as memory allows: neither encoding nor decoding goes from object to object by calls. But
/// Swift itself releases the next object of a chain from within the release of the one before (but for a final class with just one
/// reference to its own type, of which the compiler makes a loop), so a chain of some ten thousand overflows the stack when
/// its head goes away. Take such a chain apart first, in a loop, whether it was decoded or not:
///
///     while let next = head.next { head.next = nil; head = next }
public protocol Archivable {
  /// Writes the value. For a class, everything that its initialiser needs.
  func encode(to writer: inout ArchiveWriter) throws

  /// Builds the value from what was written. May call the type's normal initialiser first and then apply what was saved.
  init(from reader: inout ArchiveReader) throws

  /// Called on each object, and on the root value, once everything has been decoded; not on structs and enums inside.
  /// Does nothing by default.
  func didDecode(context: Any?) throws

  /// Brings a value up to date that was saved with an older version of its type. Does nothing by default.
  ///
  /// Called when the type's `archiveVersion` is above the saved one; fields that still exist have been read by then, and new
  /// ones have their defaults. `saved` has everything that was saved, by key:
  ///
  ///     @Archivable(version: 2) struct Hero {
  ///       var firstName = "", lastName = ""          // was one `name`
  ///       var health = 1.0                           // was an Int of percents
  ///
  ///       mutating func migrate(_ saved: inout ArchiveMigration) throws {
  ///         let words = try saved.decode(String.self, forKey: "name", default: "").split(separator: " ", maxSplits: 1)
  ///         firstName = words.first.map(String.init) ?? ""
  ///         lastName = words.count > 1 ? String(words[1]) : ""
  ///         health = Double(try saved.decode(Int.self, forKey: "health", default: 100)) / 100
  ///       }
  ///     }
  ///
  /// - A field whose saved type can't be read as its new one is left to the hook: it must have a default value (or be an optional
  ///   variable), and the hook must read its key. If either is missing, decoding throws `mismatch`. Where versions agree
  ///   there is no hook, and it throws `mismatch` at once. Numbers that become wider need none of this.
  /// - A field that got another *meaning* under the same key and type is read as it stands; the hook corrects it.
  /// - Structs and enums are migrated as soon as they are read; objects once all of them exist and refer to each other,
  ///   before any `didDecode(context:)`; others may still have their hooks before them. Inside an enum's hook, `saved.caseKey` is the saved case.
  /// - In a class it must stand in the class itself, not in an extension. Each class of an object has a version of its own: its hook is called if that
  ///   rose, the superclass's first, and sees its own class's saved version. So a hook never calls `super.migrate`. A class that
  ///   was put into the hierarchy later was not saved and is not migrated.
  /// - Hand-written conformances are not migrated: they ask `ArchiveReader.savedVersion`.
  ///
  /// Programs that know only the older version refuse what this one saves, with `tooNew`.
  mutating func migrate(_ saved: inout ArchiveMigration) throws

  /// Calls the hooks of the classes above an object's own; written by the macro. Nothing by default.
  func migrateSuperclasses(_ saved: inout ArchiveMigration) throws

  /// Writes the references of an object that may be set after all objects exist. Nothing by default.
  func encodeReferences(to writer: inout ArchiveWriter) throws

  /// Sets what `encodeReferences(to:)` wrote. Nothing by default.
  func decodeReferences(from reader: inout ArchiveReader) throws

  /// Reads the fields of subclasses that inherit their initialisers; written by the macro. Nothing by default.
  func decodeInheritedFields(from reader: inout ArchiveReader) throws

  /// Takes over what another device changed, field by field; written by the macro when a property, or the type of one, carries `@Merge`.
  ///
  /// The rules `.max`, `.min`, `.union` and `.counter` give the same result in whatever order and however often states are
  /// merged. A property without a rule keeps this value, unless only the other side changed it since the ancestor, which is seen
  /// by what a save would hold of it; if both did, this value wins, so there it shows which side merges into which. A property whose type
  /// has rules of its own merges by them, or as a whole if the type is `Identifiable` and the two have different ids. By default nothing changes.
  ///
  /// Objects are changed in place, and take over objects of the other graph, which has to be left to them. Costs an encoding of each property
  /// without a rule, for each side.
  ///
  /// - Parameter ancestor: The last state that both had, if it is known. Without it, properties without a rule keep this value.
  mutating func mergeFields(from other: Self, ancestor: Self?)

  /// Whether `mergeFields(from:ancestor:)` does anything: whether a property has a rule, or the type of one does.
  static var archiveHasMergeRules: Bool { get }

  /// The name in the archive. For a class it finds the class again, so it must not change once there are saves.
  static var archiveName: String { get }

  /// Rises when older programs must not read what this one writes, or when `migrate(_:)` shall be called. 1 by default.
  static var archiveVersion: Int { get }

  /// Subclasses that may stand where this class is declared.
  static var archiveSubclasses: [any Archivable.Type] { get }

  /// Lists the fields or cases; written by the macro. By default the type is hand-written and its fields carry keys.
  static func archiveFields(_ fields: ArchiveFieldList)

  /// The layout of a value of this type inside another; for the types that come with the archive.
  static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType

  /// Writes a value as part of another: a struct's fields, or the number of an object.
  static func archiveWrite(_ value: Self, to writer: inout ArchiveWriter) throws

  /// Reads what `archiveWrite` wrote.
  static func archiveRead(from reader: inout ArchiveReader) throws -> Self

  /// Writes the elements of an array, which are of this type.
  static func archiveWriteElements(_ values: UnsafeRawPointer, count: Int, to writer: inout ArchiveWriter) throws

  /// Writes a value that may be missing, as part of another.
  static func archiveWriteOptional(_ value: Self?, to writer: inout ArchiveWriter) throws
  /// Reads what `archiveWriteOptional` wrote.
  static func archiveReadOptional(from reader: inout ArchiveReader) throws -> Self?

  /// For numbers: the code of the scalar as which an array of them is written in one block. 0 for everything else.
  static var archiveBlockCode: UInt8 { get }

  /// Whether `encode(to:)` is written by hand, with a key for each field.
  static var archiveIsKeyed: Bool { get }
}

/// Makes a struct, enum or class archivable, field by field.
///
/// - Parameters:
///   - name: The name in archives, if it shall differ from the type's name. Give a class that you rename its old name.
///   - version: Raise it when programs that don't know the change must refuse the save, or when `migrate(_:)` has something to do.
///   - subclasses: The archivable subclasses that may stand where this class is declared.
@attached(
  extension, conformances: Archivable,
  names: named(encode), named(init), named(archiveName), named(archiveVersion), named(archiveIsKeyed), named(mergeFields),
  named(archiveHasMergeRules))
@attached(
  member, conformances: Archivable,
  names: named(encode), named(init), named(archiveName), named(archiveVersion), named(archiveFields), named(archiveIsKeyed),
  named(archiveSubclasses), named(encodeReferences), named(decodeReferences), named(decodeInheritedFields),
  named(migrate), named(migrateSuperclasses), named(didDecode), named(mergeFields), named(archiveHasMergeRules))
public macro Archivable(name: String? = nil, version: Int = 1, subclasses: [Any] = []) =
  #externalMacro(module: "KeepsakeMacros", type: "ArchivableMacro")

/// Leaves a stored property out of archives. It needs an initial value, or must be an optional variable.
@attached(peer) public macro Unsaved() = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// The key of a property or enum case in archives, if it shall differ from its name.
@attached(peer) public macro Key(_ key: String) = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// The enum case that stands for every saved case that this program doesn't know.
///
///     @Archivable enum Pet {
///       case cat, dog
///       @Fallback case other(String)      // "dragon", if a newer program saved a dragon
///     }
///
/// The case has no payload, or one `String`, which receives the unknown case's key. Without a fallback such a save is refused with
/// `unknownCase`.
///
/// What the unknown case carried is lost, and with it the case itself as soon as this program saves: it writes the
/// fallback, which the newer program then reads as just that. In a set, several unknown cases may become one; as
/// dictionary keys, the last one's value stays. Where that would cost the player something, raise the version of the type in the newer
/// program instead: then this one refuses the save.
@attached(peer) public macro Fallback() = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// How a property is merged when two devices changed the same value: by a rule that needs no ancestor.
///
///     @Archivable struct World {
///       @Merge(.max) var level = 1
///       @Merge(.union) var cleared: Set<String> = []
///     }
@attached(peer) public macro Merge(_ rule: MergeRule) = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// Merges what the property holds value by value, against the state that both devices had.
///
///     @Archivable struct World {
///       @Merge var heroes: [Hero] = []                   // by their ids: Hero is Identifiable
///       @Merge var doors: [String: Door] = [:]           // by their keys
///       @Merge var unlocked: Set<String> = []
///     }
///
/// What was added on either side stays. What was removed on one side goes, unless it was changed on the other. An element that both sides have merges by
/// its type's rules; if it has none, the side that changed it counts, and this side's if both did. An array keeps this side's order, unless
/// only the other side moved elements. Without an ancestor nothing is ever removed.
///
/// On anything else it says what is true without it: the property merges by its type's rules, or as a whole. But the type it stands in then has
/// a rule, and is merged field by field.
@attached(peer) public macro Merge() = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// Merges the property with a function of the game's own, which is given this side's value, the other side's, and the ancestor's if that is known.
///
///     @Archivable struct Garden {
///       @Merge(combining: Garden.joinNotes) var notes = ""
///
///       static func joinNotes(_ mine: String, _ theirs: String, _ ancestor: String?) -> String {
///         mine == theirs ? mine : mine + "\n" + theirs
///       }
///     }
///
/// Which side is this one is the same on every device. The function must give equal results for equal values, whatever the device; of three saves it is
/// given the first two, and then what that made with the third. A closure has to write down its types.
@attached(peer) public macro Merge<Value>(combining: (_ mine: Value, _ theirs: Value, _ ancestor: Value?) -> Value) =
  #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

extension Archivable {
  public func didDecode(context: Any?) throws {}
  public mutating func migrate(_ saved: inout ArchiveMigration) throws {}
  public func migrateSuperclasses(_ saved: inout ArchiveMigration) throws {}
  public func encodeReferences(to writer: inout ArchiveWriter) throws {}
  public func decodeReferences(from reader: inout ArchiveReader) throws {}
  public func decodeInheritedFields(from reader: inout ArchiveReader) throws {}
  public mutating func mergeFields(from other: Self, ancestor: Self?) {}
  public static var archiveHasMergeRules: Bool { false }
  public static var archiveName: String { String(describing: Self.self) }
  public static var archiveVersion: Int { 1 }
  public static var archiveSubclasses: [any Archivable.Type] { [] }
  public static func archiveFields(_ fields: ArchiveFieldList) { fields.markKeyed() }
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.named(Self.self) }
  @inlinable public static var archiveIsKeyed: Bool { true }
  @inlinable public static var archiveBlockCode: UInt8 { 0 }

  @inlinable @inline(__always) public static func archiveWrite(_ value: Self, to writer: inout ArchiveWriter) throws {
    if archiveIsKeyed {
      try writer.writeKeyed(value)
    } else {
      try value.encode(to: &writer)
    }
  }

  @inlinable @inline(__always) public static func archiveRead(from reader: inout ArchiveReader) throws -> Self {
    if archiveIsKeyed { return try reader.readKeyed(Self.self) }
    return try Self(from: &reader)
  }

  @inlinable @inline(__always) public static func archiveWriteElements(
    _ values: UnsafeRawPointer, count: Int, to writer: inout ArchiveWriter
  ) throws {
    let values = UnsafeBufferPointer(start: values.assumingMemoryBound(to: Self.self), count: count)
    for value in values { try archiveWrite(value, to: &writer) }
  }

  @inlinable @inline(__always) public static func archiveWriteOptional(_ value: Self?, to writer: inout ArchiveWriter) throws {
    guard let value else { return writer.putByte(0) }
    writer.putByte(1)
    try archiveWrite(value, to: &writer)
  }

  @inlinable @inline(__always) public static func archiveReadOptional(from reader: inout ArchiveReader) throws -> Self? {
    if !reader.isExact { return try reader.readMappedOptional(Self.self) }
    guard try reader.takeFlag() else { return nil }
    return try archiveRead(from: &reader)
  }
}

extension Archivable where Self: AnyObject {
  /// A reference to a class and one to AnyObject are the same in memory.
  @inlinable public static func archiveWriteElements(
    _ values: UnsafeRawPointer, count: Int, to writer: inout ArchiveWriter
  ) throws {
    try values.withMemoryRebound(to: Unmanaged<AnyObject>.self, capacity: count) {
      try writer.writeReferences(UnsafeBufferPointer(start: $0, count: count))
    }
  }

  @inlinable @inline(__always) public static func archiveWrite(_ value: Self, to writer: inout ArchiveWriter) throws {
    try writer.writeReference(value)
  }

  @inlinable @inline(__always) public static func archiveRead(from reader: inout ArchiveReader) throws -> Self {
    try reader.readReference(Self.self)
  }

  @inlinable @inline(__always) public static func archiveWriteOptional(_ value: Self?, to writer: inout ArchiveWriter) throws {
    guard let value else { return writer.putVarint(0) }
    try writer.writeReference(value)
  }

  @inlinable @inline(__always) public static func archiveReadOptional(from reader: inout ArchiveReader) throws -> Self? {
    try reader.readOptionalReference(Self.self)
  }
}
