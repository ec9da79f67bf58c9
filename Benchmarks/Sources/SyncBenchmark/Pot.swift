import Foundation
import Keepsake

/// A saved game of some 30 KB, as a game of patience keeps one for each of its pots.
@Archivable
struct Pot: Equatable {
  var soil: [UInt8]
  @Merge(.max) var height: Double
  @Merge(.max) var waterings: Int
  var notes: [String]

  static let sample: Pot = {
    var random = Noise(seed: 30)
    return Pot(
      soil: (0..<28_000).map { _ in UInt8(random.next(below: 64)) }, height: 1, waterings: 0,
      notes: (0..<40).map {
        "Day \($0): the \(["rose", "lily", "fern"][$0 % 3]) has \(random.next(below: 1_000)) leaves."
      })
  }()

  mutating func water() {
    waterings += 1
    height += 0.25
  }
}

/// A saved game of 10 MB, as a builder's world is: a map of which each square has one of some kinds.
@Archivable
struct Island: Equatable {
  var squares: [UInt8]

  static let sample: Island = {
    var random = Noise(seed: 10)
    return Island(squares: (0..<10_000_000).map { _ in UInt8(random.next(below: 24)) })
  }()
}

/// One percent of an island, changed in one of the ways that games change things.
enum Change: String, CaseIterable, Codable {
  case region, scattered, appended, inserted

  var title: String {
    switch self {
    case .region: "one region of 100,000 squares changed"
    case .scattered: "100 regions of 1,000 squares changed"
    case .appended: "100,000 squares put at the end"
    case .inserted: "100,000 squares put in at a third"
    }
  }

  func apply(to island: inout Island) {
    var random = Noise(seed: 1)
    func fresh(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(random.next(below: 24)) } }
    switch self {
    case .region: island.squares.replaceSubrange(5_000_000..<5_100_000, with: fresh(100_000))
    case .scattered:
      for place in 0..<100 {
        island.squares.replaceSubrange(place * 99_000..<place * 99_000 + 1_000, with: fresh(1_000))
      }
    case .appended: island.squares += fresh(100_000)
    case .inserted: island.squares.insert(contentsOf: fresh(100_000), at: 3_333_333)
    }
  }
}

/// The same numbers in each run.
struct Noise {
  private var word: UInt64

  init(seed: UInt64) { word = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

  mutating func next(below bound: Int) -> Int {
    word ^= word << 13
    word ^= word >> 7
    word ^= word << 17
    return Int(word >> 33) % bound
  }
}
