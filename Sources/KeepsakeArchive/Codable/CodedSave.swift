package import Foundation

/// A `Codable` type that had other names when it was saved as a whole, in a slot.
///
///     struct SoundOptions: Codable, FormerlyNamed {
///       static var archiveFormerNames: [String] { ["Options"] }
///       var volume = 0.5
///     }
///
/// A save has the name of its type, and isn't read as another type. `Archivable` has the same requirement.
public protocol FormerlyNamed {
  /// Names that the type had when it was saved: saves of these types are read as this one. Generic arguments don't
  /// count.
  static var archiveFormerNames: [String] { get }
}

/// A `Codable` value as a whole save: a struct with the type's name, whose only field is the coded value. So the root
/// check distinguishes it from saves of other types.
package struct CodedSave<Value: Codable>: Archivable {
  package var value: Value

  package init(_ value: Value) { self.value = value }

  // The type may have become archivable since it was saved.
  package static var archiveName: String { (Value.self as? any Archivable.Type)?.archiveName ?? "\(Value.self)" }
  package static var archiveFormerNames: [String] {
    (Value.self as? any Archivable.Type)?.archiveFormerNames
      ?? (Value.self as? any FormerlyNamed.Type)?.archiveFormerNames ?? []
  }
  package static var archiveIsKeyed: Bool { false }
  package static func archiveFields(_ fields: ArchiveFieldList) { fields.field(codedRootKey, Coded<Value>.self) }

  package func encode(to writer: inout ArchiveWriter) throws { try writer.writeField(Coded(value)) }

  package init(from reader: inout ArchiveReader) throws {
    var fields = try reader.enter(Self.self)
    let saved: Coded<Value> = try reader.field(0, &fields)
    try reader.leave(&fields)
    value = saved.value
  }
}

/// The key of the only field of a `CodedSave`.
private let codedRootKey = "coded"

extension ArchiveSchema {
  /// Whether a type is that of a `CodedSave`, of whatever name.
  func isCodedSave(_ type: Int32) -> Bool {
    let node = nodes[Int(type)]
    return node.code == .named && isCodedSave(types[Int(node.first)])
  }

  func isCodedSave(_ type: TypeEntry) -> Bool {
    guard type.kind == .structure, type.fields.count == 1, let field = type.fields.first else { return false }
    return field.key == codedRootKey && nodes[Int(field.node)].code == .coded
  }
}

extension Archive {
  /// Returns whether an archive is a `CodedSave`, of whatever type. Costs a checksum of the bytes; reads no values.
  ///
  /// - Throws: `ArchiveError` if the bytes aren't an archive that this program can read.
  package static func isCodedSave(_ data: Data, limits: ArchiveLimits = .standard) throws -> Bool {
    try data.withUnsafeBytes { bytes in
      let file = try ArchiveFile(bytes, limits: limits)
      return file.schema.isCodedSave(file.root)
    }
  }
}
