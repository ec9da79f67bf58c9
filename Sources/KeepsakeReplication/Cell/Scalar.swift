package import Foundation

/// A single value in a cell, with a total order over all values.
///
/// Whole and fractional numbers compare as numbers; a whole number ranks just below the equal fraction, so that the
/// order is total. Numbers rank below strings, strings below bytes. Strings compare by their UTF-8 bytes, so that every
/// device, database and language agrees. Not-a-number is refused when a value enters a cell.
package enum Scalar: Sendable {
  case int(Int64)
  case double(Double)
  case string(String)
  case data(Data)

  /// False for not-a-number, which can't be ordered.
  package var isOrdered: Bool {
    if case .double(let value) = self { return !value.isNaN }
    return true
  }

  /// The approximate size of the value in bytes, for limits.
  package var size: Int {
    switch self {
    case .int, .double: 8
    case .string(let text): text.utf8.count
    case .data(let data): data.count
    }
  }

  /// The value with negative zero replaced by zero: the two are equal, so joins could not choose between them.
  var normalized: Scalar {
    if case .double(let value) = self, value == 0 { return .double(0) }
    return self
  }

  private var rank: Int {
    switch self {
    case .int, .double: 0
    case .string: 1
    case .data: 2
    }
  }
}

extension Scalar: Hashable {
  package static func == (left: Self, right: Self) -> Bool {
    switch (left, right) {
    case (.int(let left), .int(let right)): left == right
    case (.double(let left), .double(let right)): left == right
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.data(let left), .data(let right)): left == right
    default: false
    }
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(rank)
    switch self {
    case .int(let value): hasher.combine(value)
    case .double(let value): hasher.combine(value)
    case .string(let text): hasher.combine(text)  // coarser than equality by bytes, and so allowed
    case .data(let data): hasher.combine(data)
    }
  }
}

extension Scalar: Comparable {
  package static func < (left: Self, right: Self) -> Bool {
    switch (left, right) {
    case (.int(let left), .int(let right)): left < right
    case (.double(let left), .double(let right)): left < right
    case (.int(let whole), .double(let fraction)): compare(whole, fraction) <= 0
    case (.double(let fraction), .int(let whole)): compare(whole, fraction) > 0
    case (.string(let left), .string(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
    case (.data(let left), .data(let right)): left.lexicographicallyPrecedes(right)
    default: left.rank < right.rank
    }
  }

  /// Returns a number below, at or above zero if `whole` is below, equal to or above `fraction`, without rounding
  /// either.
  private static func compare(_ whole: Int64, _ fraction: Double) -> Int {
    // 2^63 is exact as a Double; everything in between converts to Int64 after rounding down.
    if fraction >= 0x1p63 { return -1 }
    if fraction < -0x1p63 { return 1 }
    let floor = fraction.rounded(.down)
    guard let below = Int64(exactly: floor) else { return 0 }  // only not-a-number, which never gets here
    if whole != below { return whole < below ? -1 : 1 }
    return floor == fraction ? 0 : -1
  }
}

extension Scalar: Codable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case int, double, string, data
  }

  package init(from decoder: any Decoder) throws {
    let (container, key) = try decoder.decodeCase(by: CodingKeys.self)
    switch key {
    case .int: self = .int(try container.decode(Int64.self, forKey: key))
    case .string: self = .string(try container.decode(String.self, forKey: key))
    case .data: self = .data(try container.decode(Data.self, forKey: key))
    case .double:
      // JSON has no infinities, so they are written as words.
      if let word = try? container.decode(String.self, forKey: key) {
        switch word {
        case "inf": self = .double(.infinity)
        case "-inf": self = .double(-.infinity)
        default:
          throw DecodingError.dataCorruptedError(
            forKey: key, in: container, debugDescription: "expected a number, inf or -inf, found \"\(word.prefix(40))\""
          )
        }
        return
      }
      let value = try container.decode(Double.self, forKey: key)
      guard !value.isNaN else {
        throw DecodingError.dataCorruptedError(forKey: key, in: container, debugDescription: "not a number")
      }
      self = Scalar.double(value).normalized
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .int(let value): try container.encode(value, forKey: .int)
    case .string(let value): try container.encode(value, forKey: .string)
    case .data(let value): try container.encode(value, forKey: .data)
    case .double(let value) where value.isInfinite:
      try container.encode(value > 0 ? "inf" : "-inf", forKey: .double)
    case .double(let value): try container.encode(value, forKey: .double)
    }
  }
}
