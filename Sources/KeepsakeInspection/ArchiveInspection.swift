public import Foundation
public import KeepsakeArchive

/// The contents of an archive, read without the types that wrote it.
///
/// Reading doesn't recurse, however deeply the archive is nested. The limits of decoding apply, and structs are counted
/// against bytes, so that a forged archive can't grow without bound. Throws the same errors as `Archive.decode` for
/// bytes that aren't an archive, are damaged or too new.
public struct ArchiveInspection: Sendable {
  /// General properties of an archive.
  public struct Header: Sendable, Equatable, Codable {
    /// The version of the format, from 1.
    public var formatVersion: Int
    /// The length of the archive in bytes.
    public var byteCount: Int
    /// The number of objects, each counted once.
    public var objectCount: Int
    /// The root's type as Swift code.
    public var rootType: String
  }

  /// How a type is saved.
  public enum Kind: String, Sendable, Codable {
    /// A struct, saved by the order of its fields.
    case structure
    /// An enum.
    case enumeration
    /// A class, saved by the order of its fields.
    case object
    /// A hand-written value, saved with keys.
    case keyedValue
    /// A hand-written class, saved with keys.
    case keyedObject
  }

  /// One field of a type, or of an enum case.
  public struct Field: Sendable, Equatable, Codable {
    /// The field's key.
    public var key: String
    /// The field's type as Swift code.
    public var type: String
  }

  /// One type as it was declared when the archive was written.
  public struct TypeDescription: Sendable, Equatable, Codable {
    /// The type's name in archives.
    public var name: String
    /// The version that the program gave the type.
    public var version: Int
    /// How values of the type are saved.
    public var kind: Kind
    /// The fields, in the order of the archive; empty for an enum.
    public var fields: [Field]
    /// The cases; empty for types other than enums.
    public var cases: [Case]
    /// The number of values or objects of this type.
    public var count: Int
    /// The bytes that these take, with everything inside them except objects.
    public var byteCount: Int
  }

  /// One case of an enum.
  public struct Case: Sendable, Equatable, Codable {
    /// The case's key.
    public var name: String
    /// The fields of the case's payload.
    public var fields: [Field]
  }

  /// One object of the archive. Its type is an index into `types`.
  public typealias Object = ArchiveValue.Object

  /// General properties of the archive.
  public let header: Header
  /// The types that the archive describes.
  public private(set) var types: [TypeDescription]
  /// The value that was archived.
  public let root: ArchiveValue
  /// By number; nil for an object that had only weak references.
  public let objects: [Object?]
  /// A short description of the source's format, such as "XML property list"; nil for an archive.
  package let foreign: String?
  /// What the source was opened from, outermost first, such as "gzip"; empty for a file as it is.
  package var wrappings: [String] = []
  /// The path or name of its file, as the caller gave it; nil if the caller gave none.
  package var source: InspectedSource?
  /// Reads the classes of a keyed archive's objects, also those that are shown as values; nil for any other file.
  package var savedClasses: (@Sendable () -> SavedClasses)?

  /// Reads an archive. Takes time and memory in proportion to its size.
  ///
  /// - Parameters:
  ///   - data: The archive.
  ///   - limits: The limits that the archive must keep.
  /// - Throws: `ArchiveError` for bytes that aren't an archive, are damaged, too new or beyond the limits.
  public init(of data: Data, limits: ArchiveLimits = .standard) throws {
    self = try data.withUnsafeBytes { bytes in
      let file = try ArchiveFile(bytes, limits: limits)
      var parser = try ValueParser(file, limits: limits)
      return try ArchiveInspection(file, byteCount: bytes.count, &parser)
    }
  }

  /// Reads every value of an archive and keeps none. Verifies the checksum, the structure, and that each value is valid
  /// for its declared type.
  ///
  /// Takes time in proportion to the archive's size, and memory only for its types and objects.
  ///
  /// - Parameters:
  ///   - data: The archive.
  ///   - limits: The limits that the archive must keep.
  /// - Returns: The archive's general properties.
  /// - Throws: As `init(of:limits:)`.
  @discardableResult public static func verify(_ data: Data, limits: ArchiveLimits = .standard) throws -> Header {
    try data.withUnsafeBytes { bytes in
      let file = try ArchiveFile(bytes, limits: limits)
      var parser = try ValueParser(file, limits: limits, keepsValues: false)
      _ = try parser.objects()
      _ = try parser.root()
      return Header(file, byteCount: bytes.count)
    }
  }

  /// Creates an inspection of another program's file, as values of an archive, so that it is shown and compared like
  /// one. Its dictionaries are structs of a type without a name; types of classes have only their names and counts.
  ///
  /// - Parameters:
  ///   - classes: The names of the classes and the number of their objects; the name is empty for dictionaries.
  ///   - objects: By number, with an index into `classes`.
  package init(
    foreign: String, byteCount: Int, classes: [(name: String, count: Int)], root: ArchiveValue,
    objects: [(type: Int, fields: [ArchiveValue.Field])?]
  ) {
    self.foreign = foreign
    self.root = root
    types = classes.map {
      TypeDescription(
        name: $0.name, version: 0, kind: .keyedObject, fields: [], cases: [], count: $0.count, byteCount: 0)
    }
    self.objects = objects.map { $0.map { Object(type: $0.type, fields: $0.fields) } }
    header = Header(formatVersion: 0, byteCount: byteCount, objectCount: objects.count, rootType: foreign)
  }

  private init(_ file: ArchiveFile, byteCount: Int, _ parser: inout ValueParser) throws {
    objects = try parser.objects()
    root = try parser.root()
    foreign = nil
    header = Header(file, byteCount: byteCount)
    let schema = file.schema
    func fields(_ entries: [FieldEntry]) -> [Field] { entries.map { Field(key: $0.key, type: schema.text($0.node)) } }
    types = schema.types.enumerated().map { index, entry in
      TypeDescription(
        name: entry.name, version: entry.version, kind: Kind(entry.kind), fields: fields(entry.fields),
        cases: entry.cases.map { Case(name: $0.key, fields: fields($0.fields)) }, count: parser.counts[index],
        byteCount: parser.bytes[index])
    }
  }
}

extension ArchiveInspection.Kind {
  init(_ kind: TypeKind) {
    self =
      switch kind {
      case .structure: .structure
      case .enumeration: .enumeration
      case .object: .object
      case .keyedValue: .keyedValue
      case .keyedObject: .keyedObject
      }
  }
}

extension ArchiveInspection.Header {
  init(_ file: ArchiveFile, byteCount: Int) {
    self.init(
      formatVersion: Int(file.version), byteCount: byteCount, objectCount: file.objectCount,
      rootType: file.schema.text(file.root))
  }
}
