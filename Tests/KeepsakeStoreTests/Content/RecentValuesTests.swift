import Synchronization
import TestSupport
import Testing

@testable import KeepsakeStore

/// The cache of contents used last, without the contents.
@Suite struct RecentValuesTests {
  private final class Uses: Sendable {
    let count = Atomic<Int>(0)
  }
  /// A key that counts how often it is hashed or compared.
  private struct CountedKey: Hashable, Sendable {
    let number: Int
    let uses: Uses

    static func == (left: Self, right: Self) -> Bool {
      left.uses.count.add(1, ordering: .relaxed)
      return left.number == right.number
    }

    func hash(into hasher: inout Hasher) {
      uses.count.add(1, ordering: .relaxed)
      hasher.combine(number)
    }
  }

  @Test("the values used least recently are dropped first, and the newest stays even if it alone costs too much")
  func dropsLeastRecent() {
    var values = RecentValues<String, Int>(maximumCost: 10)
    for (number, key) in ["a", "b", "c"].enumerated() { values.insert(number, for: key, cost: 3) }
    #expect(values.value(of: "a") == 0)
    values.insert(3, for: "d", cost: 3)
    #expect(values.value(of: "b") == nil)
    #expect(["a", "c", "d"].map { values.value(of: $0) } == [0, 2, 3] && values.cost == 9)
    values.insert(4, for: "c", cost: 1)
    #expect(values.value(of: "c") == 4 && values.cost == 7 && values.count == 3)
    values.insert(5, for: "e", cost: 50)
    #expect(values.count == 1 && values.cost == 50 && values.value(of: "e") == 5)
    values.insert(6, for: "f", cost: 2)
    #expect(values.count == 1 && values.cost == 2 && values.value(of: "f") == 6)
    values.removeAll()
    #expect(values.count == 0 && values.cost == 0 && values.value(of: "f") == nil)
    values.insert(7, for: "g", cost: 2)
    #expect(values.value(of: "g") == 7)
  }

  @Test("it keeps what a list in the order of use keeps", arguments: 0..<20 as Range<UInt64>)
  func matchesList(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var values = RecentValues<Int, Int>(maximumCost: 100)
    var list: [(key: Int, value: Int, cost: Int)] = []
    for step in 0..<2_000 {
      let key = Int.random(in: 0..<40, using: &random)
      let place = list.firstIndex { $0.key == key }
      if Bool.random(using: &random) {
        let cost = Int.random(in: 0..<25, using: &random)
        values.insert(step, for: key, cost: cost)
        if let place { list.remove(at: place) }
        list.append((key, step, cost))
        while list.reduce(0, { $0 + $1.cost }) > 100 { list.removeFirst() }
      } else {
        #expect(values.value(of: key) == place.map { list[$0].value })
        if let place { list.append(list.remove(at: place)) }
      }
      #expect(values.count == list.count && values.cost == list.reduce(0) { $0 + $1.cost })
    }
  }

  @Test("using and replacing values takes as many look-ups among sixteen thousand as among a thousand")
  func costsTheSame() {
    func uses(among count: Int) -> Int {
      let uses = Uses()
      func key(_ number: Int) -> CountedKey { CountedKey(number: number, uses: uses) }
      var values = RecentValues<CountedKey, Int>(maximumCost: count)
      for number in 0..<count { values.insert(number, for: key(number), cost: 1) }
      let before = uses.count.load(ordering: .relaxed)
      for number in 0..<500 {
        #expect(values.value(of: key(number * 2)) == number * 2)
        values.insert(number, for: key(count + number), cost: 1)
      }
      #expect(values.count == count)
      return uses.count.load(ordering: .relaxed) - before
    }
    let (few, many) = (uses(among: 1_000), uses(among: 16_000))
    #expect(many < 2 * few)
  }
}
