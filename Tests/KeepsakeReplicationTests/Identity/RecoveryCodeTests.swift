import Foundation
import KeepsakeReplication
import Testing

@Suite("Recovery codes") struct RecoveryCodeTests {
  private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")

  private func code(_ seed: UInt64) -> RecoveryCode {
    var source = SplitMix64(seed: seed)
    return RecoveryCode(using: &source)
  }

  private struct SplitMix64: RandomNumberGenerator {
    var seed: UInt64
    mutating func next() -> UInt64 {
      seed &+= 0x9E37_79B9_7F4A_7C15
      var value = (seed ^ seed >> 30) &* 0xBF58_476D_1CE4_E5B9
      value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
      return value ^ value >> 31
    }
  }

  @Test("a code is read as people type it, and has the same digest then")
  func typed() throws {
    for seed in 0..<200 as Range<UInt64> {
      let code = code(seed)
      #expect(code.groups.count == 7 && code.groups.allSatisfy { $0.count == 5 })
      let soft = code.text.lowercased().replacing("0", with: "o").replacing("1", with: "l")
      for text in [code.text, soft, code.groups.joined(), code.groups.joined(separator: " \n") + " "] {
        let read = try RecoveryCode(typed: text)
        #expect(read == code && read.digest == code.digest)
      }
    }
    #expect(code(1).digest != code(2).digest)
  }

  @Test("every single wrong character is found, and told by its group")
  func wrongCharacter() throws {
    let text = code(7).groups.joined()
    for (place, right) in text.enumerated() {
      for wrong in Self.alphabet where wrong != right {
        var typed = Array(text)
        typed[place] = wrong
        #expect(throws: RecoveryCode.Mistake.group(place / 5 + 1)) { try RecoveryCode(typed: String(typed)) }
      }
    }
  }

  @Test("neighbors that were exchanged, and groups in another order, are found")
  func exchanged() throws {
    for seed in 0..<50 as Range<UInt64> {
      let code = code(seed)
      let characters = Array(code.groups.joined())
      for place in 0..<34 where place % 5 != 4 && characters[place] != characters[place + 1] {
        var typed = characters
        typed.swapAt(place, place + 1)
        #expect(throws: RecoveryCode.Mistake.group(place / 5 + 1)) { try RecoveryCode(typed: String(typed)) }
      }
      for first in 0..<6 {
        for second in first + 1..<7 {
          var groups = code.groups
          groups.swapAt(first, second)
          #expect(throws: RecoveryCode.Mistake.group(first + 1)) { try RecoveryCode(typed: groups.joined()) }
        }
      }
    }
  }

  @Test("what can't be a code is told from a code with a mistake")
  func impossible() throws {
    let code = code(3)
    func mistake(_ text: String) -> RecoveryCode.Mistake? {
      do {
        _ = try RecoveryCode(typed: text)
        return nil
      } catch {
        return error
      }
    }
    #expect(mistake("") == .length(0))
    #expect(mistake(String(code.text.dropLast())) == .length(34))
    #expect(mistake(code.groups.dropLast().joined()) == .length(30))
    #expect(mistake(code.text + "-0") == .length(36))
    #expect(mistake(code.text.replacing("-", with: "U", maxReplacements: 1)) == .character("U"))
    #expect(mistake("пароль") == .character("П"))
    #expect(mistake(String(repeating: "A", count: 100_000)) == .length(100_000))
  }

  @Test("every value of five bits is in codes about equally often")
  func random() {
    var counts: [Character: Int] = [:]
    for seed in 0..<1_000 as Range<UInt64> {
      for group in code(seed).groups { for character in group.dropLast() { counts[character, default: 0] += 1 } }
    }
    #expect(counts.count == 32 && counts.values.allSatisfy { (700...1_060).contains($0) }, "\(counts)")
  }
}
