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
public protocol Archivable {
  /// Writes the value. For a class, everything that its initialiser needs.
  func encode(to writer: inout ArchiveWriter) throws

  /// Builds the value from what was written. May call the type's normal initialiser first and then apply what was saved.
  init(from reader: inout ArchiveReader) throws

  /// Called on each object, and on the root value, once everything has been decoded; not on structs and enums inside.
  /// Does nothing by default.
  func didDecode(context: Any?) throws

  /// Writes the references of an object that may be set after all objects exist. Nothing by default.
  func encodeReferences(to writer: inout ArchiveWriter) throws

  /// Sets what `encodeReferences(to:)` wrote. Nothing by default.
  func decodeReferences(from reader: inout ArchiveReader) throws

  /// Reads the fields of subclasses that inherit their initialisers; written by the macro. Nothing by default.
  func decodeInheritedFields(from reader: inout ArchiveReader) throws

  /// Takes over what another device changed, field by field; written by the macro when a property carries `@Merge`.
  ///
  /// The rules `.max`, `.min`, `.union` and `.counter` give the same result in whatever order and however often states are
  /// merged. A property without a rule keeps this value, unless only the other side changed it since the ancestor; if both
  /// did, this value wins, so there it shows which side merges into which. A property whose type has rules of its own
  /// merges by them. By default nothing changes.
  ///
  /// - Parameter ancestor: The last state that both had, if it is known. Without it, properties without a rule keep this value.
  mutating func mergeFields(from other: Self, ancestor: Self?)

  /// Whether `mergeFields(from:ancestor:)` does anything.
  static var archiveHasMergeRules: Bool { get }

  /// The name in the archive. For a class it finds the class again, so it must not change once there are saves.
  static var archiveName: String { get }

  /// Rises when older programs must not read what this one writes. 1 by default.
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

  static func archiveWriteOptional(_ value: Self?, to writer: inout ArchiveWriter) throws
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
///   - version: Raise it when programs that don't know the change must refuse the save.
///   - subclasses: The archivable subclasses that may stand where this class is declared.
@attached(
  extension, conformances: Archivable,
  names: named(encode), named(init), named(archiveName), named(archiveVersion), named(archiveIsKeyed), named(mergeFields),
  named(archiveHasMergeRules))
@attached(
  member, conformances: Archivable,
  names: named(encode), named(init), named(archiveName), named(archiveVersion), named(archiveFields), named(archiveIsKeyed),
  named(archiveSubclasses), named(encodeReferences), named(decodeReferences), named(decodeInheritedFields),
  named(didDecode), named(mergeFields), named(archiveHasMergeRules))
public macro Archivable(name: String? = nil, version: Int = 1, subclasses: [Any] = []) =
  #externalMacro(module: "KeepsakeMacros", type: "ArchivableMacro")

/// Leaves a stored property out of archives. It needs an initial value, or must be an optional variable.
@attached(peer) public macro Unsaved() = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// The key of a property or enum case in archives, if it shall differ from its name.
@attached(peer) public macro Key(_ key: String) = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

/// How a property is merged when two devices changed the same value.
@attached(peer) public macro Merge(_ rule: MergeRule) = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

extension Archivable {
  public func didDecode(context: Any?) throws {}
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
