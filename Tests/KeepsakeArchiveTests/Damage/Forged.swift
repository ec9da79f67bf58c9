import Foundation

@testable import ArchiveWorlds
@testable import KeepsakeArchive

/// An archive built byte by byte, as no program would write it, but with correct lengths, offset and checksum.
struct Forged {
  var types: [[UInt8]] = []
  /// The type expression of the root.
  var rootType: [UInt8] = []
  var keys: [String] = []
  var wires: [[UInt8]] = []
  var root: [UInt8] = []
  var values: [UInt8] = []
  var references: [UInt8] = []
  var objects = 0
  var runs: [[UInt8]] = []

  var data: Data {
    var bytes: [UInt8] = ArchiveLayout.magic
    bytes += [1, 0, 0, 0, 0, 0, 0, 0]
    bytes += root + values + references
    let footer = UInt64(bytes.count)
    let schema = Array(types.joined())
    bytes += Self.varint(types.count) + Self.varint(schema.count) + schema
    bytes += Self.varint(0)
    bytes += rootType
    bytes += Self.varint(keys.count) + keys.flatMap { Self.string($0) }
    bytes += Self.varint(wires.count) + wires.joined()
    for section in [root, values, references] { bytes += Self.varint(section.count) }
    bytes += Self.varint(objects)
    bytes += Self.varint(runs.count) + runs.joined()
    withUnsafeBytes(of: footer.littleEndian) { bytes.append(contentsOf: $0) }
    return Archive.resealed(Data(bytes + [UInt8](repeating: 0, count: 8)))
  }

  /// Returns an archive without objects.
  static func archive(types: [[UInt8]], root: [UInt8], value: [UInt8]) -> Data {
    Forged(types: types, rootType: root, root: value).data
  }

  static func join(_ parts: [UInt8]...) -> [UInt8] { Array(parts.joined()) }

  static func varint(_ value: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    Varint.append(UInt64(value), to: &bytes)
    return bytes
  }

  static func string(_ text: String) -> [UInt8] { varint(text.utf8.count) + Array(text.utf8) }

  /// The beginning of a type's description, without its fields or cases. A class has no superclass.
  static func type(_ kind: TypeKind, _ name: String, version: Int = 1) -> [UInt8] {
    [kind.rawValue] + string(name) + varint(version) + (kind == .object ? varint(0) : [])
  }

  /// The type expression that refers to a type by its number.
  static func named(_ index: Int) -> [UInt8] { [WireCode.named.rawValue] + varint(index) }

  static func list(_ code: WireCode, _ element: [UInt8]) -> [UInt8] { [code.rawValue] + element }

  static func field(_ key: String, _ type: [UInt8], flags: UInt8 = 0) -> [UInt8] { string(key) + [flags] + type }

  /// The number of fields, and the fields.
  static func fields(_ fields: [[UInt8]] = []) -> [UInt8] { varint(fields.count) + Array(fields.joined()) }

  /// A field of a hand-written value.
  static func keyed(_ key: Int, _ wire: Int, length: UInt32, _ value: [UInt8] = []) -> [UInt8] {
    varint(key + 1) + varint(wire) + withUnsafeBytes(of: length.littleEndian) { Array($0) } + value
  }

  /// Consecutive objects of one class.
  static func run(type: Int, count: Int, first: Int) -> [UInt8] {
    varint(type) + varint(count) + [0] + varint(first * 2)
  }

  static func repeated(_ byte: UInt8, _ count: Int) -> [UInt8] { [UInt8](repeating: byte, count: count) }
}
