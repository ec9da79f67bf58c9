import Foundation

/// Writes a binary property list. Equal texts, numbers and dates are written once, as in Foundation. Lists are written
/// in the order of their entries, level by level, so that no recursion is needed and equal trees give equal bytes.
struct BinaryWriter {
  /// The objects to be written, by number. Lists append their contents.
  private var objects: [PropertyList] = []
  /// The numbers of the contents of each list, one list after the other.
  private var references: [Int] = []
  private var texts: [ExactText: Int] = [:]
  private var integers: [Int128: Int] = [:]
  /// By kind and bits.
  private var scalars: [Scalar: Int] = [:]
  private let limits: PropertyListLimits
  private var output: [UInt8] = []

  private struct Scalar: Hashable {
    let kind: UInt8
    let bits: UInt64
  }

  static func write(_ root: PropertyList, limits: PropertyListLimits) throws -> Data {
    var writer = BinaryWriter(limits: limits)
    try writer.collect(root)
    return try writer.assemble()
  }

  private init(limits: PropertyListLimits) {
    self.limits = limits
  }

  // MARK: Numbering

  private mutating func collect(_ root: PropertyList) throws {
    _ = try number(root)
    var next = 0
    while next < objects.count {
      switch objects[next] {
      case .array(let elements), .set(let elements):
        for element in elements { references.append(try number(element)) }
      case .dictionary(let entries):
        for entry in entries { references.append(try number(.string(entry.key))) }
        for entry in entries { references.append(try number(entry.value)) }
      default: break
      }
      next += 1
    }
  }

  private mutating func number(_ value: PropertyList) throws -> Int {
    let new = objects.count
    let known: Int?
    switch value {
    case .string(let text): known = Self.known(ExactText(text), in: &texts, new)
    case .integer(let integer): known = Self.known(integer, in: &integers, new)
    case .null: known = Self.known(Scalar(kind: 0, bits: 0), in: &scalars, new)
    case .bool(let bool): known = Self.known(Scalar(kind: 1, bits: bool ? 1 : 0), in: &scalars, new)
    case .number(let number): known = Self.known(Scalar(kind: 2, bits: number.bitPattern), in: &scalars, new)
    case .float(let number): known = Self.known(Scalar(kind: 3, bits: UInt64(number.bitPattern)), in: &scalars, new)
    case .date(let date):
      known = Self.known(Scalar(kind: 4, bits: date.timeIntervalSinceReferenceDate.bitPattern), in: &scalars, new)
    case .uid(let uid): known = Self.known(Scalar(kind: 5, bits: uid), in: &scalars, new)
    case .data, .array, .set, .dictionary: known = nil
    }
    if let known { return known }
    guard new < limits.values else {
      throw PropertyListError(
        .limit, "The property list has more than \(limits.values) values; a shared list counts each time it occurs")
    }
    objects.append(value)
    return new
  }

  private static func known<Key: Hashable>(_ key: Key, in table: inout [Key: Int], _ new: Int) -> Int? {
    if let number = table[key] { return number }
    table[key] = new
    return nil
  }

  // MARK: Bytes

  private mutating func assemble() throws -> Data {
    let referenceBytes = Self.width(of: objects.count - 1)
    output.reserveCapacity(objects.count * 8 + references.count * referenceBytes)
    output += BinaryFormat.magic
    var offsets: [Int] = []
    offsets.reserveCapacity(objects.count)
    var nextReference = 0
    for object in objects {
      offsets.append(output.count)
      let count = try put(object)
      for reference in references[nextReference..<nextReference + count] { put(reference, width: referenceBytes) }
      nextReference += count
      guard output.count <= limits.bytes else {
        throw PropertyListError(.limit, "The property list takes more than \(limits.bytes) bytes")
      }
    }
    let table = output.count
    let offsetBytes = Self.width(of: table)
    for offset in offsets { put(offset, width: offsetBytes) }
    output += [0, 0, 0, 0, 0, 0, UInt8(offsetBytes), UInt8(referenceBytes)]
    put(objects.count, width: 8)
    put(0, width: 8)
    put(table, width: 8)
    return Data(output)
  }

  /// Writes a value and returns the number of references that follow it.
  private mutating func put(_ value: PropertyList) throws -> Int {
    switch value {
    case .null: output.append(0x00)
    case .bool(let value): output.append(value ? 0x09 : 0x08)
    case .integer(let value): put(value)
    case .float(let value):
      output.append(0x22)
      put(Int(value.bitPattern), width: 4)
    case .number(let value):
      output.append(0x23)
      put(bits: value.bitPattern)
    case .date(let value):
      output.append(0x33)
      put(bits: value.timeIntervalSinceReferenceDate.bitPattern)
    case .data(let value):
      mark(.data, value.count)
      output += value
    case .string(var text):
      let isASCII = text.withUTF8 { $0.allSatisfy { $0 < 0x80 } }
      mark(isASCII ? .ascii : .utf16, isASCII ? text.utf8.count : text.utf16.count)
      if isASCII {
        output += text.utf8
      } else {
        for unit in text.utf16 {
          output.append(UInt8(unit >> 8))
          output.append(UInt8(truncatingIfNeeded: unit))
        }
      }
    case .uid(let value):
      let width = value > UInt64(UInt32.max) ? 8 : Self.width(of: Int(value))
      output.append(0x80 | UInt8(width - 1))
      for index in (0..<width).reversed() { output.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
    case .array(let elements):
      mark(.array, elements.count)
      return elements.count
    case .set(let elements):
      mark(.set, elements.count)
      return elements.count
    case .dictionary(let entries):
      mark(.dictionary, entries.count)
      return 2 * entries.count
    }
    return 0
  }

  private mutating func mark(_ kind: BinaryFormat.Kind, _ count: Int) {
    output.append(kind.rawValue << 4 | UInt8(min(count, Int(BinaryFormat.longCount))))
    if count >= Int(BinaryFormat.longCount) { put(Int128(count)) }
  }

  private mutating func put(_ value: Int128) {
    if let short = UInt32(exactly: value) {
      let size = short <= 0xFF ? 0 : short <= 0xFFFF ? 1 : 2
      output.append(0x10 | UInt8(size))
      put(Int(short), width: 1 << size)
    } else if let middle = Int64(exactly: value) {
      output.append(0x13)
      put(bits: UInt64(bitPattern: middle))
    } else {
      output.append(0x14)
      put(bits: UInt64(truncatingIfNeeded: value >> 64))
      put(bits: UInt64(truncatingIfNeeded: value))
    }
  }

  private mutating func put(_ value: Int, width: Int) {
    for index in (0..<width).reversed() { output.append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
  }

  private mutating func put(bits: UInt64) {
    withUnsafeBytes(of: bits.bigEndian) { output += $0 }
  }

  /// 1, 2, 4 or 8 bytes, the widths that all readers accept.
  private static func width(of largest: Int) -> Int {
    largest <= 0xFF ? 1 : largest <= 0xFFFF ? 2 : largest <= 0xFFFF_FFFF ? 4 : 8
  }
}
