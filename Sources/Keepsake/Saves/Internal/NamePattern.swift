import KeepsakeReplication

/// A pattern for whole names, in the syntax of shells: `*`, `?`, `[a-z]`, `[!a-z]`.
struct NamePattern: Sendable {
  /// Several times the maximum length of a name. A match takes time proportional to the product of both lengths.
  static let maximumBytes = 1_024

  private enum Token: Sendable {
    case any
    case one
    case literal(Character)
    case among([ClosedRange<Character>], isNegated: Bool)

    func matches(_ character: Character) -> Bool {
      switch self {
      case .any, .one: true
      case .literal(let own): own == character
      case .among(let ranges, let isNegated): ranges.contains { $0.contains(character) } != isNegated
      }
    }

    var isAny: Bool {
      if case .any = self { true } else { false }
    }
  }
  private let tokens: [Token]

  /// The pattern that one name matches.
  init(exactly name: String) { tokens = name.canonical.map(Token.literal) }

  init(_ pattern: String) throws {
    guard pattern.utf8.count <= Self.maximumBytes else {
      throw GameDataError(
        .misuse, "a pattern may have at most \(Self.maximumBytes) bytes; this one has \(pattern.utf8.count)")
    }
    var tokens: [Token] = []
    // Normalized in the same way as names.
    var rest = Array(pattern.canonical)[...]
    while let character = rest.popFirst() {
      switch character {
      case "*": if tokens.last?.isAny != true { tokens.append(.any) }
      case "?": tokens.append(.one)
      case "[": tokens.append(try Self.among(&rest, of: pattern))
      default: tokens.append(.literal(character))
      }
    }
    self.tokens = tokens
  }

  /// Parses what follows an opening bracket. A closing bracket directly after it is a literal, and so is a hyphen at
  /// either end.
  private static func among(_ rest: inout ArraySlice<Character>, of pattern: String) throws -> Token {
    let isNegated = rest.first == "!"
    if isNegated { rest.removeFirst() }
    var ranges: [ClosedRange<Character>] = []
    while let character = rest.popFirst() {
      if character == "]", !ranges.isEmpty { return .among(ranges, isNegated: isNegated) }
      guard rest.first == "-", let last = rest.dropFirst().first, last != "]" else {
        ranges.append(character...character)
        continue
      }
      guard character <= last else {
        throw GameDataError(.misuse, "in the pattern \"\(pattern)\" \(character)-\(last) is a reversed range")
      }
      rest.removeFirst(2)
      ranges.append(character...last)
    }
    throw GameDataError(.misuse, "in the pattern \"\(pattern)\" a bracket isn't closed")
  }

  /// Backtracks only to the newest `*`, which is enough: whatever an earlier one could match, this one could match as
  /// well.
  func matches(_ name: String) -> Bool {
    let name = Array(name)
    var (token, character) = (0, 0)
    var star: (token: Int, character: Int)?
    while character < name.count {
      if token < tokens.count, tokens[token].isAny {
        star = (token, character)
        token += 1
      } else if token < tokens.count, tokens[token].matches(name[character]) {
        (token, character) = (token + 1, character + 1)
      } else if let last = star {
        star = (last.token, last.character + 1)
        (token, character) = (last.token + 1, last.character + 1)
      } else {
        return false
      }
    }
    return tokens[token...].allSatisfy(\.isAny)
  }
}
