import Foundation
import KeepsakeReplication
import KeepsakeStore
import Testing

@testable import Keepsake

/// Sets, dictionaries and optionals of a player's progress, and how much of it there may be.
@Suite struct ProgressCollectionTests {
  let device: Device

  init() throws { device = try Device() }

  /// Applies a value as from another device. The test decides what that device has received from this one.
  private func arrive(_ value: CellValue, _ name: String, to game: GameData) throws {
    let key = CellKey(collection: "progress", key: name)
    try game.core.store.write { transaction in
      let state = CellState(value: value)
      let joined = try transaction.cell(key)?.joined(with: state) ?? state
      try transaction.setCell(CellUpdate(key: key, state: joined))
    }
    try game.progress.received([key])
  }

  /// The state of a key that an exchange would send.
  private func outgoing(_ name: String, of game: GameData) throws -> CellValue? {
    try game.core.store.base.drain()
    return try game.core.store.read {
      try $0.outbox(limit: 10).flatMap(\.cells).last { $0.key.key == name }?.state.value
    }
  }

  @Test("an element that was removed from a set stays removed after a restart, and can be inserted again")
  func sets() throws {
    var game = try device.open()
    try game.progress.insert("rose", into: .favourites)
    try game.progress.insert("tulip", into: .favourites)
    try game.progress.remove("rose", from: .favourites)
    try game.progress.remove("never there", from: .favourites)
    #expect(game.progress[.favourites] == ["tulip"], "seen at once")
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.progress[.favourites] == ["tulip"])
    try game.progress.insert("rose", into: .favourites)
    #expect(game.progress[.favourites] == ["rose", "tulip"])
    let spelled = "caf\u{E9}"
    try game.progress.insert(spelled, into: .favourites)
    try game.progress.remove("cafe\u{301}", from: .favourites)
    #expect(game.progress[.favourites] == ["rose", "tulip"], "two spellings are one element")
  }

  @Test("inserting and removing before the first change is durable takes effect in the order of the calls")
  func before() throws {
    let game = try device.open()
    defer { end(game) }
    for round in 0..<50 {
      let pending = [
        try game.progress.insert("rose", into: .favourites),
        try game.progress.insert("tulip \(round)", into: .favourites),
        try game.progress.remove("rose", from: .favourites), try game.progress.insert("oak", into: .favourites),
        try game.progress.remove("oak", from: .favourites), try game.progress.insert("rose", into: .favourites),
        try game.progress.remove("tulip \(round - 1)", from: .favourites),
      ]
      #expect(game.progress[.favourites] == ["rose", "tulip \(round)"])
      for pending in pending { try pending.wait() }
      #expect(game.progress[.favourites] == ["rose", "tulip \(round)"])
      try game.progress.remove("rose", from: .favourites)
    }
    try game.core.store.base.drain()
    let stored = try game.core.store.read { try $0.cell(ProgressKey.favourites.key)?.value }
    guard case .set(let set)? = stored else { return #expect(Bool(false), "\(String(describing: stored))") }
    #expect(set.elements == [.string("tulip 49")])
    #expect(
      set.writers.count == 1 && set.writers.values.first?.seen.ranges.count == 1,
      "one range, however often elements were inserted")
  }

  @Test("an element that a device inserts while another device removes it is kept")
  func meanwhile() throws {
    let game = try device.open()
    defer { end(game) }
    try game.progress.insert("rose", into: .favourites)
    try game.progress.insert("tulip", into: .favourites)
    let first = try #require(try outgoing("favourites", of: game))
    try game.progress.insert("oak", into: .favourites)
    // The other device had received the first two, and removed what it knew of.
    guard case .set(let known) = first else { return #expect(Bool(false)) }
    let seen = ObservedSet(known.writers.mapValues { ObservedSet.Additions(seen: $0.seen) })
    #expect(known.elements == [.string("rose"), .string("tulip")])
    try arrive(.set(seen), "favourites", to: game)
    #expect(game.progress[.favourites] == ["oak"])
    try game.progress.insert("rose", into: .favourites)
    try arrive(.set(seen), "favourites", to: game)
    #expect(game.progress[.favourites].contains("rose"), "an old removal doesn't remove it again")
  }

  @Test("each value of a dictionary follows its rule, over a restart and with other devices' values")
  func dictionaries() throws {
    var game = try device.open()
    try game.progress.record(61, at: "cave", for: .bestTimes)
    try game.progress.record(70, at: "cave", for: .bestTimes)
    try game.progress.record(["cave": 65, "hill": 40], for: .bestTimes)
    try game.progress.add(3, at: "goblin", to: .defeated)
    try game.progress.add(-1, at: "goblin", to: .defeated)
    try game.progress.set("crown", at: "queen", for: .hats)
    try game.progress.set("cap", at: "queen", for: .hats)
    try game.progress.insert("sword", at: 1, into: .equipped)
    try game.progress.insert("bow", at: 1, into: .equipped)
    try game.progress.remove("sword", at: 1, from: .equipped)
    try game.progress.remove("axe", at: 2, from: .equipped)
    try game.progress.insert("first", at: 7, into: .stars)
    func check(_ game: GameData) {
      #expect(game.progress[.bestTimes] == ["cave": 61, "hill": 40])
      #expect(game.progress[.bestTimes, at: "cave"] == 61 && game.progress[.bestTimes, at: "sea"] == nil)
      #expect(game.progress[.defeated, at: "goblin"] == 2)
      #expect(game.progress[.hats] == ["queen": "cap"])
      #expect(game.progress[.equipped] == [1: ["bow"]] && game.progress[.stars, at: 7] == ["first"])
    }
    check(game)
    try game.close()
    game = try device.open()
    defer { end(game) }
    check(game)
    try arrive(.dictionary([.string("cave"): .min(.int(90)), .string("sea"): .min(.int(12))]), "best times", to: game)
    #expect(game.progress[.bestTimes] == ["cave": 61, "hill": 40, "sea": 12])
    try arrive(.dictionary([.string("goblin"): .counter([WriterID(5): CounterEntry(plus: 10)])]), "defeated", to: game)
    #expect(game.progress[.defeated] == ["goblin": 12])
    // Two spellings, as a program that doesn't normalize them may have written.
    try arrive(
      .dictionary([.string("\u{E9}"): .min(.int(5)), .string("e\u{301}"): .min(.int(4))]), "best times", to: game)
    #expect(game.progress[.bestTimes]["\u{E9}"] == 4)
  }

  @Test("an optional is nil until a value is recorded, and nil never replaces a value")
  func optionals() throws {
    var game = try device.open()
    #expect(game.progress[.firstWin] == nil)
    try game.progress.record(nil, for: .firstWin)
    #expect(!game.progress.contains(.firstWin))
    try game.progress.record(7, for: .firstWin)
    try game.progress.record(9, for: .firstWin)
    try game.progress.record(nil, for: .firstWin)
    try game.progress.add(2, to: .tries)
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.progress[.firstWin] == 7 && game.progress[.tries] == 2)
    try arrive(.optional(nil), "first win", to: game)
    try arrive(.optional(.min(.int(3))), "first win", to: game)
    #expect(game.progress[.firstWin] == 3)
  }

  @Test("a change sends only what it changes, not everything in its key")
  func deltas() throws {
    let game = try device.open()
    defer { end(game) }
    let times = Dictionary(uniqueKeysWithValues: (0..<1_000).map { ("level \($0)", $0) })
    try game.progress.record(times, for: .bestTimes).wait()
    // As if the cloud had received everything.
    try game.core.store.write { transaction in
      for group in try transaction.outbox(limit: 10) { try transaction.removeFromOutbox(group.id) }
    }
    try game.progress.record(-1, at: "level 5", for: .bestTimes)
    #expect(try outgoing("best times", of: game) == .dictionary([.string("level 5"): .min(.int(-1))]))
    #expect(game.progress[.bestTimes].count == 1_000)
  }

  @Test("a checkpoint changes sets and dictionaries together with other values, or nothing at all")
  func checkpoints() throws {
    let game = try device.open()
    defer { end(game) }
    try game.checkpoint { checkpoint in
      try checkpoint.insert("rose", into: .favourites)
      try checkpoint.insert("tulip", into: .favourites)
      try checkpoint.remove("rose", from: .favourites)
      try checkpoint.record(61, at: "cave", for: .bestTimes)
      try checkpoint.add(2, at: "goblin", to: .defeated)
      try checkpoint.set("cap", at: "queen", for: .hats)
      try checkpoint.insert("bow", at: 1, into: .equipped)
      try checkpoint.insert("axe", at: 1, into: .equipped)
      try checkpoint.remove("bow", at: 1, from: .equipped)
      try checkpoint.add(1, to: .tries)
    }.wait()
    #expect(game.progress[.favourites] == ["tulip"] && game.progress[.bestTimes] == ["cave": 61])
    #expect(game.progress[.defeated] == ["goblin": 2] && game.progress[.hats] == ["queen": "cap"])
    #expect(game.progress[.equipped] == [1: ["axe"]] && game.progress[.tries] == 1)
    let code = gameErrorCode {
      try game.checkpoint { checkpoint in
        try checkpoint.insert("oak", into: .favourites)
        try checkpoint.remove("brave", from: .badges)
      }
    }
    #expect(code == .misuse && game.progress[.favourites] == ["tulip"])
  }

  @Test("invalid changes of sets and dictionaries throw at the call, and change nothing")
  func mistakes() throws {
    let game = try device.open()
    defer { end(game) }
    #expect(gameErrorCode { try game.progress.remove("brave", from: .badges) } == .misuse)
    #expect(gameErrorCode { try game.progress.record(3, at: "goblin", for: .defeated) } == .misuse)
    #expect(gameErrorCode { try game.progress.add(3, at: "cave", to: .bestTimes) } == .misuse)
    #expect(gameErrorCode { try game.progress.set(3, at: "cave", for: .bestTimes) } == .misuse)
    #expect(gameErrorCode { try game.progress.remove("first", at: 1, from: .stars) } == .misuse)
    #expect(gameErrorCode { try game.progress.add(1, to: .firstWin) } == .misuse)
    #expect(gameErrorCode { try game.progress.reset(.favourites, to: []) } == .notCaughtUp)
    let ratios: ProgressKey<[String: Double]> = ProgressKey("ratios", rule: .dictionary(of: .max))
    #expect(gameErrorCode { try game.progress.record(.nan, at: "x", for: ratios) } == .misuse)
    let byRatio: ProgressKey<[Double: Int]> = ProgressKey("by ratio", rule: .dictionary(of: .max))
    #expect(gameErrorCode { try game.progress.record(1, at: .nan, for: byRatio) } == .misuse)
    #expect(game.progress.names.isEmpty)
    // Another release of the game used the names with other rules.
    try arrive(.max(.int(1)), "favourites", to: game)
    try arrive(.dictionary([.string("cave"): .max(.int(9)), .data(Data([1])): .max(.int(9))]), "best times", to: game)
    #expect(gameErrorCode { try game.progress.insert("rose", into: .favourites) } == .misuse)
    #expect(gameErrorCode { try game.progress.record(1, at: "hill", for: .bestTimes) } == .misuse)
    #expect(game.progress[.favourites].isEmpty && game.progress[.bestTimes] == ["cave": 9])
  }

  @Test("inserting into a full set throws and leaves it unchanged, and a full set can be emptied")
  func fullSets() throws {
    let game = try device.open()
    defer { end(game) }
    // Each element counts with its bytes and 16 more.
    let long = String(repeating: "flower", count: 2_000)
    func text(_ name: String) -> ProgressKey<String> { ProgressKey(name, default: "", rule: .latest) }
    var count = 0
    var code: GameDataError.Code?
    while code == nil, count < 100 {
      code = gameErrorCode { try game.progress.insert("\(count) \(long)", into: .favourites) }
      if code == nil { count += 1 }
    }
    #expect(code == .tooLarge && count == ProgressStore.maximumValueBytes / 12_018, "\(count)")
    #expect(game.progress[.favourites].count == count)
    #expect(
      gameErrorCode { try game.progress.insert(String(repeating: "x", count: 300_000), into: .badges) } == .tooLarge)
    #expect(
      gameErrorCode { try game.progress.record(1, at: String(repeating: "x", count: 200_000), for: .bestTimes) }
        == .tooLarge)
    // Another device's elements are accepted, and so is whatever makes the set smaller.
    let theirs = (1...20).map { ($0, Scalar.string("\($0) of theirs \(long)")) }
    let additions = ObservedSet.Additions(
      seen: NumberRanges([1...20]), present: Dictionary(uniqueKeysWithValues: theirs.map { (UInt64($0.0), $0.1) }))
    try arrive(.set(ObservedSet([WriterID(9): additions])), "favourites", to: game)
    #expect(game.progress[.favourites].count == count + 20)
    try game.progress.remove("0 \(long)", from: .favourites).wait()
    #expect(gameErrorCode { try game.progress.insert("x", into: .favourites) } == .tooLarge)
    for element in game.progress[.favourites] { try game.progress.remove(element, from: .favourites).wait() }
    try game.progress.insert("rose", into: .favourites).wait()
    #expect(game.progress[.favourites] == ["rose"])
  }

  @Test("progress has a total limit; existing values can still be changed, and other devices' are accepted")
  func total() throws {
    var game = try device.open()
    let long = String(repeating: "x", count: 250 * 1024)
    func text(_ name: String) -> ProgressKey<String> { ProgressKey(name, default: "", rule: .latest) }
    var count = 0
    var code: GameDataError.Code?
    while code == nil, count < 100 {
      code = gameErrorCode { try game.progress.set(long, for: text("text \(count)")) }
      if code == nil { count += 1 }
    }
    #expect(code == .tooLarge && count == ProgressStore.maximumBytes / (250 * 1024 + 24 + 64 + 7), "\(count)")
    #expect(!game.progress.contains(text("text \(count)")))
    try game.progress.record(6, for: .level)
    try arrive(.latest(Stamp(caughtUp: true, milliseconds: 1, writer: WriterID(3)), .string(long)), "theirs", to: game)
    #expect(game.progress[text("theirs")].utf8.count == long.utf8.count)
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(gameErrorCode { try game.progress.set(long, for: text("more")) } == .tooLarge)
    try game.progress.record(7, for: .level)
    #expect(game.progress[.level] == 7)
    #expect(gameErrorCode { try game.progress.set("short", for: text("one more")) } == .tooLarge)
    try game.progress.set("short", for: text("text 0"))
    try game.progress.set("short", for: text("theirs"))
    try game.progress.set("short", for: text("one more"))
    #expect(game.progress[text("one more")] == "short")
  }

  @Test("a key beyond the limit is refused, and the last one within it can still be recorded")
  func keys() throws {
    let game = try device.open()
    defer { end(game) }
    try game.core.store.write { transaction in
      for number in 0..<ProgressStore.maximumKeys {
        try transaction.setCell(
          CellUpdate(key: CellKey(collection: "progress", key: "\(number)"), state: CellState(value: .max(.int(1)))))
      }
    }
    try game.progress.reload()
    let (more, known) = (ProgressKey("one more", default: 0, rule: .max), ProgressKey("9999", default: 0, rule: .max))
    #expect(gameErrorCode { try game.progress.record(2, for: more) } == .tooLarge)
    try game.progress.record(2, for: known)
    #expect(game.progress[known] == 2)
  }

  @Test("a checkpoint with more values than one commit may have is too large, and nothing of it is kept")
  func tooManyValues() throws {
    let game = try Device().open()
    defer { end(game) }
    let pending = try game.checkpoint { checkpoint in
      for number in 0...ExchangeRules.maximumCells {
        try checkpoint.record(1, for: ProgressKey("key \(number)", default: 0, rule: .max))
      }
    }
    #expect(gameErrorCode { try pending.wait() } == .tooLarge)
    #expect(game.progress[ProgressKey("key 1", default: 0, rule: .max)] == 0)
  }
}
