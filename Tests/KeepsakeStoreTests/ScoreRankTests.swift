import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeStore

/// The bytes by which SQLite sorts a board: they sort exactly as the numbers do, and each number can be read from them.
@Suite struct ScoreRankTests {
  private static let edges: [Scalar] = {
    var numbers: [Scalar] = [
      .int(.min), .int(.min + 1), .int(.max), .int(.max - 1), .double(0.1), .double(-0.1), .double(-0.0),
    ]
    for power in [52, 53, 54, 62] {
      for near in -2...2 { numbers += [.int(1 << power + Int64(near)), .int(-(1 << power) + Int64(near))] }
    }
    for number in [
      0x1p63, 0x1p64, 1e300, .greatestFiniteMagnitude, .leastNonzeroMagnitude, 0x1p63.nextDown, 0x1p52 + 0.5, 12.5,
      0x1p63.nextUp,
    ] {
      numbers += [.double(number), .double(-number)]
    }
    return numbers + (-3...3).flatMap { [.int($0), .double(Double($0) + 0.25)] }
  }()

  /// The value as the rank contains it: whole numbers are integers.
  private func plain(_ value: Scalar) -> Scalar {
    if case .double(let number) = value, let whole = Int64(exactly: number) { return .int(whole) }
    return value
  }

  private func check(_ left: Scalar, _ right: Scalar, _ hint: String) throws {
    for order in ScoreOrder.allCases {
      let ranks = try [left, right].map { try #require(ScoreRank($0, order)) }
      let isFirst = order == .ascending ? plain(left) < plain(right) : plain(left) > plain(right)
      #expect(ranks[0].bytes.lexicographicallyPrecedes(ranks[1].bytes) == isFirst, "\(hint) \(order): \(left) \(right)")
      #expect((ranks[0] == ranks[1]) == (plain(left) == plain(right)), "\(hint) \(order): \(left) \(right)")
      for (rank, value) in zip(ranks, [left, right]) {
        #expect(rank.value == plain(value) && ScoreRank(bytes: rank.bytes) == rank, "\(hint) \(order): \(value)")
        let (from, below) = ScoreRank.bounds(order)
        #expect(from.lexicographicallyPrecedes(rank.bytes) && rank.bytes.lexicographicallyPrecedes(below))
      }
    }
  }

  @Test("neighbouring scores have different ranks, however large they are, and 12 ranks like 12.0")
  func edges() throws {
    for left in Self.edges { for right in Self.edges { try check(left, right, "") } }
    #expect(ScoreRank(.int(12), .descending) == ScoreRank(.double(12), .descending))
  }

  @Test("any two random numbers rank as they compare", arguments: [21, 22] as [UInt64])
  func random(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    func number() -> Scalar {
      let bits = random.next()
      if bits & 1 == 0 { return .int(Int64(bitPattern: bits) >> Int64(random.next() % 64)) }
      let number = Double(bitPattern: random.next())
      return .double(number.isFinite ? number : 0.5)
    }
    for _ in 0..<3_000 { try check(number(), number(), "seed \(seed)") }
  }

  @Test("values that aren't finite numbers have no rank, and invalid bytes are not read as one")
  func refused() throws {
    for value in [Scalar.double(.nan), .double(.infinity), .double(-.infinity), .string("1"), .data(Data())] {
      #expect(ScoreRank(value, .ascending) == nil)
    }
    let sound = try #require(ScoreRank(.double(12.5), .descending)).bytes
    for length in 0...20 where length != 17 {
      #expect(ScoreRank(bytes: (sound + sound).prefix(length)) == nil || length == 9)
    }
    var strange = 0
    for first in UInt8.min...UInt8.max {
      var bytes = sound
      bytes[0] = first
      if ScoreRank(bytes: bytes) == nil { strange += 1 }
    }
    #expect(strange >= 254, "the whole part and the number have to agree")
    // A whole number written as a fraction.
    let whole = try #require(ScoreRank(.int(12), .ascending)).bytes
    #expect(ScoreRank(bytes: whole + Data([0xC0, 0x28, 0, 0, 0, 0, 0, 0])) == nil)
    // A slice doesn't begin at zero.
    #expect(ScoreRank(bytes: (Data([7]) + whole).dropFirst()) != nil)
  }
}
