import Foundation
import KeepsakeArchive

/// A world made from a seed: sets, dictionaries, objects in sets, cycles, payloads.
@Archivable struct RandomWorld {
  var creatures: [Creature] = []
  var tokens: Set<Token> = []
  var counts: [Token: String] = [:]
  var texts: [String: Set<String>] = [:]
  var numbers: [Int: [Double?]] = [:]
  var events: [Event] = []
  var nested: [[Level: Set<Int>]] = []
  var everything: [Everything?] = []

  static func make(seed: UInt64) -> RandomWorld {
    var random = Seeded(seed)
    func number(_ limit: Int) -> Int { .random(in: 0..<limit, using: &random) }
    func word() -> String { String((0..<number(9)).map { _ in "abcäé世🚀 ".randomElement(using: &random) ?? "x" }) }
    var world = RandomWorld()
    for index in 0..<number(20) + 1 {
      let creature: Creature =
        switch number(3) {
        case 0: Boss(type: index, name: word())
        case 1: Minion(master: world.creatures.last ?? Boss(type: 1, name: "first"))
        default: Creature(type: index, name: word())
        }
      creature.inventory = (0..<number(4)).map {
        Item(kind: $0, count: number(1 << 40), durability: Double(number(1000)) / 7)
      }
      world.creatures.append(creature)
    }
    for creature in world.creatures {
      creature.target = world.creatures.randomElement(using: &random)
      creature.friends = (0..<number(4)).compactMap { _ in world.creatures.randomElement(using: &random) }
    }
    // Only equal objects in a set have no defined order, so each object is different.
    let tokens = (0..<number(30)).map { Token($0 * 7919 - 50_000) }
    world.tokens = Set(tokens)
    for token in tokens where number(2) == 0 { world.counts[token] = word() }
    for _ in 0..<number(30) { world.texts[word()] = Set((0..<number(9)).map { _ in word() }) }
    for _ in 0..<number(30) {
      world.numbers[number(1 << 50) - 1 << 49] = (0..<number(3)).map { $0 == 0 ? nil : Double(number(99)) / 3 }
    }
    for _ in 0..<number(9) {
      let said = Event.said(word(), number(2) == 0 ? nil : number(500))
      world.events.append(number(2) == 0 ? said : .both(.idle, said))
    }
    world.nested = (0..<number(3)).map { _ in [.one: Set((0..<number(40)).map { $0 * 131 }), .three: []] }
    world.everything = (0..<number(3)).map { $0 == 1 ? nil : Everything(i: number(1 << 60)) }
    return world
  }

  /// Breaks the reference cycles, which would leak.
  func unlink() { for creature in creatures { creature.friends = [] } }
}
