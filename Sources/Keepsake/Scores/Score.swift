public import Foundation
public import KeepsakeArchive
public import KeepsakeReplication

/// One score on a board.
public struct Score: Sendable, Hashable, Identifiable {
  /// The number that was scored.
  ///
  /// Integers are kept exactly, in 64 bits. A `Double` that is a whole number is the same score as that integer.
  public enum Value: Sendable, Hashable {
    /// A whole number.
    case int(Int64)
    /// A finite number that isn't whole, or doesn't fit into 64 bits.
    case double(Double)
  }

  /// The greatest size of a context as an archive, in bytes.
  public static var maximumContextBytes: Int { ScoreEntry.maximumContextBytes }

  package let entry: ScoreEntry

  init(_ entry: ScoreEntry) { self.entry = entry }

  /// The score's identifier, the same on every device.
  public var id: ScoreID { entry.id }
  /// The board's name.
  public var board: String { entry.board }
  /// Who scored; empty if nobody was named.
  public var player: String { entry.player }
  /// The number that was scored.
  public var value: Value {
    switch entry.value {
    case .int(let number): .int(number)
    case .double(let number): .double(number)
    // No score has such a value.
    case .string, .data: .int(0)
    }
  }
  /// When it was scored, to the millisecond, by the clock of the device that made it.
  public var date: Date { Date(timeIntervalSince1970: Double(entry.dateMilliseconds) / 1_000) }
  /// The archive of the context; nil if there is none.
  public var contextData: Data? { entry.context }

  /// Decodes the value that was submitted with the score. Decodes at each call.
  ///
  /// - Parameter type: The type of the context.
  /// - Returns: The value; nil if there is none.
  /// - Throws: `ArchiveError` if it is damaged, was written by a newer program, or has another type. A struct that has
  ///   none of the archive's fields is read with its defaults.
  public func context<Context: Archivable>(as type: Context.Type = Context.self) throws -> Context? {
    try entry.context.map { try Archive.decode(type, from: $0) }
  }
}

extension Score.Value: Comparable, CustomStringConvertible {
  /// The integer; nil if it isn't whole or doesn't fit.
  public var int: Int? {
    if case .int(let number) = self { return Int(exactly: number) }
    return nil
  }

  /// The number as a `Double`; beyond 2^53 the nearest one.
  public var double: Double {
    switch self {
    case .int(let number): Double(number)
    case .double(let number): number
    }
  }

  public static func < (left: Self, right: Self) -> Bool { left.scalar < right.scalar }

  public var description: String {
    switch self {
    case .int(let number): "\(number)"
    case .double(let number): "\(number)"
    }
  }

  var scalar: Scalar {
    switch self {
    case .int(let number): .int(number)
    case .double(let number): .double(number)
    }
  }
}

/// A number that can be a score.
public protocol ScoreNumber: Sendable {
  /// The number as it is kept.
  var scoreValue: Score.Value { get }
}

extension Int: ScoreNumber {
  public var scoreValue: Score.Value { .int(Int64(self)) }
}

extension Int64: ScoreNumber {
  public var scoreValue: Score.Value { .int(self) }
}

extension Double: ScoreNumber {
  public var scoreValue: Score.Value { Int64(exactly: self).map { .int($0) } ?? .double(self) }
}

extension Float: ScoreNumber {
  public var scoreValue: Score.Value { Double(self).scoreValue }
}

extension Score.Value: ScoreNumber {
  public var scoreValue: Score.Value {
    if case .double(let number) = self { return number.scoreValue }
    return self
  }
}
