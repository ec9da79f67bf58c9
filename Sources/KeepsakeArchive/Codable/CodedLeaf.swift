import Foundation

/// The first byte of each value in a coded tree. Described in docs/FORMAT.md, "Coded value".
enum CodedTag: UInt8 {
  case null = 0
  case no = 1
  case yes = 2
  case integer = 3
  case unsigned = 4
  case int128 = 5
  case uint128 = 6
  case float = 7
  case double = 8
  case string = 9
  case data = 10
  case date = 11
  case uuid = 12
  case url = 13
  case decimal = 14
  case array = 15
  case object = 16
}

/// A value of a coded tree that contains no others. The large and rare cases are indirect, so that the others take half
/// the memory.
enum CodedLeaf {
  case null
  case bool(Bool)
  case integer(Int64)
  /// Only numbers that don't fit into Int64, and likewise for the wider types, so that each number has exactly one
  /// form.
  case unsigned(UInt64)
  indirect case int128(Int128)
  indirect case uint128(UInt128)
  case float(Float)
  case double(Double)
  case string(String)
  case data(Data)
  case date(Date)
  case uuid(UUID)
  case url(String)
  indirect case decimal(Decimal)

  init(_ value: some FixedWidthInteger) {
    if let value = Int64(exactly: value) {
      self = .integer(value)
    } else if let value = UInt64(exactly: value) {
      self = .unsigned(value)
    } else if let value = Int128(exactly: value) {
      self = .int128(value)
    } else {
      self = .uint128(UInt128(truncatingIfNeeded: value))
    }
  }

  // MARK: Bytes

  func append(to bytes: inout [UInt8]) throws {
    switch self {
    case .null: Self.append(.null, to: &bytes)
    case .bool(let value): Self.append(value ? .yes : .no, to: &bytes)
    case .integer(let value):
      Self.append(.integer, to: &bytes)
      Varint.append(UInt64(bitPattern: (value << 1) ^ (value >> 63)), to: &bytes)
    case .unsigned(let value):
      Self.append(.unsigned, to: &bytes)
      Varint.append(value, to: &bytes)
    case .int128(let value): Self.append(.int128, value, to: &bytes)
    case .uint128(let value): Self.append(.uint128, value, to: &bytes)
    case .float(let value): Self.append(.float, value.bitPattern, to: &bytes)
    case .double(let value): Self.append(.double, value.bitPattern, to: &bytes)
    case .date(let value): Self.append(.date, value.timeIntervalSinceReferenceDate.bitPattern, to: &bytes)
    case .string(let text):
      Self.append(.string, to: &bytes)
      Varint.append(text, to: &bytes)
    case .url(let text):
      Self.append(.url, to: &bytes)
      Varint.append(text, to: &bytes)
    case .data(let data):
      Self.append(.data, to: &bytes)
      Varint.append(UInt64(data.count), to: &bytes)
      bytes.append(contentsOf: data)
    case .uuid(let value):
      Self.append(.uuid, to: &bytes)
      withUnsafeBytes(of: value.uuid) { bytes.append(contentsOf: $0) }
    case .decimal(let value):
      let digits = try DecimalBytes.make(value)
      Self.append(.decimal, to: &bytes)
      Varint.append(UInt64(digits.count), to: &bytes)
      bytes += digits
    }
  }

  private static func append(_ tag: CodedTag, to bytes: inout [UInt8]) { bytes.append(tag.rawValue) }

  private static func append(_ tag: CodedTag, _ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
    bytes.append(tag.rawValue)
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Skips and checks the bytes after the tag. For lists and objects there are none here.
  static func check(_ tag: CodedTag, _ input: inout ByteCursor, stringLimit: Int) throws {
    switch tag {
    case .string, .url:
      let bytes = try input.take(try input.count(limit: stringLimit, "bytes in a string"))
      guard bytes.allSatisfy({ $0 < 0x80 }) || String(validating: bytes, as: UTF8.self) != nil else {
        throw input.damaged("A string is not valid UTF-8")
      }
    case .data: _ = try input.take(try input.count(limit: stringLimit, "bytes of data"))
    default: _ = try CodedLeaf(tag, &input, stringLimit: stringLimit)
    }
  }

  /// Reads the value after the tag. Returns nil for the tags of lists and objects.
  init?(_ tag: CodedTag, _ input: inout ByteCursor, stringLimit: Int) throws {
    switch tag {
    case .null: self = .null
    case .no: self = .bool(false)
    case .yes: self = .bool(true)
    case .integer: self = .integer(try input.signed())
    case .unsigned: self = .unsigned(try input.varint())
    case .int128: self = .int128(try input.fixed(Int128.self))
    case .uint128: self = .uint128(try input.fixed(UInt128.self))
    case .float: self = .float(Float(bitPattern: try input.fixed(UInt32.self)))
    case .double: self = .double(Double(bitPattern: try input.fixed(UInt64.self)))
    case .date: self = .date(Date(timeIntervalSinceReferenceDate: Double(bitPattern: try input.fixed(UInt64.self))))
    case .string: self = .string(try input.string(limit: stringLimit))
    case .url: self = .url(try input.string(limit: stringLimit))
    case .data: self = .data(Data(try input.take(try input.count(limit: stringLimit, "bytes of data"))))
    case .uuid: self = .uuid(UUID(uuid: try input.take(16).loadUnaligned(as: uuid_t.self)))
    case .decimal:
      guard let value = DecimalBytes.read(try input.take(try input.count(limit: stringLimit, "bytes of a number")))
      else {
        throw input.damaged("A saved decimal number is invalid")
      }
      self = .decimal(value)
    case .array, .object: return nil
    }
  }

  // MARK: What it can be read as

  /// The value's text for messages.
  var text: String {
    switch self {
    case .null: "nil"
    case .bool(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .unsigned(let value): "\(value)"
    case .int128(let value): "\(value)"
    case .uint128(let value): "\(value)"
    case .float(let value): "\(value)"
    case .double(let value): "\(value)"
    case .decimal(let value): "\(value)"
    case .string: "a string"
    case .data: "data"
    case .date: "a date"
    case .uuid: "a UUID"
    case .url: "a URL"
    }
  }

  var isNumber: Bool {
    switch self {
    case .integer, .unsigned, .int128, .uint128, .float, .double, .decimal: true
    default: false
    }
  }

  /// Returns the value as an integer if it is a number of exactly that value.
  func integer<T: FixedWidthInteger>(_ type: T.Type) -> T? {
    switch self {
    case .integer(let value): T(exactly: value)
    case .unsigned(let value): T(exactly: value)
    case .int128(let value): T(exactly: value)
    case .uint128(let value): T(exactly: value)
    case .float(let value): T(exactly: value)
    case .double(let value): T(exactly: value)
    case .decimal(let value): T(value.description)
    default: nil
    }
  }

  /// The value as a Double. Integers must be represented exactly; decimals are rounded to the nearest Double.
  var double: Double? {
    switch self {
    case .integer(let value): Double(exactly: value)
    case .unsigned(let value): Double(exactly: value)
    case .int128(let value): Double(exactly: value)
    case .uint128(let value): Double(exactly: value)
    case .float(let value): Double(value)
    case .double(let value): value
    case .date(let value): value.timeIntervalSinceReferenceDate
    case .decimal(let value): Double(value.description)
    default: nil
    }
  }

  var value: ArchiveValue {
    switch self {
    case .null: .none
    case .bool(let value): .bool(value)
    case .integer(let value): .integer(value)
    case .unsigned(let value): .unsigned(value)
    case .int128(let value): ValueParser.wide(value)
    case .uint128(let value): ValueParser.wide(value)
    case .float(let value): .number(Double(value))
    case .double(let value): .number(value)
    case .string(let text): .string(text)
    case .data(let data): .data(data)
    case .date(let date): .date(date)
    case .uuid(let uuid): .uuid(uuid)
    case .url(let text): .url(text)
    case .decimal(let value): .decimal("\(value)")
    }
  }
}

extension CodedLeaf {
  /// The value, with a mark if the value alone doesn't show which kind of leaf it is.
  var exactValue: ArchiveValue {
    switch self {
    case .float: ArchiveMark.marked(.float, value)
    case .decimal: ArchiveMark.marked(.decimal, value)
    default: value
    }
  }
}

extension ByteCursor {
  mutating func take(_ count: Int) throws -> UnsafeRawBufferPointer {
    guard count <= end - offset else { throw damaged("The archive ends in the middle of a value") }
    defer { offset += count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  mutating func fixed<T: FixedWidthInteger & BitwiseCopyable>(_ type: T.Type) throws -> T {
    T(littleEndian: try take(MemoryLayout<T>.size).loadUnaligned(as: T.self))
  }
}
