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
/// A class keeps its identity: an object is written once, however many references lead to it. References that may form
/// cycles belong in `encodeReferences(to:)` and `decodeReferences(from:)`, which are called when all objects exist. If
/// a class is used in sets or as a dictionary key, its hash values and comparisons must not depend on such references.
///
/// Chains of objects may be as long as memory allows: neither encoding nor decoding recurses from object to object. But
/// Swift itself releases the next object of a chain from within the release of the one before it, so a chain of some
/// ten thousand objects overflows the stack when its head is released. (An exception is a final class with just one
/// reference to its own type, whose release the compiler turns into a loop.) Take such a chain apart in a loop first,
/// whether it was decoded or not:
///
///     while let next = head.next { head.next = nil; head = next }
public protocol Archivable {
  /// Writes the value; for a class, everything that its initialiser needs.
  ///
  /// - Parameter writer: Receives the fields, each under its key.
  /// - Throws: What `writer` throws, and any error of the type.
  func encode(to writer: inout ArchiveWriter) throws

  /// Builds the value from what was written. May call the type's normal initialiser first and then apply the saved
  /// fields.
  ///
  /// - Parameter reader: Returns the saved fields by their keys.
  /// - Throws: What `reader` throws, and any error of the type, such as `ArchiveError` with `mismatch` for a value that
  ///   the type can't have.
  init(from reader: inout ArchiveReader) throws

  /// Called on each object and on the root value once everything has been decoded, but not on structs and enums inside
  /// them, nor on objects that lead to one whose class the program no longer has. Does nothing by default.
  ///
  /// - Parameter context: What the caller of `decode`, `read` or `load` passed as `context`; nil by default.
  /// - Throws: Any error of the type. It ends the decoding.
  func didDecode(context: Any?) throws

  /// Updates a value that was saved with an older version of its type. Does nothing by default.
  ///
  /// Called when the type's `archiveVersion` is higher than the saved one. By then, fields that still exist have been
  /// read and new ones have their defaults. `saved` contains everything that was saved, by key:
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
  /// - A field whose saved type can't be read as its new type is left to the hook: it must have a default value (or be
  ///   an optional variable), and the hook must read its key. If either condition isn't met, decoding throws
  ///   `mismatch`. If the versions are equal, the hook isn't called and decoding throws `mismatch` immediately. Numbers
  ///   that become wider need none of this.
  /// - A field that got another *meaning* under the same key and type is read unchanged; the hook corrects it.
  /// - Structs and enums are migrated as soon as they are read. Objects are migrated once all of them exist and refer
  ///   to each other, before any `didDecode(context:)`; other objects may not have been migrated yet. Inside an enum's
  ///   hook, `saved.caseKey` is the saved case.
  /// - In a class, the hook must be declared in the class itself, not in an extension. Each class in an object's
  ///   hierarchy has its own version: its hook is called if that version rose, the superclass's first, and sees the
  ///   saved version of its own class. So a hook never calls `super.migrate`. A class that was added to the hierarchy
  ///   later was not saved and is not migrated.
  /// - Hand-written conformances are not migrated; they check `ArchiveReader.savedVersion`.
  ///
  /// Programs that know only the older version refuse the new archives with `tooNew`.
  ///
  /// - Parameter saved: The saved fields by key, and the version in which they were saved.
  /// - Throws: `ArchiveError` if a saved value can't be read as the wanted type, and any error of the type. An error
  ///   ends the decoding.
  mutating func migrate(_ saved: inout ArchiveMigration) throws

  /// Calls the hooks of the object's superclasses. Written by the macro; does nothing by default.
  ///
  /// - Parameter saved: The saved fields of the whole object.
  /// - Throws: What the hooks throw.
  func migrateSuperclasses(_ saved: inout ArchiveMigration) throws

  /// Writes those references of an object that can be set after all objects exist. Does nothing by default.
  ///
  /// - Parameter writer: Receives the references; in a hand-written class, each under its key.
  /// - Throws: What `writer` throws, and any error of the type.
  func encodeReferences(to writer: inout ArchiveWriter) throws

  /// Reads and sets the references that `encodeReferences(to:)` wrote. Does nothing by default.
  ///
  /// - Parameter reader: Returns the saved references; in a hand-written class, by their keys.
  /// - Throws: What `reader` throws, and any error of the type.
  func decodeReferences(from reader: inout ArchiveReader) throws

  /// Reads the fields of subclasses that inherit their initialisers. Written by the macro; does nothing by default.
  ///
  /// - Parameter reader: The archive's reader.
  /// - Throws: `ArchiveError` if the saved value is damaged or doesn't fit the type, and errors of hand-written
  ///   conformances and hooks.
  func decodeInheritedFields(from reader: inout ArchiveReader) throws

  /// Merges another device's changes into this value, field by field. Written by the macro if a property, or a
  /// property's type, has `@Merge`.
  ///
  /// The rules `.max`, `.min`, `.union` and `.counter` give the same result in whatever order and however often states
  /// are merged. A property without a rule keeps this side's value unless only the other side changed it since the
  /// ancestor; two values are the same if a save of them would be the same. If both sides changed it, this side's value
  /// wins, so in that case the result depends on which side merges into which. A property whose type has rules of its
  /// own is merged by them, or as a whole if the type is `Identifiable` and the two values have different ids. Does
  /// nothing by default.
  ///
  /// Objects are changed in place and adopt objects of the other graph, so the other graph must not be used afterwards.
  /// Costs an encoding of each property without a rule, for each side.
  ///
  /// - Parameters:
  ///   - other: The other side's value.
  ///   - ancestor: The last state that both sides had in common, if it is known. Without it, properties without a rule
  ///     keep this side's value.
  mutating func mergeFields(from other: Self, ancestor: Self?)

  /// Whether `mergeFields(from:ancestor:)` does anything: whether a property, or the type of one, has a rule.
  static var archiveHasMergeRules: Bool { get }

  /// The name in the archive. A decoder finds a class by this name, and checks by it that the root of an archive is of
  /// the type asked for. So it must not change once there are saves.
  static var archiveName: String { get }

  /// Names that a struct or enum had in archives earlier, if there are saves under several: an archive whose root has
  /// one of them is read as this type. None by default.
  ///
  ///     @Archivable struct World {
  ///       static var archiveFormerNames: [String] { ["Level", "Map"] }
  ///     }
  ///
  /// A type that was renamed once needs only `@Archivable(name:)` with its old name, under which earlier programs can
  /// read what it writes. Generic arguments don't count: "Grid" stands for "Grid<Int>". Not used for classes.
  static var archiveFormerNames: [String] { get }

  /// The version of the type. Raise it when older programs must not read what this one writes, or when `migrate(_:)`
  /// has to be called. 1 by default.
  static var archiveVersion: Int { get }

  /// Subclasses whose objects may appear where this class is declared, and other classes whose objects the type reads
  /// although none of its properties leads to them, in a migration hook for example. Written by the macro for a class.
  static var archiveSubclasses: [any Archivable.Type] { get }

  /// Lists the fields or cases. Written by the macro; by default the type counts as hand-written, with keys for its
  /// fields.
  ///
  /// - Parameter fields: Receives the fields or cases.
  static func archiveFields(_ fields: ArchiveFieldList)

  /// The layout of a value of this type inside another; implemented by the types that come with the archive.
  ///
  /// - Parameter schema: The schema to which the layout is added.
  /// - Returns: The layout's position in the schema.
  static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType

  /// Writes a value as part of another: a struct's fields, or an object's number.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - writer: The archive's writer.
  /// - Throws: `ArchiveError` if the value can't be written, and errors of hand-written conformances.
  static func archiveWrite(_ value: Self, to writer: inout ArchiveWriter) throws

  /// Reads a value that `archiveWrite` wrote.
  ///
  /// - Parameter reader: The archive's reader.
  /// - Returns: The value.
  /// - Throws: `ArchiveError` if the saved value is damaged or doesn't fit the type, and errors of hand-written
  ///   conformances and hooks.
  static func archiveRead(from reader: inout ArchiveReader) throws -> Self

  /// Writes the elements of an array of this type.
  ///
  /// - Parameters:
  ///   - values: The address of the first element. The others follow it, as in an array.
  ///   - count: The number of elements.
  ///   - writer: The archive's writer.
  /// - Throws: `ArchiveError` if the value can't be written, and errors of hand-written conformances.
  static func archiveWriteElements(_ values: UnsafeRawPointer, count: Int, to writer: inout ArchiveWriter) throws

  /// Writes an optional value as part of another.
  ///
  /// - Parameters:
  ///   - value: The value, or nil.
  ///   - writer: The archive's writer.
  /// - Throws: `ArchiveError` if the value can't be written, and errors of hand-written conformances.
  static func archiveWriteOptional(_ value: Self?, to writer: inout ArchiveWriter) throws
  /// Reads an optional value that `archiveWriteOptional` wrote.
  ///
  /// - Parameter reader: The archive's reader.
  /// - Returns: The value; nil if an empty optional was saved, or a weak reference to an object that wasn't saved.
  /// - Throws: `ArchiveError` if the saved value is damaged or doesn't fit the type, and errors of hand-written
  ///   conformances and hooks.
  static func archiveReadOptional(from reader: inout ArchiveReader) throws -> Self?

  /// For numbers, the code of the scalar type as which an array of them is written in one block; 0 for all other types.
  static var archiveBlockCode: UInt8 { get }

  /// Whether `encode(to:)` is written by hand, with a key for each field.
  static var archiveIsKeyed: Bool { get }
}

/// Makes a struct, enum or class archivable, field by field.
///
/// - Parameters:
///   - name: The name in archives, if it is to differ from the type's name. If you rename a class, or the type of a
///     whole save, pass its old name.
///   - version: Raise it when programs that don't know the change must refuse the save, or when `migrate(_:)` has
///     something to do.
///   - subclasses: The archivable subclasses whose objects may appear where this class is declared. Anything else in
///     the list is a compile-time error.
@attached(
  extension, conformances: Archivable,
  names: named(encode), named(init), named(archiveName), named(archiveVersion), named(archiveIsKeyed),
  named(mergeFields),
  named(archiveHasMergeRules))
@attached(
  member, conformances: Archivable,
  names: named(encode), named(init), named(archiveName), named(archiveVersion), named(archiveFields),
  named(archiveIsKeyed),
  named(archiveSubclasses), named(encodeReferences), named(decodeReferences), named(decodeInheritedFields),
  named(migrate), named(migrateSuperclasses), named(didDecode), named(mergeFields), named(archiveHasMergeRules))
public macro Archivable(name: String? = nil, version: Int = 1, subclasses: [Any] = []) =
  #externalMacro(module: "KeepsakeMacros", type: "ArchivableMacro")

/// Leaves a stored property out of archives. It needs an initial value, or must be an optional variable.
@attached(peer) public macro Unsaved() = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// Sets the key of a property or enum case in archives, if it is to differ from its name: the old name, if it was
/// renamed. It must be a literal without escapes, have no white space at its ends and no invisible characters, and
/// differ from the keys of the others.
///
/// An enum's raw values aren't in archives. So they may change, and a case that keeps its raw value needs a key when it
/// is renamed:
///
///     @Archivable enum Rank: Int {
///       case low = 1
///       @Key("middle") case normal = 2
///     }
@attached(peer) public macro Key(_ key: String) = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// Marks the enum case that replaces every saved case that this program doesn't know.
///
///     @Archivable enum Pet {
///       case cat, dog
///       @Fallback case other(String)      // "dragon", if a newer program saved a dragon
///     }
///
/// The case has no payload, or a single `String` that receives the unknown case's key. Without a fallback, such a save
/// is refused with `unknownCase`.
///
/// The unknown case's payload is lost, and so is the case itself as soon as this program saves: it writes the fallback,
/// which the newer program then reads as the fallback case. In a set, several unknown cases may become one; as
/// dictionary keys, the last one's value is kept. If that would cost the player something, raise the version of the
/// type in the newer program instead, so that this program refuses the save.
@attached(peer) public macro Fallback() = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// Sets how a property is merged when two devices changed the same value: by a rule that needs no ancestor.
///
///     @Archivable struct World {
///       @Merge(.max) var level = 1
///       @Merge(.union) var cleared: Set<String> = []
///     }
@attached(peer) public macro Merge(_ rule: MergeRule) = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// Merges the contents of a collection element by element, against the state that both devices had in common.
///
///     @Archivable struct World {
///       @Merge var heroes: [Hero] = []                   // by their ids: Hero is Identifiable
///       @Merge var doors: [String: Door] = [:]           // by their keys
///       @Merge var unlocked: Set<String> = []
///     }
///
/// What was added on either side stays. What was removed on one side goes, unless it was changed on the other. An
/// element that both sides have is merged by its type's rules; if it has none, the side that changed it wins, and this
/// side if both did. An array keeps this side's order, unless only the other side moved elements. Without an ancestor,
/// nothing is ever removed.
///
/// On any other type, `@Merge` doesn't change how the property itself is merged: by its type's rules, or as a whole.
/// But the enclosing type then has a rule, and is merged field by field.
@attached(peer) public macro Merge() = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// Merges the property with a function of the game, called with this side's value, the other side's, and the ancestor's
/// if known.
///
///     @Archivable struct Garden {
///       @Merge(combining: Garden.joinNotes) var notes = ""
///
///       static func joinNotes(_ mine: String, _ theirs: String, _ ancestor: String?) -> String {
///         mine == theirs ? mine : mine + "\n" + theirs
///       }
///     }
///
/// All devices agree on which side is "mine". The function must return equal results for equal values, whatever the
/// device. For three saves, it is called with the first two, then with that result and the third. A closure must spell
/// out its parameter types.
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
  public static var archiveFormerNames: [String] { [] }
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

  @inlinable @inline(__always) public static func archiveWriteOptional(_ value: Self?, to writer: inout ArchiveWriter)
    throws
  {
    guard let value else { return writer.putByte(0) }
    writer.putByte(1)
    try archiveWrite(value, to: &writer)
  }

  @inlinable @inline(__always) public static func archiveReadOptional(from reader: inout ArchiveReader) throws -> Self?
  {
    if !reader.isExact { return try reader.readMappedOptional(Self.self) }
    guard try reader.takeFlag() else { return nil }
    return try archiveRead(from: &reader)
  }
}

extension Archivable where Self: AnyObject {
  /// Writes the references in an array.
  ///
  /// A class reference and an `AnyObject` reference have the same representation in memory.
  ///
  /// - Parameters:
  ///   - values: The address of the first reference.
  ///   - count: The number of references.
  ///   - writer: The archive's writer.
  /// - Throws: `ArchiveError` if the value can't be written, and errors of hand-written conformances.
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

  @inlinable @inline(__always) public static func archiveWriteOptional(_ value: Self?, to writer: inout ArchiveWriter)
    throws
  {
    guard let value else { return writer.putVarint(0) }
    try writer.writeReference(value)
  }

  @inlinable @inline(__always) public static func archiveReadOptional(from reader: inout ArchiveReader) throws -> Self?
  {
    try reader.readOptionalReference(Self.self)
  }
}
