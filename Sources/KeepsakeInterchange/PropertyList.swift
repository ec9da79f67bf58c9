public import Foundation

/// What a property list holds: values in lists and dictionaries, as Apple's frameworks keep settings, levels and saved games.
///
///     let settings = try PropertyList(bytes)                   // binary or XML: by the bytes
///     let volume = settings["audio"]?["volume"]?.number
///     let bytes = try settings.encoded(as: .binary)
///
/// Pure values: equal files give equal trees on every platform. A list to which a binary file leads in several places is kept in memory once.
public enum PropertyList: Sendable {
  /// Binary files can say it, Foundation never does.
  case null
  /// A truth value.
  case bool(Bool)
  /// As wide as the binary format has. Foundation takes what fits into 64 bits, with or without a sign.
  case integer(Int128)
  /// A number of double precision.
  case number(Double)
  /// A number that takes 32 bits in a binary file. In XML it is a `number`.
  case float(Float)
  /// A text.
  case string(String)
  /// Bytes.
  case data(Data)
  /// To the second in XML, which has no more.
  case date(Date)
  /// The number of an object in a keyed archive: see `KeyedArchive`. In XML a dictionary with the one key `CF$UID`.
  case uid(UInt64)
  /// A list.
  case array([PropertyList])
  /// Elements in the order in which they stand. Binary files only.
  case set([PropertyList])
  /// Keys in the order in which they stand. Where a key stands twice the last one counts, as for other readers.
  case dictionary([Entry])

  /// A key of a dictionary with its value.
  public struct Entry: Sendable, Equatable {
    /// The entry's key.
    public var key: String
    /// The entry's value.
    public var value: PropertyList

    /// Makes an entry of a dictionary.
    public init(_ key: String, _ value: PropertyList) {
      self.key = key
      self.value = value
    }
  }

  /// How a property list is written.
  public enum Format: Sendable, Hashable, CaseIterable {
    /// `bplist00`: small and quick, and the only one that has everything.
    case binary
    /// For people. Has no null and no sets, and dates to the second.
    case xml
  }

  /// Reads a property list, binary or XML.
  ///
  /// - Throws: `PropertyListError`, with the place where it happened. No bytes whatever end the process, take memory beyond some hundred times their own, or
  ///   take longer than in proportion to their count.
  public init(_ data: Data, limits: PropertyListLimits = .standard) throws {
    switch try Self.format(of: data) {
    case .binary: self = try data.withUnsafeBytes { try BinaryReader.read($0, limits: limits) }
    case .xml: self = try XMLReader.read(data, limits: limits)
    }
  }

  /// In which format the bytes claim to be, by their beginning. Throws `PropertyListError` with `notAPropertyList` for any other.
  public static func format(of data: Data) throws -> Format {
    if data.starts(with: BinaryFormat.family) { return .binary }
    if XMLText.begins(data) { return .xml }
    let reason =
      data.isEmpty ? "The file is empty: what it held is lost" : "These bytes are neither a binary property list nor an XML one"
    throw PropertyListError(.notAPropertyList, reason, offset: 0)
  }

  /// The bytes of a file. Equal values, entries in the same order, give equal bytes.
  ///
  /// - Throws: `PropertyListError` with `unwritable` for what the format doesn't have, and `limit`; the message names the path.
  public func encoded(as format: Format, limits: PropertyListLimits = .standard) throws -> Data {
    switch format {
    case .binary: try BinaryWriter.write(self, limits: limits)
    case .xml: try XMLWriter.write(self, limits: limits)
    }
  }

  // MARK: Looking inside

  /// The value under a key of a dictionary. Takes time in proportion to the count of its keys.
  public subscript(key: String) -> PropertyList? {
    guard case .dictionary(let entries) = self else { return nil }
    return entries.last { $0.key == key }?.value
  }

  /// The element of an array; nil beyond its end.
  public subscript(index: Int) -> PropertyList? {
    guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
    return elements[index]
  }

  /// The text that it is; nil for anything else.
  public var string: String? { if case .string(let value) = self { value } else { nil } }
  /// The truth value that it is; nil for anything else.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The bytes that it is; nil for anything else.
  public var data: Data? { if case .data(let value) = self { value } else { nil } }
  /// The date that it is; nil for anything else.
  public var date: Date? { if case .date(let value) = self { value } else { nil } }
  /// The number of an object that it is; nil for anything else.
  public var uid: UInt64? { if case .uid(let value) = self { value } else { nil } }
  /// The list that it is; nil for anything else.
  public var array: [PropertyList]? { if case .array(let value) = self { value } else { nil } }
  /// The entries of the dictionary that it is; nil for anything else.
  public var dictionary: [Entry]? { if case .dictionary(let value) = self { value } else { nil } }
  /// nil for what takes more than 64 bits, too.
  public var integer: Int? { if case .integer(let value) = self { Int(exactly: value) } else { nil } }

  /// Any kind of number, rounded where it is an integer beyond 53 bits.
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
  /// Not-a-number equals itself. Texts and keys are equal if their bytes are: two spellings of one letter are two texts. Dictionaries are equal if the same keys have equal values, in whatever order; sets if they have the same elements in the same order.
  ///
  /// Calls itself for each level, of which a file has at most `PropertyListLimits.depth`.
  public static func == (a: PropertyList, b: PropertyList) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.bool(let x), .bool(let y)): x == y
    case (.integer(let x), .integer(let y)): x == y
    case (.number(let x), .number(let y)): x == y || x.isNaN && y.isNaN
    case (.float(let x), .float(let y)): x == y || x.isNaN && y.isNaN
    case (.string(let x), .string(let y)): ExactText(x) == ExactText(y)
    case (.data(let x), .data(let y)): x == y
    case (.date(let x), .date(let y)): x == y || x.timeIntervalSinceReferenceDate.isNaN && y.timeIntervalSinceReferenceDate.isNaN
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

  /// The values by key, for dictionaries in which much is looked up.
  static func index(_ entries: [Entry]) -> [String: PropertyList] {
    Dictionary(entries.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
  }
}

extension PropertyList: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int) { self = .integer(Int128(value)) }
  public init(floatLiteral value: Double) { self = .number(value) }
  public init(arrayLiteral elements: PropertyList...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, PropertyList)...) { self = .dictionary(elements.map { Entry($0, $1) }) }
}
