import Foundation
import KeepsakeArchive

/// Writes values by the types that a script describes, as the bytes that `Archive.encode` would have written.
///
/// Edited values are accepted if they fit: an integer for a floating-point number, a name for an enum case without
/// payload, a struct's keys for a dictionary's. Recursive for each level, up to the depth that can be read back.
struct ScriptWriter {
  let schema: ArchiveSchema
  /// The types of values under keys, and the numbers of the keys.
  let wires: [Int32]
  let keys: [String: Int]
  let objectCount: Int
  let limits: ArchiveLimits
  var bytes: [UInt8] = []
  /// The path of the value, for messages.
  var path: [String] = []

  mutating func write(_ value: ArchiveValue, as node: Int32) throws {
    guard path.count <= limits.describedDepth else {
      throw ArchiveError(.limit, "Values are nested more than \(limits.describedDepth) deep")
    }
    let wire = schema.nodes[Int(node)]
    switch wire.code {
    case .optional: try writeOptional(value, wire)
    case .array: try writeList(value, wire, node)
    case .set: try writeElements(try elements(value, node), as: wire.first)
    case .dictionary: try writePairs(value, wire, node)
    case .vector:
      let scalars = try elements(value, node)
      guard scalars.count == Int(wire.second) else { throw misfit(value, node) }
      for scalar in scalars { try writeWhole(scalar, code: wire.first, node) }
    case .named: try writeNamed(value, Int(wire.first), node)
    default: try writeScalar(value, wire.code, node)
    }
  }

  // MARK: Scalars

  private mutating func writeScalar(_ value: ArchiveValue, _ code: WireCode, _ node: Int32) throws {
    switch code {
    case .bool, .int8, .uint8, .float: try writeWhole(value, code: Int32(code.rawValue), node)
    case .int16: put(zigzag: Int64(try integer(value, Int16.self, node)))
    case .int32: put(zigzag: Int64(try integer(value, Int32.self, node)))
    case .int64: put(zigzag: try integer(value, Int64.self, node))
    case .uint16: Varint.append(UInt64(try integer(value, UInt16.self, node)), to: &bytes)
    case .uint32: Varint.append(UInt64(try integer(value, UInt32.self, node)), to: &bytes)
    case .uint64: Varint.append(try integer(value, UInt64.self, node), to: &bytes)
    case .double: put(short: try number(value, node))
    case .date:
      if case .date(let date) = value {
        put(date.timeIntervalSinceReferenceDate.bitPattern)
      } else {
        put(try number(value, node).bitPattern)
      }
    case .string, .url:
      guard let text = Self.text(value) else { throw misfit(value, node) }
      Varint.append(text, to: &bytes)
    case .data, .later:
      guard case .data(let data) = value else { throw misfit(value, node) }
      Varint.append(UInt64(data.count), to: &bytes)
      bytes += data
    case .uuid:
      guard let uuid = Self.uuid(value) else { throw misfit(value, node) }
      withUnsafeBytes(of: uuid.uuid) { bytes.append(contentsOf: $0) }
    case .int128: put(try integer(value, Int128.self, node))
    case .uint128: put(try integer(value, UInt128.self, node))
    case .decimal:
      guard let decimal = (ArchiveMark.unmarked(value)?.value ?? value).decimal else { throw misfit(value, node) }
      let digits = try DecimalBytes.make(decimal)
      Varint.append(UInt64(digits.count), to: &bytes)
      bytes += digits
    case .coded:
      let tree: [UInt8]
      do {
        tree = try CodedValueWriter.bytes(of: value, limits: limits) { misfit($0, node) }
      } catch let error as ArchiveError where error.field == nil {
        throw self.error(error.code, error.message)
      }
      Varint.append(UInt64(tree.count), to: &bytes)
      bytes += tree
    case .optional, .array, .set, .dictionary, .vector, .named: throw misfit(value, node)
    }
  }

  private static func text(_ value: ArchiveValue) -> String? {
    switch value {
    case .string(let text), .url(let text): text
    default: nil
    }
  }

  private static func uuid(_ value: ArchiveValue) -> UUID? {
    switch value {
    case .uuid(let uuid): uuid
    case .string(let text): UUID(uuidString: text)
    default: nil
    }
  }

  /// Writes a scalar of a block or vector in its full width.
  private mutating func writeWhole(_ value: ArchiveValue, code: Int32, _ node: Int32) throws {
    switch WireCode(rawValue: UInt8(truncatingIfNeeded: code)) {
    case .bool:
      guard case .bool(let flag) = value else { throw misfit(value, node) }
      bytes.append(flag ? 1 : 0)
    case .int8: put(try integer(value, Int8.self, node))
    case .int16: put(try integer(value, Int16.self, node))
    case .int32: put(try integer(value, Int32.self, node))
    case .int64: put(try integer(value, Int64.self, node))
    case .uint8: put(try integer(value, UInt8.self, node))
    case .uint16: put(try integer(value, UInt16.self, node))
    case .uint32: put(try integer(value, UInt32.self, node))
    case .uint64: put(try integer(value, UInt64.self, node))
    case .float:
      let wide = try number(value, node)
      let narrow = Float(wide)
      guard narrow.isFinite || !wide.isFinite else { throw misfit(value, node) }
      put(narrow.bitPattern)
    default: put(try number(value, node).bitPattern)
    }
  }

  private func integer<T: FixedWidthInteger>(_ value: ArchiveValue, _ type: T.Type, _ node: Int32) throws -> T {
    let exact: T? =
      switch value {
      case .integer(let value): T(exactly: value)
      case .unsigned(let value): T(exactly: value)
      case .decimal(let digits): T(digits)
      case .number(let value): T(exactly: value)
      default: nil
      }
    guard let exact else { throw misfit(value, node) }
    return exact
  }

  private func number(_ value: ArchiveValue, _ node: Int32) throws -> Double {
    let number: Double? =
      switch value {
      case .number(let value): value
      case .integer(let value): Double(exactly: value)
      case .unsigned(let value): Double(exactly: value)
      default: nil
      }
    guard let number else { throw misfit(value, node) }
    return number
  }

  private mutating func put<T: FixedWidthInteger>(_ value: T) {
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  private mutating func put(zigzag value: Int64) {
    Varint.append(UInt64(bitPattern: (value << 1) ^ (value >> 63)), to: &bytes)
  }

  /// Writes a number like `ArchiveWriter.putDouble`.
  private mutating func put(short value: Double) {
    let scaled = value * 1000
    if abs(scaled) < 140_737_488_355_328 {
      // Rounds. It also turns -0.0 into 0.0, which the comparison of the bits detects.
      let base = 6_755_399_441_055_744.0
      let count = (scaled + base) - base
      if (count / 1000).bitPattern == value.bitPattern {
        let thousandths = Int64(count)
        return Varint.append(UInt64(bitPattern: (thousandths << 1) ^ (thousandths >> 63)) << 1, to: &bytes)
      }
    }
    Varint.append(1, to: &bytes)
    put(value.bitPattern)
  }

  // MARK: What has others inside

  private mutating func writeOptional(_ value: ArchiveValue, _ wire: WireNode) throws {
    if schema.isObject(wire.first) { return try write(value, as: wire.first) }
    let isNested = schema.nodes[Int(wire.first)].code == .optional
    if isNested, let (mark, inner, _) = ArchiveMark.unmarked(value), mark == .some {
      bytes.append(1)
      return try step("?") { try $0.write(inner, as: wire.first) }
    }
    if case .none = value {
      bytes.append(0)
    } else {
      bytes.append(1)
      try step("?") { try $0.write(value, as: wire.first) }
    }
  }

  private mutating func writeList(_ value: ArchiveValue, _ wire: WireNode, _ node: Int32) throws {
    let values = try elements(value, node)
    let code = schema.nodes[Int(wire.first)].code
    guard code.scalarBytes > 0 else { return try writeElements(values, as: wire.first) }
    Varint.append(UInt64(values.count), to: &bytes)
    guard !values.isEmpty else { return }
    guard code.isInteger, code.scalarBytes > 1 else {
      for value in values { try writeWhole(value, code: Int32(code.rawValue), wire.first) }
      return
    }
    let width = try blockWidth(of: values, code, wire.first)
    bytes.append(UInt8(width))
    for value in values {
      // Two's complement: the low bytes are the number.
      let bits =
        code.isSigned
        ? UInt64(bitPattern: try integer(value, Int64.self, wire.first)) : try integer(value, UInt64.self, wire.first)
      for index in 0..<width { bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(8 * index))) }
    }
  }

  /// Returns the narrowest width that holds all of the numbers.
  private func blockWidth(of values: [ArchiveValue], _ code: WireCode, _ node: Int32) throws -> Int {
    var width = 1
    for value in values {
      let needed: Int
      if code.isSigned {
        let number = try integer(value, Int64.self, node)
        needed =
          Int8(exactly: number) != nil ? 1 : Int16(exactly: number) != nil ? 2 : Int32(exactly: number) != nil ? 4 : 8
      } else {
        let number = try integer(value, UInt64.self, node)
        needed = number <= 0xFF ? 1 : number <= 0xFFFF ? 2 : number <= 0xFFFF_FFFF ? 4 : 8
      }
      guard needed <= code.scalarBytes else { throw misfit(value, node) }
      width = max(width, needed)
    }
    return width
  }

  private func elements(_ value: ArchiveValue, _ node: Int32) throws -> [ArchiveValue] {
    switch value {
    case .array(let values), .set(let values), .vector(let values): return values
    default: throw misfit(value, node)
    }
  }

  private mutating func writeElements(_ values: [ArchiveValue], as node: Int32) throws {
    Varint.append(UInt64(values.count), to: &bytes)
    for (index, value) in values.enumerated() { try step("[\(index)]") { try $0.write(value, as: node) } }
  }

  private mutating func writePairs(_ value: ArchiveValue, _ wire: WireNode, _ node: Int32) throws {
    let pairs: [ArchiveValue.Pair]
    switch value {
    case .dictionary(let given): pairs = given
    case .structure(_, let fields): pairs = fields.map { .init(key: .string($0.key), value: $0.value) }
    default: throw misfit(value, node)
    }
    Varint.append(UInt64(pairs.count), to: &bytes)
    for pair in pairs {
      try step("key") { try $0.write(pair.key, as: wire.first) }
      try step(Self.step(pair.key)) { try $0.write(pair.value, as: wire.second) }
    }
  }

  private static func step(_ key: ArchiveValue) -> String {
    if case .string(let text) = key { return ".\(text.prefix(80))" }
    return "[\(ValueLine(longest: 40, characters: 80).text(key))]"
  }

  private mutating func writeNamed(_ value: ArchiveValue, _ type: Int, _ node: Int32) throws {
    let entry = schema.types[type]
    if entry.kind.isObject { return try writeReference(value, node) }
    switch entry.kind {
    case .enumeration:
      let (name, fields): (String, [ArchiveValue.Field])
      switch value {
      case .enumeration(_, let given, let payload): (name, fields) = (given, payload)
      case .string(let given): (name, fields) = (given, [])
      default: throw misfit(value, node)
      }
      guard let index = entry.cases.firstIndex(where: { $0.key == name }) else {
        throw error(.mismatch, "\(entry.name) has no case \"\(name.prefix(80))\"")
      }
      Varint.append(UInt64(index), to: &bytes)
      try writeFields(fields, entry.cases[index].fields, of: entry.name)
    case .keyedValue:
      guard let fields = value.namedFields else { throw misfit(value, node) }
      try writeKeyed(fields)
    default:
      guard let fields = value.namedFields else { throw misfit(value, node) }
      if entry.fields.isEmpty { bytes.append(0) }
      try writeFields(fields, entry.fields, of: entry.name)
    }
  }

  private mutating func writeReference(_ value: ArchiveValue, _ node: Int32) throws {
    switch value {
    case .none: Varint.append(0, to: &bytes)
    case .reference(let number):
      guard number >= 0, number < objectCount else {
        throw error(
          .mismatch,
          "A reference points to object \(number), but the archive has only "
            + "\(PrintableText.count(objectCount, "object")), numbered from 0"
        )
      }
      Varint.append(UInt64(number) + 1, to: &bytes)
    default: throw misfit(value, node)
    }
  }

  /// Writes the fields of a struct, a case or an object by key. Each field must be present, and no others.
  mutating func writeFields(
    _ fields: [ArchiveValue.Field], _ entries: [FieldEntry], of type: String, isWhole: Bool = true
  ) throws {
    // Normally in their order; by key if they were rearranged.
    let byKey =
      isWhole && zip(fields, entries).allSatisfy { $0.key == $1.key }
      ? nil : Dictionary(fields.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
    if isWhole, fields.count > entries.count,
      let extra = fields.first(where: { field in !entries.contains { $0.key == field.key } })
    {
      throw error(.mismatch, "\(type) has no field \"\(extra.key.prefix(80))\"")
    }
    for (index, entry) in entries.enumerated() {
      guard let value = byKey.map({ $0[entry.key] }) ?? (index < fields.count ? fields[index].value : nil) else {
        throw error(.missingField, "\(type) needs a value for \"\(entry.key)\"")
      }
      try step(".\(entry.key)") { try $0.write(value, as: entry.node) }
    }
  }

  /// Writes the key, type, length and value of each field, then a zero.
  mutating func writeKeyed(_ fields: [ArchiveValue.Field]) throws {
    for field in fields {
      guard let key = keys[field.key], let (mark, value, index) = ArchiveMark.unmarked(field.value), mark == .type,
        wires.indices.contains(index)
      else {
        throw error(
          .mismatch, "The value under the key \"\(field.key.prefix(80))\" has no type, or the key isn't listed")
      }
      Varint.append(UInt64(key) + 1, to: &bytes)
      Varint.append(UInt64(index), to: &bytes)
      let start = bytes.count
      put(UInt32(0))
      let wire = wires[index]
      try step(".\(field.key)") { try $0.write(value, as: wire) }
      guard let length = UInt32(exactly: bytes.count - start - 4) else {
        throw error(.limit, "A value under a key takes more than 4 GiB")
      }
      withUnsafeBytes(of: length.littleEndian) { bytes.replaceSubrange(start..<start + 4, with: $0) }
    }
    Varint.append(0, to: &bytes)
  }

  // MARK: Telling

  private mutating func step(_ name: String, _ body: (inout ScriptWriter) throws -> Void) throws {
    path.append(name)
    try body(&self)
    path.removeLast()
  }

  func misfit(_ value: ArchiveValue, _ node: Int32) -> ArchiveError {
    error(.mismatch, "Expected \(schema.text(node)), found \(ValueLine(longest: 40, characters: 120).text(value))")
  }

  func error(_ code: ArchiveError.Code, _ message: String) -> ArchiveError {
    let place = path.filter { $0 != "?" }.joined()
    return ArchiveError(
      code, message, field: place.isEmpty ? nil : place.hasPrefix(".") ? String(place.dropFirst()) : place)
  }
}
