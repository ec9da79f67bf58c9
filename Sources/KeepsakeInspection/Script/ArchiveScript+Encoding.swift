package import Foundation
package import KeepsakeArchive

extension ArchiveScript {
  /// Returns the bytes of the archive, as described in docs/FORMAT.md.
  ///
  /// - Throws: `ArchiveError`: `mismatch` and `missingField` with the path for values that don't fit their types;
  ///   `limit`; `damaged` for a script whose parts contradict each other.
  package func encoded(limits: ArchiveLimits = .standard) throws -> Data {
    var builder = SchemaBuilder(types: types.count)
    let entries = try types.map { try builder.entry(of: $0) }
    let rootNode = try builder.node(of: rootType)
    let wires = try keyedTypes.map { try builder.node(of: $0) }
    let schema = ArchiveSchema(nodes: builder.nodes, types: entries)
    guard fixedTypes >= 0, fixedTypes <= entries.count, objectCount >= objects.count, objectCount <= limits.objects
    else {
      throw ArchiveError(.damaged, "The counts of types or objects don't match their lists")
    }
    let numbers = Dictionary(keys.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    func writer() -> ScriptWriter {
      ScriptWriter(schema: schema, wires: wires, keys: numbers, objectCount: objectCount, limits: limits)
    }
    var (rootBytes, values, references) = (writer(), writer(), writer())
    try rootBytes.write(root, as: rootNode)
    for object in objects {
      guard object.type >= 0, object.type < entries.count, entries[object.type].kind.isObject,
        (0..<objectCount).contains(object.number)
      else {
        throw ArchiveError(
          .damaged, "Object \(object.number) has no class, or its number isn't below the count of objects")
      }
      try Self.write(object, entries[object.type], &values, &references)
    }
    var bytes = ArchiveLayout.magic
    bytes += [UInt8(truncatingIfNeeded: ArchiveLayout.version), UInt8(ArchiveLayout.version >> 8)]
    bytes += [UInt8](repeating: 0, count: ArchiveLayout.headerBytes - bytes.count)
    bytes += rootBytes.bytes
    bytes += values.bytes
    bytes += references.bytes
    let footer = bytes.count
    putSchema(schema, rootNode, wires, &bytes)
    for section in [rootBytes.bytes.count, values.bytes.count, references.bytes.count, objectCount] {
      Varint.append(UInt64(section), to: &bytes)
    }
    putRuns(&bytes)
    withUnsafeBytes(of: UInt64(footer).littleEndian) { bytes.append(contentsOf: $0) }
    let checksum = bytes.withUnsafeBytes { Checksum.xxh64($0) }
    withUnsafeBytes(of: checksum.littleEndian) { bytes.append(contentsOf: $0) }
    let data = Data(bytes)
    // A script that was edited by hand may contradict itself in ways that only a reader detects.
    try ArchiveInspection.verify(data, limits: limits)
    return data
  }

  private static func write(
    _ object: Object, _ entry: TypeEntry, _ values: inout ScriptWriter, _ references: inout ScriptWriter
  ) throws {
    let place = ["#\(object.number)"]
    (values.path, references.path) = (place, place)
    if entry.kind.isKeyed {
      try values.writeKeyed(object.fields.filter { $0.key != ArchiveMark.laterKey })
      guard case .structure(_, let later) = object.fields.first(where: { $0.key == ArchiveMark.laterKey })?.value else {
        return try references.writeKeyed([])
      }
      return try references.writeKeyed(later)
    }
    let known = Set(entry.fields.map(\.key))
    var met: Set<String> = []
    for field in object.fields where !met.insert(field.key).inserted {
      throw ArchiveError(.mismatch, "\(entry.name) has the field \"\(field.key.prefix(80))\" twice", field: place[0])
    }
    if let extra = object.fields.first(where: { !known.contains($0.key) }) {
      throw ArchiveError(.mismatch, "\(entry.name) has no field \"\(extra.key.prefix(80))\"", field: place[0])
    }
    try values.writeFields(object.fields, entry.fields.filter { !$0.deferred }, of: entry.name, isWhole: false)
    try references.writeFields(object.fields, entry.fields.filter(\.deferred), of: entry.name, isWhole: false)
  }

  private func putSchema(_ schema: ArchiveSchema, _ root: Int32, _ wires: [Int32], _ bytes: inout [UInt8]) {
    let (all, further) = (schema.encoded(from: 0), schema.encoded(from: fixedTypes))
    let fixed = all.dropLast(further.count)
    Varint.append(UInt64(fixedTypes), to: &bytes)
    Varint.append(UInt64(fixed.count), to: &bytes)
    bytes += fixed
    Varint.append(UInt64(types.count - fixedTypes), to: &bytes)
    bytes += further
    schema.appendExpression(root, to: &bytes)
    Varint.append(UInt64(keys.count), to: &bytes)
    for key in keys { Varint.append(key, to: &bytes) }
    Varint.append(UInt64(wires.count), to: &bytes)
    for wire in wires { schema.appendExpression(wire, to: &bytes) }
  }

  /// Writes the runs: consecutive objects of one class.
  private func putRuns(_ bytes: inout [UInt8]) {
    var runs: [ArraySlice<Object>] = []
    for index in objects.indices {
      if let last = runs.last, last.first?.type == objects[index].type {
        runs[runs.count - 1] = objects[last.startIndex...index]
      } else {
        runs.append(objects[index...index])
      }
    }
    Varint.append(UInt64(runs.count), to: &bytes)
    for run in runs {
      guard let first = run.first else { continue }
      let isContiguous = zip(run, run.dropFirst()).allSatisfy { $1.number == $0.number + 1 }
      Varint.append(UInt64(first.type), to: &bytes)
      Varint.append(UInt64(run.count), to: &bytes)
      bytes.append(isContiguous ? 0 : 1)
      var last: Int64 = 0
      for object in isContiguous ? run.prefix(1) : run {
        let step = Int64(object.number) - last
        Varint.append(UInt64(bitPattern: (step << 1) ^ (step >> 63)), to: &bytes)
        last = Int64(object.number)
      }
    }
  }
}

/// Creates a schema's nodes from expressions.
private struct SchemaBuilder {
  /// The number of types.
  let types: Int
  var nodes: [WireNode] = []

  private static let codes: [String: WireCode] = Dictionary(
    (UInt8.min...UInt8.max).compactMap { WireCode(rawValue: $0) }.map { ("\($0)", $0) },
    uniquingKeysWith: { first, _ in first })

  mutating func entry(of type: ArchiveScript.TypeDefinition) throws -> TypeEntry {
    let kind: TypeKind =
      switch type.kind {
      case .structure: .structure
      case .enumeration: .enumeration
      case .object: .object
      case .keyedValue: .keyedValue
      case .keyedObject: .keyedObject
      }
    guard type.version >= 0 else { throw ArchiveError(.damaged, "The version of \(type.name) is negative") }
    var entry = TypeEntry(kind: kind, name: type.name, version: type.version)
    entry.superclasses = type.superclasses.map { ClassLevel(name: $0.name, version: $0.version) }
    entry.fields = try fields(type.fields)
    for enumCase in type.cases { entry.cases.append(CaseEntry(key: enumCase.key, fields: try fields(enumCase.fields))) }
    return entry
  }

  private mutating func fields(_ fields: [ArchiveScript.Field]) throws -> [FieldEntry] {
    var entries: [FieldEntry] = []
    for field in fields {
      entries.append(
        FieldEntry(
          key: field.key, node: try node(of: field.type), deferrable: field.isDeferred, deferred: field.isDeferred))
    }
    return entries
  }

  mutating func node(of expression: ArchiveScript.Expression, depth: Int = 0) throws -> Int32 {
    guard depth < ArchiveLimits.typeDepth else { throw ArchiveError(.limit, "A type expression is nested too deeply") }
    let node: WireNode
    switch expression {
    case .scalar(let name):
      guard let code = Self.codes[name], code.rawValue < WireCode.optional.rawValue else { throw Self.unknown(name) }
      node = WireNode(code)
    case .optional(let inner): node = WireNode(.optional, try self.node(of: inner, depth: depth + 1))
    case .array(let inner): node = WireNode(.array, try self.node(of: inner, depth: depth + 1))
    case .set(let inner): node = WireNode(.set, try self.node(of: inner, depth: depth + 1))
    case .dictionary(let key, let value):
      let first = try self.node(of: key, depth: depth + 1)
      node = WireNode(.dictionary, first, try self.node(of: value, depth: depth + 1))
    case .vector(let name, let count):
      guard let code = Self.codes[name], code.scalarBytes > 0, code != .bool, let count = Int32(exactly: count),
        count >= 0
      else {
        throw Self.unknown(name)
      }
      node = WireNode(.vector, Int32(code.rawValue), count)
    case .named(let index):
      guard index >= 0, index < types else {
        throw ArchiveError(
          .damaged, "A type expression refers to type \(index), but there are only \(types) types, numbered from 0")
      }
      node = WireNode(.named, Int32(index))
    case .later(let code):
      guard let code = UInt8(exactly: code), WireCode.laterCodes.contains(code) else { throw Self.unknown("\(code)") }
      node = WireNode(.later, Int32(code))
    }
    nodes.append(node)
    return Int32(nodes.count - 1)
  }

  private static func unknown(_ name: String) -> ArchiveError {
    ArchiveError(.damaged, "\"\(name.prefix(80))\" is not a known kind of value")
  }
}
