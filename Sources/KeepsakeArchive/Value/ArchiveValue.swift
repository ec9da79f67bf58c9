public import Foundation

/// A saved value without its Swift type, from `KeyedArchive.tree()` or from an `ArchiveInspection` of the module
/// KeepsakeInspection.
///
/// Values nest as deeply as in the archive, up to `ArchiveLimits.depth` times the levels that valid types put in
/// between. Comparing and printing them doesn't recurse, and code that traverses them shouldn't either.
public enum ArchiveValue: Sendable {
  /// An empty optional.
  case none
  /// A Boolean.
  case bool(Bool)
  /// An integer in Int64's range.
  case integer(Int64)
  /// An integer beyond Int64's range.
  case unsigned(UInt64)
  /// A floating-point number of single or double precision.
  case number(Double)
  /// A decimal number, or an integer of more than 64 bits, in digits; "NaN" for a Decimal that is NaN.
  case decimal(String)
  /// A text.
  case string(String)
  /// Bytes.
  case data(Data)
  /// A point in time.
  case date(Date)
  /// A UUID.
  case uuid(UUID)
  /// A URL, as text.
  case url(String)
  /// A vector, as its numbers.
  case vector([ArchiveValue])
  /// An array.
  case array([ArchiveValue])
  /// Elements in the order in which they were saved.
  case set([ArchiveValue])
  /// A dictionary, in the order in which it was saved.
  case dictionary([Pair])
  /// A struct or a hand-written value; `type` is an index into the archive's types.
  case structure(type: Int, [Field])
  /// A case of an enum with its payload; `type` is an index into the archive's types.
  indirect case enumeration(type: Int, case: String, [Field])
  /// The number of an object, found among the objects of the same source. Shared and cyclic references have the same
  /// number.
  case reference(Int)

  /// One field with its value.
  public struct Field: Sendable, Equatable {
    /// The field's key.
    public var key: String
    /// The field's value.
    public var value: ArchiveValue

    /// Creates a field.
    ///
    /// - Parameters:
    ///   - key: The field's key.
    ///   - value: The field's value.
    public init(key: String, value: ArchiveValue) {
      self.key = key
      self.value = value
    }
  }

  /// One entry of a dictionary.
  public struct Pair: Sendable, Equatable {
    /// The entry's key.
    public var key: ArchiveValue
    /// The entry's value.
    public var value: ArchiveValue

    /// Creates an entry.
    ///
    /// - Parameters:
    ///   - key: The entry's key.
    ///   - value: The entry's value.
    public init(key: ArchiveValue, value: ArchiveValue) {
      self.key = key
      self.value = value
    }
  }

  /// An object of a class.
  public struct Object: Sendable, Equatable {
    /// An index into the archive's types.
    public var type: Int
    /// The object's fields, in the order of the archive.
    public var fields: [Field]

    package init(type: Int, fields: [Field]) { (self.type, self.fields) = (type, fields) }
  }

  /// The value under a key of a struct or enum case, or under a string key of a dictionary.
  ///
  /// - Parameter key: The key to look up.
  /// - Returns: The value; nil if there is no such key, and for any other kind of value.
  public subscript(key: String) -> ArchiveValue? {
    switch self {
    case .structure(_, let fields), .enumeration(_, _, let fields): fields.first { $0.key == key }?.value
    case .dictionary(let pairs): pairs.first { $0.key == .string(key) }?.value
    default: nil
    }
  }
}

extension ArchiveValue: Equatable {
  /// Compares without recursion. NaN equals itself.
  public static func == (a: ArchiveValue, b: ArchiveValue) -> Bool {
    guard a.agrees(with: b) else { return false }
    if a.childCount == nil { return true }
    var left = ValueWalk(a)
    var right = ValueWalk(b)
    while true {
      switch (left.next(), right.next()) {
      case (nil, nil): return true
      case (.end, .end): continue
      case (.value(let x, let first), .value(let y, let second)):
        guard first == second, x.agrees(with: y) else { return false }
      default: return false
      }
    }
  }

  /// Returns whether both values are the same, apart from their children.
  package func agrees(with other: ArchiveValue) -> Bool {
    switch self {
    case .none: if case .none = other { return true }
    case .bool(let a): if case .bool(let b) = other { return a == b }
    case .integer(let a): if case .integer(let b) = other { return a == b }
    case .unsigned(let a): if case .unsigned(let b) = other { return a == b }
    case .number(let a): if case .number(let b) = other { return a == b || a.isNaN && b.isNaN }
    case .decimal(let a): if case .decimal(let b) = other { return a == b }
    // By code points: in a file, two encodings of a letter are different texts.
    case .string(let a): if case .string(let b) = other { return a.utf8.elementsEqual(b.utf8) }
    case .data(let a): if case .data(let b) = other { return a == b }
    case .date(let a):
      if case .date(let b) = other {
        return a == b || a.timeIntervalSinceReferenceDate.isNaN && b.timeIntervalSinceReferenceDate.isNaN
      }
    case .uuid(let a): if case .uuid(let b) = other { return a == b }
    case .url(let a): if case .url(let b) = other { return a == b }
    case .vector(let a): if case .vector(let b) = other { return a.count == b.count }
    case .array(let a): if case .array(let b) = other { return a.count == b.count }
    case .set(let a): if case .set(let b) = other { return a.count == b.count }
    case .dictionary(let a): if case .dictionary(let b) = other { return a.count == b.count }
    case .structure(let a, let fields):
      if case .structure(let b, let others) = other { return a == b && fields.count == others.count }
    case .enumeration(let a, let name, let fields):
      if case .enumeration(let b, let otherName, let others) = other {
        return a == b && name == otherName && fields.count == others.count
      }
    case .reference(let a): if case .reference(let b) = other { return a == b }
    }
    return false
  }
}

extension ArchiveValue: CustomStringConvertible {
  /// The value on one line, truncated if it is long. (Swift's default description recurses.)
  public var description: String { ValueLine(longest: 50, characters: 1_000).text(self) }
}
