public import Foundation

/// A saved value without its Swift type: what `keepsake inspect` shows.
public indirect enum ArchiveValue: Sendable, Equatable {
  /// An empty optional.
  case none
  case bool(Bool)
  case integer(Int64)
  /// An integer beyond Int64's range.
  case unsigned(UInt64)
  case number(Double)
  /// A decimal number, or an integer that takes more than 64 bits, in digits; "NaN" for a Decimal that is none.
  case decimal(String)
  case string(String)
  case data(Data)
  case date(Date)
  case uuid(UUID)
  case url(String)
  case vector([ArchiveValue])
  case array([ArchiveValue])
  /// Elements in the order in which they were saved.
  case set([ArchiveValue])
  case dictionary([Pair])
  /// A struct or a hand-written value; `type` is an index into the archive's types.
  case structure(type: Int, [Field])
  case enumeration(type: Int, case: String, [Field])
  /// The number of an object: see `ArchiveInspection.objects`. Shared and cyclic references are the same number.
  case reference(Int)

  public struct Field: Sendable, Equatable {
    public var key: String
    public var value: ArchiveValue
  }

  public struct Pair: Sendable, Equatable {
    public var key: ArchiveValue
    public var value: ArchiveValue
  }

  /// The value under a key of a struct or enum case, or at a string key of a dictionary.
  public subscript(key: String) -> ArchiveValue? {
    switch self {
    case .structure(_, let fields), .enumeration(_, _, let fields): fields.first { $0.key == key }?.value
    case .dictionary(let pairs): pairs.first { $0.key == .string(key) }?.value
    default: nil
    }
  }
}
