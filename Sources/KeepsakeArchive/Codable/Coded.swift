/// A `Codable` value in an archive. `@Coded` wraps a property in it; a field, element or payload that can't have the
/// attribute can be declared with this type.
///
///     @Archivable struct Level {
///       @Coded var weather: Weather                 // a type of another package, Codable only
///       var spawns: [String: Coded<SpawnTable>] = [:]
///     }
///
/// The value is encoded by its own `encode(to:)` into a tree of keys and values. As with JSON, optional fields may be
/// added to its type later, and saved fields that the type no longer reads are skipped. Equal values give equal bytes
/// in every process, even if they contain sets and dictionaries, unless a type iterates over a set in its own
/// `encode(to:)`.
///
/// Costs about 90 times as much as `@Archivable` to encode and 15 times to decode, which is about half of what JSON
/// costs, and takes more space than `@Archivable`, about half of JSON's. During encoding, each nested value takes some
/// hundred bytes of memory. Objects inside have no identity: an object with two references is decoded as two objects,
/// and a cycle ends in an `ArchiveError` with `limit`. Each nested value counts as a level of `ArchiveLimits.depth`.
/// Changing a property from `@Coded` to its own archivable type, or back, is a `mismatch`.
///
/// Errors are `missingField` if the type needs a value that is missing, `mismatch` if a value doesn't fit, `damaged` if
/// the bytes aren't a valid tree, and `unsupported` if a type encodes nothing or two things in one place. The type's
/// own errors are passed on unchanged. A decoder finds the `context` of `Archive.decode` in
/// `userInfo[.archiveContext]`.
public struct Coded<Value: Codable> {
  /// The wrapped value.
  public var value: Value

  /// Wraps a value, so that it can be archived.
  ///
  /// - Parameter value: The value to wrap.
  public init(_ value: Value) { self.value = value }
}

extension Coded: Equatable where Value: Equatable {}
extension Coded: Hashable where Value: Hashable {}
extension Coded: Sendable where Value: Sendable {}

extension Coded: Archivable {
  public static var archiveName: String { "Coded<\(Value.self)>" }
  public static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.coded) }
  public static var archiveIsKeyed: Bool { false }

  public func encode(to writer: inout ArchiveWriter) throws {
    try writer.putCoded(CodedEncoder.bytes(of: value, depth: writer.depth, limits: writer.core.limits))
  }

  public init(from reader: inout ArchiveReader) throws {
    let tree = try reader.takeCoded()
    value = try CodedDecoder.value(of: tree, Value.self, context: reader.context)
  }
}

/// Archives a property whose type is `Codable` but not archivable, such as a type of another package, as described at
/// `Coded`.
///
///     @Coded var weather: Weather
///     @Coded var forecast: [Weather] = []
///
/// A collection is coded as one value.
@attached(peer) public macro Coded() = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

extension CodingUserInfoKey {
  /// The key under which a `Decodable` type finds the `context` that was passed to `Archive.decode`.
  public static let archiveContext = CodingUserInfoKey("keepsake.archiveContext")

  /// The initialiser of the standard library is failable, but returns a key for every text.
  private init(_ text: String) {
    guard let key = CodingUserInfoKey(rawValue: text) else {
      preconditionFailure("A key can't be made of the text \(text)")
    }
    self = key
  }
}

/// An encoded value that is written as, or was read from, the root of an archive.
package struct CodedBytes: Archivable {
  private enum Form {
    case bytes([UInt8])
    case tree(CodedTree)
  }
  private let form: Form
  private let context: Any?

  /// Encodes a value. Throws the same errors as `Archive.encode`.
  package init(encoding value: some Encodable, limits: ArchiveLimits) throws {
    form = .bytes(try CodedEncoder.bytes(of: value, depth: 0, limits: limits))
    context = nil
  }

  package static func archiveWireType(in schema: ArchiveSchema) -> ArchiveWireType { schema.scalar(.coded) }
  package static var archiveIsKeyed: Bool { false }

  package func encode(to writer: inout ArchiveWriter) throws {
    switch form {
    case .bytes(let bytes): try writer.putCoded(bytes)
    case .tree(let tree): try writer.putCoded(tree.bytes)
    }
  }

  package init(from reader: inout ArchiveReader) throws {
    form = .tree(try reader.takeCoded())
    context = reader.context
  }

  /// Decodes the value that was read. Throws the same errors as `Archive.decode`.
  package func decode<V: Decodable>(_ type: V.Type, limits: ArchiveLimits) throws -> V {
    try CodedDecoder.value(of: tree(limits), type, context: context)
  }

  /// As `decode`, but throws errors of the value itself as other decoders do: as `DecodingError`. The one for a number
  /// that doesn't fit has a `NumberMisfit` as its underlying error.
  package func decodeAsCodable<V: Decodable>(_ type: V.Type, limits: ArchiveLimits) throws -> V {
    try CodedDecoder.untranslatedValue(of: tree(limits), type, context: context)
  }

  private func tree(_ limits: ArchiveLimits) throws -> CodedTree {
    switch form {
    case .tree(let tree): tree
    case .bytes(let bytes): try bytes.withUnsafeBytes { try CodedTree($0, offset: 0, depth: 0, limits: limits) }
    }
  }
}

extension ArchiveWriter {
  mutating func putCoded(_ bytes: [UInt8]) throws {
    // More bytes would not fit into the archive anyway, and positions in a tree have 32 bits.
    guard bytes.count <= core.limits.archiveBytes, UInt32(exactly: bytes.count) != nil else {
      throw ArchiveError(.limit, "A coded value takes \(bytes.count) bytes; the limit is \(core.limits.archiveBytes)")
    }
    putVarint(UInt64(bytes.count))
    bytes.withUnsafeBytes { putBytes($0) }
  }
}

extension ArchiveReader {
  mutating func takeCoded() throws -> CodedTree {
    if !isExact { try expect(.coded) }
    let count = try takeCount()
    try claim(count)
    let start = offset
    let tree = try CodedTree(try takeBytes(count), offset: start, depth: depth, limits: core.limits)
    try core.memory.claim(tree.count, of: CodedTree.memoryPerValue, at: start)
    return tree
  }

  /// Returns whether the bytes begin with a coded value that is nil. It counts as missing if the property has a default
  /// value.
  func isEmptyCoded(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.starts(with: CodedTree.empty) }
}
