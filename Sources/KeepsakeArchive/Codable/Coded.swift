/// A `Codable` value in an archive: what `@Coded` wraps a property in, and what a field, an element or a payload that has no
/// attribute can be declared as.
///
///     @Archivable struct Level {
///       @Coded var weather: Weather                 // a type of another package, Codable only
///       var spawns: [String: Coded<SpawnTable>] = [:]
///     }
///
/// The value is encoded by its own `encode(to:)` into a tree of keys and values. Fields that are optional may be added to it
/// later, and what it no longer asks for is passed over, as with JSON. Equal values give equal bytes in every process, sets and
/// dictionaries inside included, unless a type walks through a set by hand.
///
/// Costs about 90 times as much as `@Archivable` to encode and 15 times to decode, some half of what JSON costs, and takes
/// more room than `@Archivable`, half of JSON's. While it is encoded, each value inside takes some hundred bytes of memory. Objects inside have no identity: one that is referred
/// to twice comes back as two, and a cycle ends in an `ArchiveError` with `limit`. Each nested value counts as a level of
/// `ArchiveLimits.depth`. A property that changes from `@Coded` to its own archivable type, or back, is a `mismatch`.
///
/// Errors: what the type misses is `missingField`, what doesn't fit it `mismatch`, bytes that are no tree `damaged`, a type that
/// encodes nothing or two things at once `unsupported`. Errors of the type's own making are passed on as they are.
/// A decoder finds the `context` of `Archive.decode` in `userInfo[.archiveContext]`.
public struct Coded<Value: Codable> {
  /// The value itself.
  public var value: Value

  /// Wraps a value, so that an archive can hold it.
  public init(_ value: Value) { self.value = value }

  /// For generated code: the value of a field that was read as `Coded`.
  public static func unwrap(_ coded: Coded) -> Value { coded.value }
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

/// Keeps a property whose type is `Codable` but not archivable, such as one of another package: see `Coded`.
///
///     @Coded var weather: Weather
///     @Coded var forecast: [Weather] = []
///
/// For collections, the whole collection is one coded value.
@attached(peer) public macro Coded() = #externalMacro(module: "KeepsakeMacros", type: "MarkerMacro")

extension CodingUserInfoKey {
  /// Where a `Decodable` type finds what the caller handed to `Archive.decode` as `context`.
  public static let archiveContext = CodingUserInfoKey("keepsake.archiveContext")

  /// The standard library's initialiser is failable for reasons of its own and gives a key for every text.
  private init(_ text: String) {
    guard let key = CodingUserInfoKey(rawValue: text) else { preconditionFailure("A key can't be made of the text \(text)") }
    self = key
  }
}

/// An encoded value on its way to or from the root of an archive.
package struct CodedBytes: Archivable {
  private enum Form {
    case bytes([UInt8])
    case tree(CodedTree)
  }
  private let form: Form
  private let context: Any?

  /// Encodes a value. Throws as `Archive.encode` does.
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

  /// Decodes what was read. Throws as `Archive.decode` does.
  package func decode<V: Decodable>(_ type: V.Type, limits: ArchiveLimits) throws -> V {
    switch form {
    case .tree(let tree): return try CodedDecoder.value(of: tree, type, context: context)
    case .bytes(let bytes):
      let tree = try bytes.withUnsafeBytes { try CodedTree($0, offset: 0, depth: 0, limits: limits) }
      return try CodedDecoder.value(of: tree, type, context: context)
    }
  }
}

extension ArchiveWriter {
  mutating func putCoded(_ bytes: [UInt8]) throws {
    // More would not fit into the archive in any case, and positions in a tree have 32 bits.
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

  /// Whether a coded value with which the bytes begin is a nil. It counts as missing for a property that has a default value.
  func isEmptyCoded(_ bytes: UnsafeRawBufferPointer) -> Bool { bytes.starts(with: CodedTree.empty) }
}
