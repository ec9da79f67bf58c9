public import Foundation

/// The contents of a property list: values in lists and dictionaries, as Apple's frameworks store settings, levels and
/// saved games.
///
///     let settings = try PropertyList(bytes)                   // binary or XML: by the bytes
///     let volume = settings["audio"]?["volume"]?.number
///     let bytes = try settings.encoded(as: .binary)
///
/// A pure value: equal files give equal trees on every platform. A list that a binary file refers to several times is
/// kept in memory once.
public enum PropertyList: Sendable {
  /// Null, which is possible in binary files but never written by Foundation.
  case null
  /// A Boolean.
  case bool(Bool)
  /// An integer of up to 128 bits, the maximum of the binary format. Foundation reads integers that fit into 64 bits,
  /// signed or unsigned.
  case integer(Int128)
  /// A double-precision number.
  case number(Double)
  /// A number that takes 32 bits in a binary file. In XML it is read as a `number`.
  case float(Float)
  /// A text.
  case string(String)
  /// Bytes.
  case data(Data)
  /// A date. XML has only whole seconds.
  case date(Date)
  /// The number of an object in a `KeyedArchive`. In XML, a dictionary with the single key `CF$UID`.
  case uid(UInt64)
  /// A list.
  case array([PropertyList])
  /// Elements in the order of the file. Binary files only.
  case set([PropertyList])
  /// Entries in the order of the file. If a key occurs twice, the last value is used, as in other readers.
  case dictionary([Entry])

  /// A key of a dictionary with its value.
  public struct Entry: Sendable, Equatable {
    /// The entry's key.
    public var key: String
    /// The entry's value.
    public var value: PropertyList

    /// Creates an entry of a dictionary.
    ///
    /// - Parameters:
    ///   - key: The entry's key.
    ///   - value: The entry's value.
    public init(_ key: String, _ value: PropertyList) {
      self.key = key
      self.value = value
    }
  }

  /// The format in which a property list is written.
  public enum Format: Sendable, Hashable, CaseIterable {
    /// `bplist00`: small and fast, and the only format that supports all values.
    case binary
    /// For people. Has no null and no sets, and dates only in whole seconds.
    case xml
  }

  /// Reads a property list, binary or XML.
  ///
  /// Whatever the bytes are, reading never ends the process, and takes at most some hundred times their size in memory
  /// and time in proportion to their size.
  ///
  /// - Parameters:
  ///   - data: The bytes of the file.
  ///   - limits: The limits that the file must keep.
  /// - Throws: `PropertyListError` with the location: `notAPropertyList`, `damaged`, `unsupported`, `cycle` or `limit`.
  public init(_ data: Data, limits: PropertyListLimits = .standard) throws {
    switch try Self.format(of: data) {
    case .binary: self = try data.withUnsafeBytes { try BinaryReader.read($0, limits: limits) }
    case .xml: self = try XMLReader.read(data, limits: limits)
    }
  }

  /// Returns the format that the first bytes indicate. Doesn't read the rest.
  ///
  /// - Parameter data: The bytes of the file.
  /// - Returns: The format.
  /// - Throws: `PropertyListError` with `notAPropertyList` if the bytes match neither format, or if there are none.
  public static func format(of data: Data) throws -> Format {
    if data.starts(with: BinaryFormat.family) { return .binary }
    if XMLText.begins(data) { return .xml }
    let reason =
      data.isEmpty
      ? "The file is empty: its contents are lost" : "These bytes are neither a binary property list nor an XML one"
    throw PropertyListError(.notAPropertyList, reason, offset: 0)
  }

  /// How many bytes at the end of a binary property list tell where everything in it is.
  package static let trailerBytes = BinaryFormat.trailerBytes

  /// Checks the end of a binary property list, before a file of that size is read as a whole.
  ///
  /// - Parameters:
  ///   - trailer: The last `trailerBytes` bytes.
  ///   - offset: Where in the file they begin.
  /// - Throws: `PropertyListError` with `damaged`, if no binary property list ends like that.
  package static func check(trailer: Data, at offset: Int) throws {
    guard trailer.count == trailerBytes else {
      throw PropertyListError(.damaged, "The file was cut off", offset: offset)
    }
    _ = try trailer.withUnsafeBytes { try BinaryTrailer(trailer: $0, at: offset) }
  }

  /// Returns the bytes of a file. Equal values with entries in the same order give equal bytes.
  ///
  /// - Parameters:
  ///   - format: The format.
  ///   - limits: The limits that the file must keep.
  /// - Returns: The bytes.
  /// - Throws: `PropertyListError` with `unwritable`, and the value's path, for values that the format doesn't have;
  ///   with `limit` beyond the limits.
  public func encoded(as format: Format, limits: PropertyListLimits = .standard) throws -> Data {
    switch format {
    case .binary: try BinaryWriter.write(self, limits: limits)
    case .xml: try XMLWriter.write(self, limits: limits)
    }
  }

  // MARK: Looking inside

  /// The value under a key of a dictionary. Takes time in proportion to the number of keys.
  ///
  /// - Parameter key: The key.
  /// - Returns: The value; nil if there is none, or this isn't a dictionary.
  public subscript(key: String) -> PropertyList? {
    guard case .dictionary(let entries) = self else { return nil }
    return entries.last { $0.key == key }?.value
  }

  /// The element of an array; nil if the index is out of range.
  ///
  /// - Parameter index: The position, from 0.
  /// - Returns: The element; nil if there is none, or this isn't an array.
  public subscript(index: Int) -> PropertyList? {
    guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
    return elements[index]
  }

  /// The value if it is a text; otherwise nil.
  public var string: String? { if case .string(let value) = self { value } else { nil } }
  /// The value if it is a Boolean; otherwise nil.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The value if it is data; otherwise nil.
  public var data: Data? { if case .data(let value) = self { value } else { nil } }
  /// The value if it is a date; otherwise nil.
  public var date: Date? { if case .date(let value) = self { value } else { nil } }
  /// The number if the value is a UID; otherwise nil.
  public var uid: UInt64? { if case .uid(let value) = self { value } else { nil } }
  /// The elements if the value is an array; otherwise nil.
  public var array: [PropertyList]? { if case .array(let value) = self { value } else { nil } }
  /// The entries if the value is a dictionary; otherwise nil.
  public var dictionary: [Entry]? { if case .dictionary(let value) = self { value } else { nil } }
  /// The value if it is an integer that fits into Int; otherwise nil.
  public var integer: Int? { if case .integer(let value) = self { Int(exactly: value) } else { nil } }

  /// The value of any kind of number, rounded if it is an integer of more than 53 bits.
  public var number: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    case .float(let value): Double(value)
    default: nil
    }
  }
}

extension PropertyList: Equatable {
  /// Compares property lists. NaN equals itself. Texts and keys are equal if their bytes are: two encodings of a letter
  /// are different texts. Dictionaries are equal if the same keys have equal values, in any order; sets if they have
  /// the same elements in the same order.
  ///
  /// Recursive for each level, of which a file has at most `PropertyListLimits.depth`.
  public static func == (a: PropertyList, b: PropertyList) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.bool(let x), .bool(let y)): x == y
    case (.integer(let x), .integer(let y)): x == y
    case (.number(let x), .number(let y)): x == y || x.isNaN && y.isNaN
    case (.float(let x), .float(let y)): x == y || x.isNaN && y.isNaN
    case (.string(let x), .string(let y)): ExactText(x) == ExactText(y)
    case (.data(let x), .data(let y)): x == y
    case (.date(let x), .date(let y)):
      x == y || x.timeIntervalSinceReferenceDate.isNaN && y.timeIntervalSinceReferenceDate.isNaN
    case (.uid(let x), .uid(let y)): x == y
    case (.array(let x), .array(let y)), (.set(let x), .set(let y)): x == y
    case (.dictionary(let x), .dictionary(let y)): same(x, y)
    default: false
    }
  }

  private static func same(_ a: [Entry], _ b: [Entry]) -> Bool {
    if a.count == b.count, zip(a, b).allSatisfy({ ExactText($0.key) == ExactText($1.key) }) {
      return zip(a, b).allSatisfy { $0.value == $1.value }
    }
    func exactly(_ entries: [Entry]) -> [ExactText: PropertyList] {
      Dictionary(entries.map { (ExactText($0.key), $0.value) }, uniquingKeysWith: { _, last in last })
    }
    let (left, right) = (exactly(a), exactly(b))
    return left.count == right.count && left.allSatisfy { key, value in right[key] == value }
  }

  /// Returns the values by key, for dictionaries with many lookups.
  static func index(_ entries: [Entry]) -> [String: PropertyList] {
    Dictionary(entries.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
  }
}

extension PropertyList: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int) { self = .integer(Int128(value)) }
  public init(floatLiteral value: Double) { self = .number(value) }
  public init(arrayLiteral elements: PropertyList...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, PropertyList)...) {
    self = .dictionary(elements.map { Entry($0, $1) })
  }
}
