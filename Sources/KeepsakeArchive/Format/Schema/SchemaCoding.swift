/// Encodes a schema as bytes, as described in docs/FORMAT.md, "Schema".
extension ArchiveSchema {
  package func encoded(from start: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for entry in types[start...] {
      bytes.append(entry.kind.rawValue)
      Varint.append(entry.name, to: &bytes)
      Varint.append(UInt64(clamping: entry.version), to: &bytes)
      switch entry.kind {
      case .structure: append(entry.fields, to: &bytes)
      case .object:
        Varint.append(UInt64(entry.superclasses.count), to: &bytes)
        for level in entry.superclasses {
          Varint.append(level.name, to: &bytes)
          Varint.append(UInt64(clamping: level.version), to: &bytes)
        }
        append(entry.fields, to: &bytes)
      case .enumeration:
        Varint.append(UInt64(entry.cases.count), to: &bytes)
        for enumCase in entry.cases {
          Varint.append(enumCase.key, to: &bytes)
          append(enumCase.fields, to: &bytes)
        }
      case .keyedValue, .keyedObject: break
      }
    }
    return bytes
  }

  private func append(_ fields: [FieldEntry], to bytes: inout [UInt8]) {
    Varint.append(UInt64(fields.count), to: &bytes)
    for field in fields {
      Varint.append(field.key, to: &bytes)
      bytes.append(field.deferred ? 1 : 0)
      appendExpression(field.node, to: &bytes)
    }
  }

  package func appendExpression(_ node: Int32, to bytes: inout [UInt8]) {
    let wire = nodes[Int(node)]
    bytes.append(wire.code.rawValue)
    switch wire.code {
    case .optional, .array, .set: appendExpression(wire.first, to: &bytes)
    case .dictionary:
      appendExpression(wire.first, to: &bytes)
      appendExpression(wire.second, to: &bytes)
    case .vector:
      bytes.append(UInt8(truncatingIfNeeded: wire.first))
      Varint.append(UInt64(wire.second), to: &bytes)
    case .named: Varint.append(UInt64(wire.first), to: &bytes)
    case .later: bytes[bytes.count - 1] = UInt8(truncatingIfNeeded: wire.first)
    default: break
    }
  }
}

/// Parses a schema from bytes, which are fully validated.
struct SchemaParser {
  private(set) var nodes: [WireNode] = []
  private(set) var types: [TypeEntry] = []
  let limits: ArchiveLimits

  init(limits: ArchiveLimits) { self.limits = limits }

  mutating func parseTypes(_ count: Int, from input: inout ByteCursor) throws {
    for _ in 0..<count {
      guard let kind = TypeKind(rawValue: try input.byte()) else {
        throw input.damaged("The schema has an unknown kind of type")
      }
      var entry = TypeEntry(kind: kind, name: try input.string(limit: limits.stringBytes), version: 0)
      entry.version = try version(from: &input)
      switch kind {
      case .structure: entry.fields = try fields(from: &input, isObject: false)
      case .object:
        for _ in 0..<(try input.count(limit: ArchiveLimits.classLevels, "superclasses")) {
          let name = try input.string(limit: limits.stringBytes)
          entry.superclasses.append(ClassLevel(name: name, version: try version(from: &input)))
        }
        entry.fields = try fields(from: &input, isObject: true)
      case .enumeration:
        let cases = try input.count(limit: limits.fields, "enum cases")
        entry.cases.reserveCapacity(cases)
        for _ in 0..<cases {
          let key = try input.string(limit: limits.stringBytes)
          entry.cases.append(CaseEntry(key: key, fields: try fields(from: &input, isObject: false)))
        }
      case .keyedValue, .keyedObject: break
      }
      types.append(entry)
    }
  }

  private func version(from input: inout ByteCursor) throws -> Int {
    guard let version = Int(exactly: try input.varint()) else {
      throw input.damaged("A type's version is out of range")
    }
    return version
  }

  /// Parses fields. Only fields of classes may be in the references section: elsewhere such fields would allow values
  /// that take no bytes, and there could be any number of those.
  private mutating func fields(from input: inout ByteCursor, isObject: Bool) throws -> [FieldEntry] {
    let count = try input.count(limit: limits.fields, "fields")
    var fields: [FieldEntry] = []
    fields.reserveCapacity(count)
    for _ in 0..<count {
      let key = try input.string(limit: limits.stringBytes)
      let flags = try input.byte()
      guard flags <= (isObject ? 1 : 0) else { throw input.damaged("A field has unknown flags") }
      let node = try expression(from: &input, depth: 0)
      fields.append(FieldEntry(key: key, node: node, deferrable: flags == 1, deferred: flags == 1))
    }
    return fields
  }

  mutating func expression(from input: inout ByteCursor, depth: Int) throws -> Int32 {
    guard depth < ArchiveLimits.typeDepth else { throw input.damaged("A type expression is nested too deeply") }
    let raw = try input.byte()
    if WireCode.laterCodes.contains(raw) {
      nodes.append(WireNode(.later, Int32(raw)))
      return Int32(nodes.count - 1)
    }
    guard let code = WireCode(rawValue: raw) else {
      throw ArchiveError(
        .tooNew, "The archive has a kind of value that this program doesn't know", offset: input.offset)
    }
    var node = WireNode(code)
    switch code {
    case .optional, .array, .set: node.first = try expression(from: &input, depth: depth + 1)
    case .dictionary:
      node.first = try expression(from: &input, depth: depth + 1)
      node.second = try expression(from: &input, depth: depth + 1)
    case .vector:
      guard let scalar = WireCode(rawValue: try input.byte()), scalar.scalarBytes > 0, scalar != .bool else {
        throw input.damaged("A vector has no scalar type")
      }
      node.first = Int32(scalar.rawValue)
      let count = try input.varint()
      guard (1...64).contains(count) else { throw input.damaged("A vector has an impossible length") }
      node.second = Int32(count)
    case .named:
      guard let index = Int32(exactly: try input.varint()) else { throw input.damaged("A type number is out of range") }
      node.first = index
    default: break
    }
    nodes.append(node)
    return Int32(nodes.count - 1)
  }

  /// Checks the type numbers, once all types are known.
  func finish(_ input: ByteCursor) throws -> ArchiveSchema {
    for node in nodes where node.code == .named && Int(node.first) >= types.count {
      throw input.damaged("The schema refers to a type that it doesn't contain")
    }
    return ArchiveSchema(nodes: nodes, types: types)
  }
}
