import Foundation
import KeepsakeInterchange

/// The keys of an older game's list of high scores.
///
/// ```swift
/// ScoreColumns(score: "points", player: "name", date: "when", in: ["HighScores"])
/// ```
public struct ScoreColumns: Sendable, Hashable {
  /// What a number under the date's key means. Dates are always accepted, and so are texts in ISO 8601 and as
  /// `Date.description` writes them.
  public enum NumericDate: Sendable, Hashable {
    /// Unix time in seconds.
    case secondsSince1970
    /// Unix time in milliseconds, as Java and JavaScript have it.
    case millisecondsSince1970
    /// Seconds since 2001, as in Foundation's `timeIntervalSinceReferenceDate`.
    case secondsSince2001
  }

  /// The key of the score: a number, or a text that is one.
  public var score: String
  /// The key of the player's name; nil if the list has none.
  public var player: String?
  /// The key of the date; nil if the list has none.
  public var date: String?
  /// What a number under `date` means.
  public var numericDate: NumericDate
  /// The keys that lead from the top dictionary to the list; empty if the list is at the top.
  public var list: [String]

  /// Describes under which keys an old list has which values.
  ///
  /// - Parameters:
  ///   - score: The key of the number that was scored.
  ///   - player: The key of who scored it, if the list has it.
  ///   - date: The key of when it was scored, if the list has it.
  ///   - numericDate: What a number under `date` means.
  ///   - list: The keys that lead from the top dictionary to the list; empty if the list is at the top.
  public init(
    score: String, player: String? = nil, date: String? = nil, numericDate: NumericDate = .secondsSince1970,
    in list: [String] = []
  ) {
    self.score = score
    self.player = player
    self.date = date
    self.numericDate = numericDate
    self.list = list
  }

  /// Returns the list in a file. Throws `PropertyListError` if there is none.
  func entries(in data: Data) throws -> [PropertyList] {
    var value = try PropertyList(data, limits: .inProportion(to: data))
    for (depth, key) in list.enumerated() {
      guard let inner = value[key] else {
        throw PropertyListError(
          .missingValue, "There is no value under \"\(key)\"", path: list.prefix(depth + 1).joined(separator: "."))
      }
      value = inner
    }
    guard let entries = value.array else {
      throw PropertyListError(.mismatch, "The value is not a list of scores", path: list.joined(separator: "."))
    }
    return entries
  }

  /// Returns the parts of an entry. Throws `PropertyListError` if it has no score, or an invalid score, player or date.
  func read(_ entry: PropertyList) throws -> (value: Score.Value, player: String?, date: Date?) {
    guard let value = try entry[score].map(number) else {
      throw PropertyListError(.missingValue, "There is no score", path: score)
    }
    return (
      value, try player.flatMap { key in try entry[key].map(name) }, try date.flatMap { key in try entry[key].map(day) }
    )
  }

  private func number(_ value: PropertyList) throws -> Score.Value {
    let number: Score.Value? =
      switch value {
      case .integer(let number): Int64(exactly: number).map { .int($0) } ?? .double(Double(number))
      case .number(let number): number.scoreValue
      case .float(let number): number.scoreValue
      case .string(let text): Int64(text).map { .int($0) } ?? Double(text).map(\.scoreValue)
      default: nil
      }
    guard let number else { throw PropertyListError(.mismatch, "The score is not a number", path: score) }
    return number
  }

  private func name(_ value: PropertyList) throws -> String {
    switch value {
    case .string(let text): return text
    case .integer(let number): return "\(number)"
    default: throw PropertyListError(.mismatch, "The player's name is not text", path: player ?? "")
    }
  }

  private func day(_ value: PropertyList) throws -> Date {
    let found: Date?
    switch value {
    case .date(let date): found = date
    case .integer, .number, .float:
      found = value.number.map { number in
        switch numericDate {
        case .secondsSince1970: Date(timeIntervalSince1970: number)
        case .millisecondsSince1970: Date(timeIntervalSince1970: number / 1_000)
        case .secondsSince2001: Date(timeIntervalSinceReferenceDate: number)
        }
      }
    case .string(let text): found = Self.date(text)
    default: found = nil
    }
    guard let found else { throw PropertyListError(.mismatch, "The date is in no known form", path: date ?? "") }
    return found
  }

  /// Parses `2012-05-01 10:00:00 +0000`, as `Date.description` writes dates, or ISO 8601.
  private static func date(_ text: String) -> Date? {
    let words = text.split(separator: " ")
    let standard = words.count == 3 && words[2] == "+0000" ? "\(words[0])T\(words[1])Z" : text
    do {
      return try Date(standard, strategy: .iso8601)
    } catch {
      return nil  // The caller says so, with its place.
    }
  }
}

/// The outcome for each entry of an old game's list of high scores.
public struct ScoreReport: Sendable, Equatable {
  /// An entry that can't be a score, and why.
  public struct Unfit: Sendable, Equatable {
    /// The entry's index in the list, from 0.
    public var index: Int
    /// A sentence for people.
    public var reason: String
  }

  /// The number of scores that were added to the board.
  public internal(set) var taken = 0
  /// The number of scores that were already there.
  public internal(set) var known = 0
  /// The entries that can't be scores.
  public internal(set) var unfit: [Unfit] = []
}
