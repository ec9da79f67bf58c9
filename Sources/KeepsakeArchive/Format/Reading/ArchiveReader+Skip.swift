/// The rest of a value that is being skipped.
struct SkippedValue {
  /// Marks a hand-written value, which contains the types of its fields.
  static let keyed: Int32 = -2

  /// The index of a type (of which `enumCase` is the case, for an enum), -1 for a list, or `keyed`.
  let type: Int32
  let enumCase: Int32
  /// For a list: the types of which each element has one value. The second is -1 except for dictionaries.
  let first: Int32
  let second: Int32
  /// The number of fields that were skipped, or of elements that are left.
  var position: Int
}

extension ArchiveReader {
  /// How to skip a value, as far as the code of its type determines it.
  enum PassedForm: UInt8 {
    case byte, four, eight, sixteen, varint, double, length, other

    init(_ wire: WireNode) {
      self =
        switch wire.code {
        case .bool, .int8, .uint8: .byte
        case .int16, .int32, .int64, .uint16, .uint32, .uint64: .varint
        case .float: .four
        case .double: .double
        case .date: .eight
        case .uuid, .int128, .uint128: .sixteen
        case .string, .data, .url, .decimal, .coded, .later: .length
        case .vector, .optional, .array, .set, .dictionary, .named: .other
        }
    }
  }

  @inline(__always) private mutating func passVarint() throws {
    try need(1)
    let bytes = 1 &+ cursor.load(as: UInt8.self).trailingZeroBitCount
    try need(bytes)
    cursor += bytes
  }

  /// Skips a value of this form. Returns false if its type has to be examined.
  @inline(__always) mutating func pass(_ form: PassedForm) throws -> Bool {
    switch form {
    case .byte: _ = try takeByte()
    case .four: _ = try takeBytes(4)
    case .eight: _ = try takeBytes(8)
    case .sixteen: _ = try takeBytes(16)
    case .varint: try passVarint()
    case .double: _ = try takeDouble()
    case .length: _ = try takeBytes(try takeCount())
    case .other: return false
    }
    return true
  }

  /// Skips a value by its saved type. Uses a stack of its own instead of recursion, because the type may be forged.
  mutating func skip(_ node: Int32) throws {
    let start = offset
    guard try !skipWhole(node) else { return }
    try skipOpened(since: start)
  }

  /// Skips what a section has of an object: all of a hand-written one, otherwise these fields.
  mutating func skipObject(isKeyed: Bool, _ fields: [FieldEntry]) throws {
    if isKeyed, try !skipKeyed() { try skipOpened(since: offset) }
    for field in fields { try skip(field.node) }
  }

  /// Skips the value that was opened.
  mutating func skipOpened(since start: Int) throws {
    var structs = 0
    defer { core.skipped.removeAll(keepingCapacity: true) }
    repeat {
      // Structs nested without a list in between could go on forever without taking bytes.
      if let last = core.skipped.last, last.type >= 0, last.enumCase < 0 { structs += 1 }
      guard structs <= ArchiveLimits.structs(in: offset - start) else {
        throw ArchiveError(
          .limit, "The archive has more than \(ArchiveLimits.structsPerByte) structs per byte, which no program writes",
          offset: offset)
      }
    } while try skipInside()
  }

  /// Continues until another value is opened; returns false when nothing is left.
  private mutating func skipInside() throws -> Bool {
    let limit = core.limits.describedDepth
    while let value = core.skipped.last {
      let index = core.skipped.count - 1
      let next: Int32
      if value.type >= 0 {
        guard let field = field(value) else {
          core.skipped.removeLast()
          continue
        }
        core.skipped[index].position += 1
        next = field
      } else if value.type == SkippedValue.keyed {
        guard let field = try keyedField() else {
          core.skipped.removeLast()
          continue
        }
        next = field
      } else {
        guard value.position > 0 else {
          core.skipped.removeLast()
          continue
        }
        core.skipped[index].position -= 1
        next = value.second >= 0 && value.position % 2 == 1 ? value.second : value.first
      }
      if try skipWhole(next) { continue }
      guard core.skipped.count <= limit else {
        throw ArchiveError(.limit, "Values are nested more than \(depthLimit) levels deep", offset: offset)
      }
      return true
    }
    return false
  }

  /// Returns the type of the next field; nil after the last. Avoids copies on the way to it.
  private mutating func field(_ value: SkippedValue) -> Int32? {
    let type = Int(value.type)
    if value.enumCase < 0 {
      return value.position < core.file.types[type].fields.count
        ? core.file.types[type].fields[value.position].node : nil
    }
    let index = Int(value.enumCase)
    guard value.position < core.file.types[type].cases[index].fields.count else { return nil }
    return core.file.types[type].cases[index].fields[value.position].node
  }

  /// Skips a value that contains no others and returns true, or opens it and returns false.
  private mutating func skipWhole(_ node: Int32) throws -> Bool {
    let wire = core.nodes[Int(node)]
    if try pass(PassedForm(wire)) { return true }
    switch wire.code {
    case .vector:
      let width = WireCode(rawValue: UInt8(truncatingIfNeeded: wire.first))?.scalarBytes ?? 1
      _ = try takeBytes(width * Int(wire.second))
    case .optional:
      if core.file.isObject(wire.first) {
        try skipReference()
      } else if try takeFlag() {
        open(list: wire.first, count: 1)
        return false
      }
    case .array, .set:
      let count = try takeCount()
      if wire.code == .array, let width = try takeBlockWidth(core.nodes[Int(wire.first)].code, count) {
        _ = try takeBytes(width * count)
      } else if count > 0 {
        open(list: wire.first, count: count)
        return false
      }
    case .dictionary:
      let count = try takeCount()
      guard count > 0 else { return true }
      open(list: wire.first, wire.second, count: 2 * count)
      return false
    case .named: return try skipNamed(wire.first)
    default: break
    }
    return true
  }

  private mutating func skipReference() throws {
    let number = try takeVarint()
    if passedReferences != nil, number > 0, number <= UInt64(core.objectCount) {
      passedReferences?.append(Int32(truncatingIfNeeded: number - 1))
    }
  }

  /// Reads the key and returns the type of a hand-written value's next field; nil after the last.
  private mutating func keyedField() throws -> Int32? {
    guard try takeVarint() > 0 else { return nil }
    let wire = try takeVarint()
    guard wire < UInt64(core.wires.count) else { throw damaged("The type of a value under a key is out of range") }
    _ = try takeFixed(UInt32.self)
    return core.wires[Int(wire)]
  }

  private mutating func skipNamed(_ type: Int32) throws -> Bool {
    var enumCase: Int32 = -1
    switch core.file.types[Int(type)].kind {
    case .object, .keyedObject:
      try skipReference()
      return true
    case .keyedValue: return try skipKeyed()
    case .structure:
      if core.file.types[Int(type)].fields.isEmpty {
        _ = try takeByte()
        return true
      }
    case .enumeration:
      let index = try takeVarint()
      guard index < UInt64(core.file.types[Int(type)].cases.count) else {
        throw damaged("An enum case is out of range")
      }
      if core.file.types[Int(type)].cases[Int(index)].fields.isEmpty { return true }
      enumCase = Int32(truncatingIfNeeded: index)
    }
    core.skipped.append(SkippedValue(type: type, enumCase: enumCase, first: -1, second: -1, position: 0))
    return false
  }

  /// Skips a hand-written value by the lengths of its fields. If references are collected, opens it instead, because
  /// then its contents matter.
  mutating func skipKeyed() throws -> Bool {
    guard passedReferences != nil else {
      _ = try scanKeyed()
      return true
    }
    core.skipped.append(SkippedValue(type: SkippedValue.keyed, enumCase: -1, first: -1, second: -1, position: 0))
    return false
  }

  private mutating func open(list first: Int32, _ second: Int32 = -1, count: Int) {
    core.skipped.append(SkippedValue(type: -1, enumCase: -1, first: first, second: second, position: count))
  }
}
