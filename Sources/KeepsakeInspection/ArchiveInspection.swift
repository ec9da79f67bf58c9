public import Foundation
public import KeepsakeArchive

/// An archive taken apart without the types that wrote it.
///
/// Takes no stack for the archive's nesting. Limits apply as in decoding, and structs are counted against bytes, so that a forged archive
/// can't grow without bound. Throws the same errors as `Archive.decode` for what is no archive, damaged or too new.
public struct ArchiveInspection: Sendable {
  /// What an archive says of itself.
  public struct Header: Sendable, Equatable, Codable {
    /// The version of the format, from 1.
    public var formatVersion: Int
    /// The length of the archive in bytes.
    public var byteCount: Int
    /// How many objects it holds, each counted once.
    public var objectCount: Int
    /// The root's type as Swift would write it.
    public var rootType: String
  }

  /// How a type is saved.
  public enum Kind: String, Sendable, Codable {
    /// A struct, by the order of its fields.
    case structure
    /// An enum.
    case enumeration
    /// A class, by the order of its fields.
    case object
    /// A hand-written value, by its keys.
    case keyedValue
    /// A hand-written class, by its keys.
    case keyedObject
  }

  /// One field of a type, or of an enum case.
  public struct Field: Sendable, Equatable, Codable {
    /// The field's key.
    public var key: String
    /// As Swift would write it.
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
    /// The fields, in the order of the archive; none for an enum.
    public var fields: [Field]
    /// The cases; none for what is no enum.
    public var cases: [Case]
    /// How many values or objects of this type there are.
    public var count: Int
    /// The bytes that they take, with everything inside them but objects.
    public var byteCount: Int
  }

  /// One case of an enum.
  public struct Case: Sendable, Equatable, Codable {
    /// The case's key.
    public var name: String
    /// What the case holds.
    public var fields: [Field]
  }

  /// One object of the archive. Its type is an index into `types`.
  public typealias Object = ArchiveValue.Object

  /// What the archive says of itself.
  public let header: Header
  /// The types that the archive describes.
  public private(set) var types: [TypeDescription]
  /// The value that was archived.
  public let root: ArchiveValue
  /// By number; nil for one that was only referred to weakly.
  public let objects: [Object?]
  /// What it was read from in a few words, "XML property list"; nil for an archive.
  package let foreign: String?

  /// Takes an archive apart. Takes time and memory in proportion to it.
  ///
  /// - Parameters:
  ///   - data: The archive.
  ///   - limits: What it may take at most.
  /// - Throws: `ArchiveError` for what is no archive, damaged, too new or beyond the limits.
  public init(of data: Data, limits: ArchiveLimits = .standard) throws {
    self = try data.withUnsafeBytes { bytes in
      let file = try ArchiveFile(bytes, limits: limits)
      var parser = try ValueParser(file, limits: limits)
      return try ArchiveInspection(file, byteCount: bytes.count, &parser)
    }
  }

  /// Reads every value of an archive and keeps none: the checksum holds, the structure is sound, and each value is what it is said to be.
  ///
  /// Throws as `init(of:)` does. Takes memory for the archive's types and objects only.
  @discardableResult public static func verify(_ data: Data, limits: ArchiveLimits = .standard) throws -> Header {
    try data.withUnsafeBytes { bytes in
      let file = try ArchiveFile(bytes, limits: limits)
      var parser = try ValueParser(file, limits: limits, keepsValues: false)
      _ = try parser.objects()
      _ = try parser.root()
      return Header(file, byteCount: bytes.count)
    }
  }

  /// Another program's file as values of an archive, so that it is shown and compared as archives are. Its dictionaries are structs of a type
  /// without a name; types of classes have their names and counts only.
  ///
  /// - Parameters:
  ///   - classes: Names and how many objects there are of each; without a name for dictionaries.
  ///   - objects: By number, with an index into the classes.
  package init(
    foreign: String, byteCount: Int, classes: [(name: String, count: Int)], root: ArchiveValue,
    objects: [(type: Int, fields: [ArchiveValue.Field])?]
  ) {
    self.foreign = foreign
    self.root = root
    types = classes.map {
      TypeDescription(name: $0.name, version: 0, kind: .keyedObject, fields: [], cases: [], count: $0.count, byteCount: 0)
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
      formatVersion: Int(file.version), byteCount: byteCount, objectCount: file.objectCount, rootType: file.schema.text(file.root))
  }
}
