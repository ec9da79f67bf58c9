import Foundation

/// Reads saved values by the archive's own description of them. Uses a stack of its own instead of recursion, because
/// the description may be forged.
///
/// Structs are the only values without bytes of their own, so limiting their number bounds the memory and the time per
/// byte.
package struct ValueParser {
  private let file: ArchiveFile
  private let schema: ArchiveSchema
  private let limits: ArchiveLimits
  /// Whether values are returned; if not, they are only checked and take no memory.
  private let keepsValues: Bool
  /// Whether values that look alike are marked, so that the same bytes can be written again, as described at
  /// `ArchiveMark`.
  private let isExact: Bool
  private var input: ByteCursor
  /// The values that are being read, from the outermost in.
  private var open: [OpenValue] = []
  private var structs = 0
  /// The number of elements reserved up front. More memory is allocated as values are counted, because lists may be
  /// nested.
  private static let reservedElements = 64
  private var memory: MemoryBudget
  /// By type: the number of values, and the bytes that they take.
  package private(set) var counts: [Int]
  package private(set) var bytes: [Int]

  package init(_ file: ArchiveFile, limits: ArchiveLimits, keepsValues: Bool = true, isExact: Bool = false) throws {
    self.file = file
    self.limits = limits
    self.keepsValues = keepsValues
    self.isExact = isExact
    schema = file.schema
    memory = MemoryBudget(limits)
    input = ByteCursor(bytes: file.bytes, offset: 0, end: 0)
    counts = Array(repeating: 0, count: schema.types.count)
    bytes = counts
  }

  package mutating func root() throws -> ArchiveValue {
    select(file.rootSection)
    let value = try value(file.root)
    try checkEnd()
    return value
  }

  /// Reads the objects. Nil for objects that are only referred to; all nil if values are only checked.
  package mutating func objects() throws -> [ArchiveValue.Object?] {
    var objects = [ArchiveValue.Object?](repeating: nil, count: file.objectCount)
    for isDeferred in [false, true] {
      select(isDeferred ? file.referenceSection : file.valueSection)
      for run in file.runs {
        let entry = schema.types[run.type]
        let entries = entry.fields.filter { $0.deferred == isDeferred }
        for id in run.ids {
          let start = input.offset
          var object = OpenValue(entry.kind.isKeyed ? .keyed : .fields, start: start)
          object.entries = entries
          let fields = try read(object)
          bytes[run.type] += input.offset - start
          if !isDeferred { counts[run.type] += 1 }
          guard keepsValues, case .structure(_, let fields) = fields else { continue }
          if isExact, isDeferred, entry.kind.isKeyed {
            if !fields.isEmpty { objects[Int(id)]?.fields.append(ArchiveMark.later(fields)) }
          } else if isDeferred {
            objects[Int(id)]?.fields += fields
          } else {
            objects[Int(id)] = .init(type: run.type, fields: fields)
          }
        }
      }
      try checkEnd()
    }
    return objects
  }

  private mutating func select(_ section: Range<Int>) {
    input = ByteCursor(bytes: file.bytes, offset: section.lowerBound, end: section.upperBound)
  }

  private func checkEnd() throws {
    guard input.offset == input.end else { throw input.damaged("A section has unused bytes at its end") }
  }

  // MARK: The stack

  private mutating func value(_ node: Int32) throws -> ArchiveValue {
    if let whole = try begin(node) { return whole }
    return try finish()
  }

  private mutating func read(_ outermost: OpenValue) throws -> ArchiveValue {
    try push(outermost)
    return try finish()
  }

  /// Reads until the outermost open value is complete.
  private mutating func finish() throws -> ArchiveValue {
    while true {
      let index = open.count - 1
      if let node = try nextChild(index) {
        if let value = try begin(node) { try take(value, index) }
        continue
      }
      let value = close(open.removeLast())
      if index == 0 { return value }
      try take(value, index - 1)
    }
  }

  private mutating func push(_ value: OpenValue) throws {
    guard open.count < limits.describedDepth else {
      throw ArchiveError(.limit, "Values are nested more than \(limits.depth) levels deep", offset: input.offset)
    }
    open.append(value)
  }

  /// Begins a value: returns it if it contains no others, otherwise opens it and returns nil.
  private mutating func begin(_ node: Int32) throws -> ArchiveValue? {
    let wire = schema.nodes[Int(node)]
    if let scalar = try scalar(wire) { return scalar }
    let start = input.offset
    switch wire.code {
    case .optional:
      if schema.isObject(wire.first) { return try reference() }
      let flag = try input.byte()
      guard flag <= 1 else { throw input.damaged("A flag is neither 0 nor 1") }
      if flag == 0 { return ArchiveValue.none }
      if let scalar = try scalar(schema.nodes[Int(wire.first)]) { return scalar }
      // Counts as a level like any other, because optionals of optionals must not nest without limit.
      var value = OpenValue(.optional, start: start)
      (value.first, value.remaining) = (wire.first, 1)
      try push(value)
    case .array, .set, .dictionary:
      let count = try input.count(limit: limits.elements, "elements")
      if wire.code == .array, schema.nodes[Int(wire.first)].code.scalarBytes > 0 {
        return .array(try block(schema.nodes[Int(wire.first)].code, count: count))
      }
      var value = OpenValue(wire.code == .array ? .array : wire.code == .set ? .set : .dictionary, start: start)
      (value.first, value.second, value.remaining) = (wire.first, wire.second, count)
      if keepsValues { value.reserve(min(count, Self.reservedElements)) }
      try push(value)
    default: return try beginNamed(Int(wire.first))
    }
    return nil
  }

  private mutating func beginNamed(_ type: Int) throws -> ArchiveValue? {
    let entry = schema.types[type]
    if entry.kind.isObject { return try reference() }
    var value = OpenValue(.fields, start: input.offset)
    value.type = type
    switch entry.kind {
    case .enumeration:
      let index = try input.varint()
      guard index < UInt64(entry.cases.count) else { throw input.damaged("An enum case is out of range") }
      value.name = entry.cases[Int(index)].key
      value.entries = entry.cases[Int(index)].fields
    case .keyedValue: value.kind = .keyed
    default:
      if entry.fields.isEmpty { _ = try input.byte() }
      value.entries = entry.fields
      structs += 1
      guard structs <= ArchiveLimits.structs(in: file.bytes.count) else {
        throw ArchiveError(
          .limit, "The archive has more than \(ArchiveLimits.structsPerByte) structs per byte, which no program writes",
          offset: input.offset)
      }
    }
    try push(value)
    return nil
  }

  /// Returns the type of the next child of an open value; nil if the value is complete.
  private mutating func nextChild(_ index: Int) throws -> Int32? {
    switch open[index].kind {
    case .fields:
      let next = open[index].next
      guard next < open[index].entries.count else { return nil }
      return open[index].entries[next].node
    case .keyed: return try nextKey(index)
    default:
      guard open[index].remaining > 0 else { return nil }
      return open[index].isAtValue ? open[index].second : open[index].first
    }
  }

  private mutating func nextKey(_ index: Int) throws -> Int32? {
    let name = try input.varint()
    if name == 0 { return nil }
    guard name <= UInt64(file.names.count) else { throw input.damaged("A key is out of range") }
    let wire = try input.varint()
    guard wire < UInt64(file.wires.count) else {
      throw input.damaged("The type of a value under a key is out of range")
    }
    let length = Int(clamping: UInt32(littleEndian: try fixed(UInt32.self)))
    guard length <= input.end - input.offset else {
      throw input.damaged("A value under a key extends past the archive's end")
    }
    open[index].name = file.names[Int(name) - 1]
    open[index].first = Int32(truncatingIfNeeded: wire)
    open[index].end = input.offset + length
    return file.wires[Int(wire)]
  }

  /// Adds a complete value to its parent.
  private mutating func take(_ value: ArchiveValue, _ index: Int) throws {
    if keepsValues { try memory.claim(1, of: MemoryLayout<ArchiveValue.Field>.stride, at: input.offset) }
    switch open[index].kind {
    case .fields:
      if keepsValues {
        let key = open[index].entries[open[index].next].key
        open[index].fields.append(.init(key: key, value: value))
      }
      open[index].next += 1
    case .keyed:
      guard input.offset == open[index].end else { throw input.damaged("A value under a key has the wrong length") }
      guard keepsValues else { return }
      let exact = isExact ? ArchiveMark.typed(value, Int(open[index].first)) : value
      open[index].fields.append(.init(key: open[index].name ?? "", value: exact))
    case .dictionary:
      if open[index].isAtValue {
        if keepsValues { open[index].pairs.append(.init(key: open[index].key, value: value)) }
        open[index].remaining -= 1
      } else {
        open[index].key = value
      }
      open[index].isAtValue.toggle()
    case .array, .set:
      if keepsValues { open[index].elements.append(value) }
      open[index].remaining -= 1
    case .optional:
      open[index].key = value
      open[index].remaining -= 1
    }
  }

  private mutating func close(_ value: OpenValue) -> ArchiveValue {
    if let type = value.type {
      counts[type] += 1
      bytes[type] += input.offset - value.start
    }
    switch value.kind {
    case .array: return .array(value.elements)
    case .set: return .set(value.elements)
    case .dictionary: return .dictionary(value.pairs)
    case .optional:
      // Without a mark, nil and an optional that contains nil look alike.
      return isExact && schema.nodes[Int(value.first)].code == .optional
        ? ArchiveMark.marked(.some, value.key) : value.key
    case .keyed: return .structure(type: value.type ?? 0, value.fields)
    case .fields:
      if let name = value.name { return .enumeration(type: value.type ?? 0, case: name, value.fields) }
      return .structure(type: value.type ?? 0, value.fields)
    }
  }

  // MARK: What has nothing inside

  private mutating func scalar(_ wire: WireNode) throws -> ArchiveValue? {
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
    case .uuid: return .uuid(UUID(uuid: try bytes(16).loadUnaligned(as: uuid_t.self)))
    case .string: return .string(try text())
    case .url: return .url(try text())
    case .data: return .data(try data(limit: limits.stringBytes))
    case .int128: return Self.wide(Int128(littleEndian: try fixed(Int128.self)))
    case .uint128: return Self.wide(UInt128(littleEndian: try fixed(UInt128.self)))
    case .decimal:
      guard let value = DecimalBytes.read(try bytes(try input.count(limit: .max, "bytes of a number"))) else {
        throw input.damaged("A saved decimal number is invalid")
      }
      return .decimal("\(value)")
    case .coded:
      let length = try input.count(limit: .max, "bytes of a value")
      let start = input.offset
      let tree = try CodedTree(try bytes(length), offset: start, depth: 0, limits: limits)
      guard keepsValues else { return ArchiveValue.none }
      try memory.claim(length, of: 1, at: start)
      try memory.claim(tree.count, of: MemoryLayout<ArchiveValue.Field>.stride, at: start)
      return try tree.archiveValue(isExact: isExact)
    case .later: return .data(try data(limit: .max))
    case .vector: return .vector(try scalars(wire.first, count: Int(wire.second), width: nil))
    default: return nil
    }
  }

  private mutating func text() throws -> String {
    let start = input.offset
    let text = try input.string(limit: limits.stringBytes)
    if keepsValues { try memory.claim(input.offset - start, of: 1, at: start) }
    return text
  }

  /// Reads data, which is copied only if values are kept.
  private mutating func data(limit: Int) throws -> Data {
    let count = try input.count(limit: limit, "bytes of data")
    guard keepsValues else {
      _ = try bytes(count)
      return Data()
    }
    try memory.claim(count, of: 1, at: input.offset)
    return Data(try bytes(count))
  }

  private mutating func reference() throws -> ArchiveValue {
    let number = try input.varint()
    guard number <= UInt64(file.objectCount) else {
      throw input.damaged("A reference points to an object that doesn't exist")
    }
    return number == 0 ? .none : .reference(Int(number) - 1)
  }

  private mutating func fixed<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
    guard input.end - input.offset >= MemoryLayout<T>.size else {
      throw input.damaged("The archive ends in the middle of a value")
    }
    defer { input.offset += MemoryLayout<T>.size }
    return input.bytes.loadUnaligned(fromByteOffset: input.offset, as: T.self)
  }

  private mutating func bytes(_ count: Int) throws -> UnsafeRawBufferPointer {
    guard count <= input.end - input.offset else { throw input.damaged("The archive ends in the middle of a value") }
    defer { input.offset += count }
    return UnsafeRawBufferPointer(rebasing: input.bytes[input.offset..<input.offset + count])
  }

  /// Reads a number outside of blocks and vectors: thousandths, or 1 and the bits.
  private mutating func number() throws -> Double {
    let raw = try input.varint()
    if raw & 1 == 0 { return Double(Int64(bitPattern: raw >> 2) ^ -Int64(bitPattern: (raw >> 1) & 1)) / 1000 }
    guard raw == 1 else { throw input.damaged("A number has an unknown form") }
    return try double()
  }

  private mutating func double() throws -> Double { Double(bitPattern: UInt64(littleEndian: try fixed(UInt64.self))) }

  static func wide(_ value: some FixedWidthInteger) -> ArchiveValue {
    if let value = Int64(exactly: value) { return .integer(value) }
    return UInt64(exactly: value).map { .unsigned($0) } ?? .decimal("\(value)")
  }

  private static func unsigned(_ value: UInt64) -> ArchiveValue {
    Int64(exactly: value).map { .integer($0) } ?? .unsigned(value)
  }

  private mutating func block(_ code: WireCode, count: Int) throws -> [ArchiveValue] {
    guard count > 0 else { return [] }
    var width = code.scalarBytes
    if code.isInteger && width > 1 {
      let saved = Int(try input.byte())
      guard [1, 2, 4, 8].contains(saved), saved <= width else {
        throw input.damaged("A block of numbers has an impossible width")
      }
      width = saved
    }
    guard count <= (input.end - input.offset) / width else {
      throw input.damaged("A block of numbers extends past the archive's end")
    }
    return try scalars(Int32(code.rawValue), count: count, width: width)
  }

  private mutating func scalars(_ code: Int32, count: Int, width: Int?) throws -> [ArchiveValue] {
    guard let code = WireCode(rawValue: UInt8(truncatingIfNeeded: code)) else {
      throw input.damaged("A vector has no scalar type")
    }
    guard keepsValues else {
      _ = try bytes(count * (width ?? code.scalarBytes))
      return []
    }
    try memory.claim(count, of: MemoryLayout<ArchiveValue>.stride, at: input.offset)
    var values: [ArchiveValue] = []
    values.reserveCapacity(ArchiveLimits.reserved(count, of: MemoryLayout<ArchiveValue>.stride))
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
