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
    case .double: _ = try takeDouble()
    case .date: _ = try takeBytes(8)
    case .uuid: _ = try takeBytes(16)
    case .string, .data, .url: _ = try takeBytes(try takeCount())
    case .vector:
      let width = WireCode(rawValue: UInt8(truncatingIfNeeded: wire.first))?.scalarBytes ?? 1
      _ = try takeBytes(width * Int(wire.second))
    case .optional:
      if core.file.isObject(wire.first) { try skipReference() } else if try takeFlag() { try skip(wire.first) }
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

  private mutating func skipReference() throws {
    let number = try takeVarint()
    if passedReferences != nil, number > 0, number <= UInt64(core.objectCount) {
      passedReferences?.append(Int32(truncatingIfNeeded: number - 1))
    }
  }

  /// A hand-written value says how long it is; its fields matter only to whoever collects references.
  mutating func skipKeyed() throws {
    let entries = try scanKeyed()
    guard passedReferences != nil else { return }
    let outer = cursor
    for entry in entries {
      cursor = entry.start
      try skip(entry.node)
    }
    cursor = outer
  }

  private mutating func skipNamed(_ entry: TypeEntry) throws {
    switch entry.kind {
    case .object, .keyedObject: try skipReference()
    case .keyedValue: try skipKeyed()
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
