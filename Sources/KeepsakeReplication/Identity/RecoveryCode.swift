import Foundation

/// The code by which a player who has no device any more comes back: 140 random bits as 28 characters, in seven groups
/// of four, each with a fifth that finds mistakes.
///
/// The fifth character is a sum over GF(32) with another weight for each place, so that a group with one wrong
/// character, or with two neighbors exchanged, is always found. The number of the group is part of the sum: groups in
/// the wrong order are found, too.
package struct RecoveryCode: Hashable, Sendable {
  /// What is wrong with a typed code.
  package enum Mistake: Error, Hashable, Sendable {
    /// It has another number of characters, as far as they can be part of a code.
    case length(Int)
    /// A character that no code has.
    case character(Character)
    /// The first group that can't be right, counted from 1.
    case group(Int)

    /// Says it to the player.
    package var message: String {
      switch self {
      case .group(let number): "there is a mistake in group \(number) of the recovery code"
      case .character(let character): "a recovery code has no \"\(character)\""
      case .length(let count):
        """
        a recovery code has \(RecoveryCode.groupCount) groups of \(RecoveryCode.groupLength) characters, and this has \
        \(CountText.of(count, "character"))
        """
      }
    }
  }

  package static let groupCount = 7
  /// Characters in a group, with the one that finds mistakes.
  package static let groupLength = 5
  /// The most bytes of a typed code that are looked at.
  private static let maximumBytes = 200
  /// Crockford's base 32: without I, L and O, which are read as 1, 1 and 0, and without U.
  private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")

  /// Five bits each, with the check of every group.
  private let values: [UInt8]

  package init(using source: inout some RandomNumberGenerator) {
    values = (0..<Self.groupCount).flatMap { number in
      let group = (1..<Self.groupLength).map { _ in UInt8(source.next() >> 59) }
      return group + [Self.check(group, number)]
    }
  }

  /// Reads what a person has typed: with or without hyphens and spaces, in lowercase or uppercase.
  package init(typed text: String) throws(Mistake) {
    guard text.utf8.count <= Self.maximumBytes else { throw .length(text.count) }
    var values: [UInt8] = []
    for character in text.uppercased() where character != "-" && !character.isWhitespace {
      let read: Character =
        switch character {
        case "O": "0"
        case "I", "L": "1"
        default: character
        }
      guard let value = Self.alphabet.firstIndex(of: read) else { throw .character(character) }
      values.append(UInt8(value))
    }
    // A group that is wrong says more than a length that is.
    for (number, start) in stride(from: 0, to: values.count, by: Self.groupLength).enumerated() {
      let group = values[start...].prefix(Self.groupLength)
      guard number < Self.groupCount, group.count == Self.groupLength else { throw .length(values.count) }
      guard group.last == Self.check(Array(group.dropLast()), number) else { throw .group(number + 1) }
    }
    guard values.count == Self.groupCount * Self.groupLength else { throw .length(values.count) }
    self.values = values
  }

  /// The groups, in the order in which they are written.
  package var groups: [String] {
    stride(from: 0, to: values.count, by: Self.groupLength).map { start in
      String(values[start..<start + Self.groupLength].map { Self.alphabet[Int($0)] })
    }
  }

  /// The groups with hyphens between them.
  package var text: String { groups.joined(separator: "-") }

  /// By which a server knows the code without having it.
  package var digest: ContentHash { ContentHash(of: Data(text.utf8)) }

  private static func check(_ group: [UInt8], _ number: Int) -> UInt8 {
    var sum = UInt8(number)
    for (place, value) in group.enumerated() { sum ^= product(UInt8(place + 2), value) }
    return sum
  }

  /// In GF(32), modulo x^5 + x^2 + 1.
  private static func product(_ left: UInt8, _ right: UInt8) -> UInt8 {
    var (result, factor): (UInt8, UInt8) = (0, left)
    for bit in 0..<5 {
      if right >> bit & 1 == 1 { result ^= factor }
      factor = factor << 1 ^ (factor & 0x10 == 0 ? 0 : 0x25)
    }
    return result
  }
}
