package import Foundation
package import KeepsakeArchive

/// How the values of a slot are encoded as saves: by the type's own `Archivable`, or by its `Codable`.
package protocol SlotCoding<Value>: Sendable {
  associatedtype Value
  /// The name of the type, as saves have it.
  static var typeName: String { get }
  static var hasMergeRules: Bool { get }
  static func encode(_ value: Value, writer: UInt64) throws -> Data
  static func decode(_ bytes: Data, context: Any?) throws -> Value
  /// Returns a function, for any thread, that returns the error with which `decode` refuses a save of another type; nil
  /// if it is of this type, or if the bytes aren't an archive that this program can read. Reads no values.
  static func rootCheck() throws -> @Sendable (_ bytes: Data) throws -> ArchiveError?
  /// Merges another side's value into this one. Does nothing without merge rules.
  static func merge(_ value: inout Value, from other: Value, ancestor: Value?)
}

package enum ArchivableSlotCoding<Value: Archivable>: SlotCoding {
  package static var typeName: String { Value.archiveName }
  package static var hasMergeRules: Bool { Value.archiveHasMergeRules }

  package static func encode(_ value: Value, writer: UInt64) throws -> Data {
    try Archive.encode(value, writer: writer)
  }

  package static func decode(_ bytes: Data, context: Any?) throws -> Value {
    do {
      return try Archive.decode(Value.self, from: bytes, context: context)
    } catch let error as ArchiveError where error.code == .mismatch {
      guard let earlier = earlierCoding, try Archive.isCodedSave(bytes) else { throw error }
      func decode<C: SlotCoding>(_ coding: C.Type) throws -> Value? {
        try coding.decode(bytes, context: context) as? Value
      }
      guard let value = try decode(earlier) else { throw error }
      return value
    }
  }

  package static func rootCheck() throws -> @Sendable (_ bytes: Data) throws -> ArchiveError? {
    let root = try ArchiveRoot(Value.self)
    let earlier = try earlierCoding?.rootCheck()
    return { bytes in
      guard let error = try root.mismatch(in: bytes) else { return nil }
      guard let earlier, try Archive.isCodedSave(bytes) else { return error }
      return try earlier(bytes)
    }
  }

  package static func merge(_ value: inout Value, from other: Value, ancestor: Value?) {
    value.mergeFields(from: other, ancestor: ancestor)
  }

  /// The coding of saves that were written when the type wasn't archivable yet, if the type is still `Codable`.
  private static var earlierCoding: (any SlotCoding.Type)? {
    func coding<C: Codable>(_ type: C.Type) -> any SlotCoding.Type { CodableSlotCoding<C>.self }
    return (Value.self as? any (Encodable & Decodable).Type).map { coding($0) }
  }
}

package enum CodableSlotCoding<Value: Codable>: SlotCoding {
  package static var typeName: String { CodedSave<Value>.archiveName }
  package static var hasMergeRules: Bool { false }

  package static func encode(_ value: Value, writer: UInt64) throws -> Data { try Archive.encode(CodedSave(value)) }

  package static func decode(_ bytes: Data, context: Any?) throws -> Value {
    try Archive.decode(CodedSave<Value>.self, from: bytes, context: context).value
  }

  package static func rootCheck() throws -> @Sendable (_ bytes: Data) throws -> ArchiveError? {
    let root = try ArchiveRoot(CodedSave<Value>.self)
    return { bytes in try root.mismatch(in: bytes) }
  }

  package static func merge(_ value: inout Value, from other: Value, ancestor: Value?) {}
}
