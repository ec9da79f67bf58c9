import Foundation

/// Reads saved values by the archive's own description of them.
struct ValueParser {
  private let file: ArchiveFile
  private let schema: ArchiveSchema
  private let limits: ArchiveLimits
  private var input: ByteCursor
  private var depth = 0
  /// By type: how many values, and how many bytes they take.
  private(set) var counts: [Int]
  private(set) var bytes: [Int]

  init(_ file: ArchiveFile, limits: ArchiveLimits) throws {
    self.file = file
    self.limits = limits
    schema = file.schema
    input = ByteCursor(bytes: file.bytes, offset: 0, end: 0)
    counts = Array(repeating: 0, count: schema.types.count)
    bytes = counts
  }

  mutating func root() throws -> ArchiveValue {
    select(file.rootSection)
    let value = try value(file.root)
    try checkEnd()
    return value
  }

  mutating func objects() throws -> [ArchiveInspection.Object?] {
    var objects = [ArchiveInspection.Object?](repeating: nil, count: file.objectCount)
    select(file.valueSection)
    for run in file.runs {
      for id in run.ids {
        let start = input.offset
        objects[Int(id)] = .init(type: run.type, fields: try objectFields(run.type, deferred: false))
        counts[run.type] += 1
        bytes[run.type] += input.offset - start
      }
    }
    try checkEnd()
    select(file.referenceSection)
    for run in file.runs {
      for id in run.ids {
        let start = input.offset
        objects[Int(id)]?.fields += try objectFields(run.type, deferred: true)
        bytes[run.type] += input.offset - start
      }
    }
    try checkEnd()
    return objects
  }

  private mutating func select(_ section: Range<Int>) {
    input = ByteCursor(bytes: file.bytes, offset: section.lowerBound, end: section.upperBound)
  }

  private func checkEnd() throws {
    guard input.offset == input.end else { throw input.damaged("A section has bytes that belong to no value") }
  }

  private mutating func objectFields(_ type: Int, deferred: Bool) throws -> [ArchiveValue.Field] {
    let entry = schema.types[type]
    if entry.kind.isKeyed { return try keyed() }
    return try fields(entry.fields.filter { $0.deferred == deferred })
  }

  private mutating func fields(_ entries: [FieldEntry]) throws -> [ArchiveValue.Field] {
    var result: [ArchiveValue.Field] = []
    for entry in entries { result.append(.init(key: entry.key, value: try value(entry.node))) }
    return result
  }

  private mutating func keyed() throws -> [ArchiveValue.Field] {
    var result: [ArchiveValue.Field] = []
    while true {
      let name = try input.varint()
      if name == 0 { return result }
      guard name <= UInt64(file.names.count) else { throw input.damaged("A key is out of range") }
      let wire = try input.varint()
      guard wire < UInt64(file.wires.count) else { throw input.damaged("The type of a value under a key is out of range") }
      let length = Int(clamping: UInt32(littleEndian: try fixed(UInt32.self)))
      guard length <= input.end - input.offset else { throw input.damaged("A value under a key passes the archive's end") }
      let end = input.offset + length
      let value = try value(file.wires[Int(wire)])
      guard input.offset == end else { throw input.damaged("A value under a key has the wrong length") }
      result.append(.init(key: file.names[Int(name) - 1], value: value))
    }
  }

  private mutating func fixed<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
    guard input.end - input.offset >= MemoryLayout<T>.size else { throw input.damaged("The archive ends in the middle of a value") }
    defer { input.offset += MemoryLayout<T>.size }
    return input.bytes.loadUnaligned(fromByteOffset: input.offset, as: T.self)
  }

  private mutating func take(_ count: Int) throws -> UnsafeRawBufferPointer {
    guard count <= input.end - input.offset else { throw input.damaged("The archive ends in the middle of a value") }
    defer { input.offset += count }
    return UnsafeRawBufferPointer(rebasing: input.bytes[input.offset..<input.offset + count])
  }

  private mutating func text() throws -> String { try input.string(limit: limits.stringBytes) }

  private mutating func value(_ node: Int32) throws -> ArchiveValue {
    let wire = schema.nodes[Int(node)]
    switch wire.code {
    case .bool:
      let byte = try input.byte()
      guard byte <= 1 else { throw input.damaged("A flag is neither 0 nor 1") }
      return .bool(byte == 1)
    case .int8: return .integer(Int64(Int8(bitPattern: try input.byte())))
    case .uint8: return .integer(Int64(try input.byte()))
    case .int16, .int32, .int64: return .integer(try input.signed())
    case .uint16, .uint32, .uint64: return Self.unsigned(try input.varint())
    case .float: return .number(Double(Float(bitPattern: UInt32(littleEndian: try fixed(UInt32.self)))))
    case .double: return .number(try number())
    case .date: return .date(Date(timeIntervalSinceReferenceDate: try double()))
    case .uuid: return .uuid(UUID(uuid: try take(16).loadUnaligned(as: uuid_t.self)))
    case .string: return .string(try text())
    case .url: return .url(try text())
    case .data: return .data(Data(try take(try input.count(limit: limits.stringBytes, "bytes of data"))))
    case .vector: return .vector(try scalars(wire.first, count: Int(wire.second), width: nil))
    default: return try nested(wire)
    }
  }

  /// Outside of blocks and vectors: thousandths, or 1 and the bits.
  private mutating func number() throws -> Double {
    let raw = try input.varint()
    if raw & 1 == 0 { return Double(Int64(bitPattern: raw >> 2) ^ -Int64(bitPattern: (raw >> 1) & 1)) / 1000 }
    guard raw == 1 else { throw input.damaged("A number has an unknown form") }
    return try double()
  }

  private mutating func double() throws -> Double { Double(bitPattern: UInt64(littleEndian: try fixed(UInt64.self))) }

  private static func unsigned(_ value: UInt64) -> ArchiveValue {
    Int64(exactly: value).map { .integer($0) } ?? .unsigned(value)
  }

  private mutating func nested(_ wire: WireNode) throws -> ArchiveValue {
    depth += 1
    defer { depth -= 1 }
    guard depth <= limits.depth * ArchiveLimits.describedLevels else {
      throw ArchiveError(.limit, "Values are nested more than \(limits.depth) levels deep", offset: input.offset)
    }
    switch wire.code {
    case .optional:
      if schema.isObject(wire.first) { return try reference() }
      let flag = try input.byte()
      guard flag <= 1 else { throw input.damaged("A flag is neither 0 nor 1") }
      return flag == 1 ? try value(wire.first) : .none
    case .array, .set:
      let count = try input.count(limit: .max, "elements")
      let element = schema.nodes[Int(wire.first)].code
      if wire.code == .array, element.scalarBytes > 0 {
        return .array(try block(element, count: count))
      }
      var values: [ArchiveValue] = []
      for _ in 0..<count { values.append(try value(wire.first)) }
      return wire.code == .set ? .set(values) : .array(values)
    case .dictionary:
      let count = try input.count(limit: .max, "pairs")
      var pairs: [ArchiveValue.Pair] = []
      for _ in 0..<count { pairs.append(.init(key: try value(wire.first), value: try value(wire.second))) }
      return .dictionary(pairs)
    default: return try named(Int(wire.first))
    }
  }

  private mutating func reference() throws -> ArchiveValue {
    let number = try input.varint()
    guard number <= UInt64(file.objectCount) else { throw input.damaged("A reference leads to an object that isn't there") }
    return number == 0 ? .none : .reference(Int(number) - 1)
  }

  private mutating func named(_ type: Int) throws -> ArchiveValue {
    let entry = schema.types[type]
    if entry.kind.isObject { return try reference() }
    let start = input.offset
    defer {
      counts[type] += 1
      bytes[type] += input.offset - start
    }
    switch entry.kind {
    case .enumeration:
      let index = try input.varint()
      guard index < UInt64(entry.cases.count) else { throw input.damaged("An enum case is out of range") }
      let enumCase = entry.cases[Int(index)]
      return .enumeration(type: type, case: enumCase.key, try fields(enumCase.fields))
    case .keyedValue: return .structure(type: type, try keyed())
    default:
      if entry.fields.isEmpty { _ = try input.byte() }
      return .structure(type: type, try fields(entry.fields))
    }
  }

  private mutating func block(_ code: WireCode, count: Int) throws -> [ArchiveValue] {
    guard count > 0 else { return [] }
    var width = code.scalarBytes
    if code.isInteger && width > 1 {
      let saved = Int(try input.byte())
      guard [1, 2, 4, 8].contains(saved), saved <= width else { throw input.damaged("A block of numbers has an impossible width") }
      width = saved
    }
    guard count <= (input.end - input.offset) / width else { throw input.damaged("A block of numbers passes the archive's end") }
    return try scalars(Int32(code.rawValue), count: count, width: width)
  }

  private mutating func scalars(_ code: Int32, count: Int, width: Int?) throws -> [ArchiveValue] {
    guard let code = WireCode(rawValue: UInt8(truncatingIfNeeded: code)) else { throw input.damaged("A vector has no scalar type") }
    var values: [ArchiveValue] = []
    for _ in 0..<count {
      switch (code, width ?? code.scalarBytes) {
      case (.bool, _): values.append(.bool(try input.byte() != 0))
      case (.float, _): values.append(.number(Double(Float(bitPattern: UInt32(littleEndian: try fixed(UInt32.self))))))
      case (.double, _): values.append(.number(try double()))
      case (_, 1) where code.isSigned: values.append(.integer(Int64(try fixed(Int8.self))))
      case (_, 1): values.append(.integer(Int64(try input.byte())))
      case (_, 2) where code.isSigned: values.append(.integer(Int64(Int16(littleEndian: try fixed(Int16.self)))))
      case (_, 2): values.append(.integer(Int64(UInt16(littleEndian: try fixed(UInt16.self)))))
      case (_, 4) where code.isSigned: values.append(.integer(Int64(Int32(littleEndian: try fixed(Int32.self)))))
      case (_, 4): values.append(.integer(Int64(UInt32(littleEndian: try fixed(UInt32.self)))))
      case (_, _) where code.isSigned: values.append(.integer(Int64(littleEndian: try fixed(Int64.self))))
      default: values.append(Self.unsigned(UInt64(littleEndian: try fixed(UInt64.self))))
      }
    }
    return values
  }
}
