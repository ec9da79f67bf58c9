extension ArchiveReader {
  /// Passes over a value by its saved type.
  mutating func skip(_ node: Int32) throws {
    skipDepth += 1
    defer { skipDepth -= 1 }
    guard skipDepth <= depthLimit * ArchiveLimits.describedLevels else {
      throw ArchiveError(.limit, "Values are nested more than \(depthLimit) levels deep", offset: offset)
    }
    let wire = core.nodes[Int(node)]
    switch wire.code {
    case .bool, .int8, .uint8: _ = try takeByte()
    case .int16, .int32, .int64, .uint16, .uint32, .uint64: _ = try takeVarint()
    case .float: _ = try takeBytes(4)
    case .double, .date: _ = try takeBytes(8)
    case .uuid: _ = try takeBytes(16)
    case .string, .data, .url: _ = try takeBytes(try takeCount())
    case .vector:
      let width = WireCode(rawValue: UInt8(truncatingIfNeeded: wire.first))?.scalarBytes ?? 1
      _ = try takeBytes(width * Int(wire.second))
    case .optional:
      if core.file.isObject(wire.first) { _ = try takeVarint() } else if try takeFlag() { try skip(wire.first) }
    case .array, .set:
      let count = try takeCount()
      if wire.code == .array, let width = try takeBlockWidth(core.nodes[Int(wire.first)].code, count) {
        _ = try takeBytes(width * count)
        return
      }
      for _ in 0..<count { try skip(wire.first) }
    case .dictionary:
      let count = try takeCount()
      for _ in 0..<count {
        try skip(wire.first)
        try skip(wire.second)
      }
    case .named: try skipNamed(core.file.types[Int(wire.first)])
    }
  }

  private mutating func skipNamed(_ entry: TypeEntry) throws {
    switch entry.kind {
    case .object, .keyedObject: _ = try takeVarint()
    case .keyedValue: _ = try scanKeyed()
    case .structure:
      if entry.fields.isEmpty { _ = try takeByte() }
      for field in entry.fields { try skip(field.node) }
    case .enumeration:
      let index = try takeVarint()
      guard index < UInt64(entry.cases.count) else { throw damaged("An enum case is out of range") }
      for field in entry.cases[Int(index)].fields { try skip(field.node) }
    }
  }
}
