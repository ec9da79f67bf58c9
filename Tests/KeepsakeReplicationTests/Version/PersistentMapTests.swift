import Testing

@testable import KeepsakeReplication

/// A dictionary whose copies share what they have in common.
@Suite struct PersistentMapTests {
  /// A key of which many have the same hash.
  private struct CrowdedKey: Hashable, Sendable {
    let number: Int

    func hash(into hasher: inout Hasher) { hasher.combine(number % 3) }
  }

  private func nodes<Key, Value>(_ map: PersistentMap<Key, Value>) -> Set<ObjectIdentifier> {
    var found: Set<ObjectIdentifier> = []
    var open = [map.root]
    while let node = open.popLast() {
      found.insert(ObjectIdentifier(node))
      open += node.children
    }
    return found
  }

  @Test("a map has what a dictionary has after the same changes, and so has each earlier copy")
  func matchesDictionary() {
    var map = PersistentMap<Int, Int>()
    var dictionary: [Int: Int] = [:]
    var copies: [(PersistentMap<Int, Int>, [Int: Int])] = []
    for step in 0..<6_000 {
      // Inserts, replaces and removes.
      let key = step * 7_919 % 1_000
      if step % 5 == 4 {
        (map[key], dictionary[key]) = (nil, nil)
      } else {
        (map[key], dictionary[key]) = (step, step)
      }
      if step % 1_000 == 500 { copies.append((map, dictionary)) }
    }
    for (map, dictionary) in copies + [(map, dictionary)] {
      for key in 0..<1_000 { #expect(map[key] == dictionary[key]) }
    }
  }

  @Test("keys with the same hash are told apart")
  func collides() {
    var map = PersistentMap<CrowdedKey, Int>()
    for number in 0..<100 { map[CrowdedKey(number: number)] = number }
    map[CrowdedKey(number: 50)] = nil
    for number in 0..<100 { #expect(map[CrowdedKey(number: number)] == (number == 50 ? nil : number)) }
  }

  @Test("a change copies a few nodes, whether there are a thousand elements or sixteen thousand")
  func shares() {
    func copied(among count: Int) -> Int {
      var map = PersistentMap<String, Int>()
      for number in 0..<count { map["slot \(number)"] = number }
      let before = map
      map["slot 7"] = -1
      return nodes(map).subtracting(nodes(before)).count
    }
    // One on each level; a leaf is at most as deep as the hash has digits.
    #expect(copied(among: 1_000) <= 16)
    #expect(copied(among: 16_000) <= 16)
  }
}
