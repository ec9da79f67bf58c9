import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

/// Pruning changes nothing that a device can ever find out.
@Suite struct PruningTests {
  /// Compares how versions are related, by what the cloud kept and by everything that was ever accepted.
  private func compare(_ ids: [VersionID], in world: PruningWorld, _ seed: UInt64) throws {
    var unrelated: [VersionID] = []
    for (index, one) in ids.enumerated() {
      var isBeside = true
      for other in ids[..<index] {
        for (younger, older) in [(one, other), (other, one)] {
          let (before, after) = (descends(younger, older, world.whole), descends(younger, older, world.kept))
          try #require(before == after, "\(seed): \(younger) from \(older)")
          if before, unrelated.contains(other) { isBeside = false }
        }
      }
      if isBeside { unrelated.append(one) }
    }
    // What may become the sides of a conflict.
    for (index, one) in unrelated.enumerated() {
      for other in unrelated[..<index] {
        let kept = try Resolution.commonAncestors(of: [one, other], record: world.kept)
        let whole = try Resolution.commonAncestors(of: [one, other], record: world.whole)
        try #require(kept.known == whole.known && kept.related == whole.related, "\(seed): \(one) and \(other)")
      }
    }
    let kept = try Resolution.mergeAncestors(of: unrelated, record: world.kept)
    let whole = try Resolution.mergeAncestors(of: unrelated, record: world.whole)
    try #require(
      kept.all == whole.all && kept.common == whole.common && kept.isCut == whole.isCut, "\(seed): \(unrelated)")
  }

  private func descends(_ id: VersionID, _ older: VersionID, _ record: (VersionID) -> VersionRecord?) -> Bool {
    var open = [id]
    var seen: Set<VersionID> = []
    while let next = open.popLast() {
      for id in record(next)?.covers ?? [] where seen.insert(id).inserted { open.append(id) }
    }
    return seen.contains(older)
  }

  private func play(seed: UInt64, planting bugs: Set<PlantedBug> = []) throws -> (pruned: Int, forgotten: Int) {
    var world = PruningWorld(seed: seed, players: Int(seed % 4) + 1)
    world.cloud.faults = Faults(planting: bugs)
    var backups: [Int: (player: PruningWorld.Player, time: Int64)] = [:]
    for step in 0..<150 {
      world.now += Int64.random(in: 0...6, using: &world.random) * PruningWorld.hour / 2
      // Some are away for long.
      let index = min(
        Int.random(in: 0..<world.players.count, using: &world.random),
        Int.random(in: 0..<world.players.count, using: &world.random))
      switch Int.random(in: 0..<10, using: &world.random) {
      case 0..<4: world.save(index)
      case 4..<7: try world.sync(index)
      case 7: try world.sync(index, losingResponse: true)
      case 8:
        if let backup = backups[index], world.random.once(in: 2) {
          // Within the window everything goes on as if nothing had been pruned.
          if world.now - backup.time < world.rules.windowMilliseconds {
            world.players[index] = backup.player
            try world.sync(index, losingResponse: Bool.random(using: &world.random))
          }
          backups[index] = nil
        } else if backups[index] == nil {
          backups[index] = (world.players[index], world.now)
        }
      default: try world.prune()
      }
      guard step % 10 == 9 else { continue }
      // What devices have and may continue from, as far as the cloud has heard of it.
      let seen = Set(world.players.flatMap(\.heads)).filter { world.accepted[$0] != nil }
      let heads = world.cloud.heads(of: "main")
      try #require(seen.allSatisfy { world.kept($0) != nil }, "\(seed): a device's head is gone")
      try compare(seen.union(heads).sorted(), in: world, seed)
    }
    try world.prune()
    for index in world.players.indices { try #require(try !world.sync(index), "\(seed): starts over") }
    for index in world.players.indices { try #require(try !world.sync(index), "\(seed): starts over") }
    world.players.append(PruningWorld.Player())
    try world.sync(world.players.count - 1)
    for (index, player) in world.players.enumerated() {
      try #require(player.heads == world.cloud.heads(of: "main"), "\(seed): device \(index) has other heads")
    }
    let remaining = world.players[world.players.count - 1].records.keys.sorted()
    try compare(remaining, in: world, seed)
    return (world.pruned, world.forgotten)
  }

  @Test(
    "it is noticed if versions go that a device needs, or without an heir",
    arguments: [
      PlantedBug.pruneWhereDevicesAre, .pruneWithoutHeir,
    ])
  func plantedBugs(bug: PlantedBug) {
    // An error is what `#require` throws; it isn't an issue of this test.
    let noticed = (0..<20 as Range<UInt64>).contains { seed in
      var isNoticed = false
      withKnownIssue(isIntermittent: true) {
        do { _ = try play(seed: seed, planting: [bug]) } catch {
          isNoticed = true
          throw error
        }
      }
      return isNoticed
    }
    #expect(noticed)
  }

  @Test("no id is forgotten while a new device catches up: it gets on a later page what replaced the version it has")
  func newcomer() throws {
    var world = PruningWorld(seed: 5, players: 2)
    world.rules.history = nil
    (world.rules.windowMilliseconds, world.rules.rememberedMilliseconds) = (PruningWorld.hour, 2 * PruningWorld.hour)
    for _ in 0..<240 {
      world.now += PruningWorld.hour / 60
      world.save(0)
      try world.sync(0)
      try world.prune()
    }
    try world.sync(1, pages: 1)
    #expect(world.players[1].cursor.ahead != nil)
    func pass(_ times: Int) throws {
      for _ in 0..<times {
        world.now += PruningWorld.hour
        try world.sync(0)
        try world.prune()
      }
    }
    let (pruned, forgotten) = (world.pruned, world.forgotten)
    try pass(4)
    #expect(world.pruned > pruned && world.forgotten == forgotten)
    try world.sync(1)
    #expect(world.players[1].heads == world.players[0].heads)
    // Its next request says that it has everything.
    try world.sync(1)
    try pass(3)
    #expect(world.forgotten > forgotten)
  }

  @Test("devices, new ones and those that were away, find the same relations before and after")
  func relationsStay() throws {
    var (pruned, forgotten) = (0, 0)
    for seed in 0..<TestDepth.prunedWorlds {
      let done = try play(seed: seed)
      (pruned, forgotten) = (pruned + done.pruned, forgotten + done.forgotten)
    }
    print("pruning: \(pruned) versions, \(forgotten) ids")
    #expect(pruned > 1_000 && forgotten > 100, "\(pruned) \(forgotten)")
  }
}
