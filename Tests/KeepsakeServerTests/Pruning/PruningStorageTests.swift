#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Pruning in SQLite")
struct PruningStorageTests {
  private static let hour: Int64 = 3_600_000

  @Test("replaced versions go after the window, with their contents, and their ids and marks after being remembered")
  func prunes() async throws {
    try await TemporaryFolder.with { folder in
      var lab = try PruningLab(in: folder, players: 2)
      lab.rules.history = nil
      for _ in 0..<50 {
        lab.now += Self.hour
        lab.save(0)
        try await lab.sync(0)
      }
      let old = lab.players[0].cursor
      for index in [0, 1, 1] { try await lab.sync(index) }
      try await lab.prune()
      #expect(try await lab.snapshot().versions.count == 50)
      lab.now += lab.rules.windowMilliseconds + Self.hour
      for index in [0, 1] { try await lab.sync(index) }
      #expect(try await lab.prune().versions == 49)
      let pruned = try await lab.snapshot()
      #expect(pruned.versions.count == 1 && pruned.room.holders.count == 1)
      try await PruningLab.checkDatabase(lab.storage)
      // A cursor from between is known as long as ids are.
      lab.players[1].cursor = old
      try await lab.sync(1)
      #expect(lab.players[1].restarts == 0)

      lab.save(0)
      try await lab.sync(0)
      for _ in 0..<2 {
        lab.now += lab.rules.rememberedMilliseconds
        for index in [0, 1] { try await lab.sync(index) }
        try await lab.prune()
      }
      let counts = try await lab.storage.pool.read { db in
        (
          try Int.fetchOne(db, sql: "SELECT count(*) FROM covered"),
          try Int.fetchOne(db, sql: "SELECT count(*) FROM mark")
        )
      }
      #expect(try #require(counts.0) <= 1 && #require(counts.1) <= 1, "\(counts)")
      try await PruningLab.checkDatabase(lab.storage)
      // A store set back to a backup from before that fetches everything again and offers nothing.
      lab.players[1].cursor = old
      lab.players[1].cursor.seq -= 1
      lab.players[1].cursor.mark = 7
      try await lab.sync(1)
      #expect(lab.players[1].restarts == 1 && lab.players[1].heads == lab.players[0].heads)
      try await lab.storage.close()
    }
  }

  @Test("a player whose room is used up gets it back by deleting saves: records go with the contents")
  func deletesMakeRoom() async throws {
    try await TemporaryFolder.with { folder in
      var lab = try PruningLab(in: folder, players: 1)
      for _ in 0..<600 {
        lab.now += 30_000
        lab.save(0, slot: "old", deltaBytes: 200)
        try await lab.sync(0)
      }
      lab.now += 2 * Self.hour
      try await lab.sync(0)
      let used = try await lab.storage.load(ReadSet(), of: PruningLab.container).used
      lab.quota = used + 500
      lab.save(0, slot: "old", tombstone: true)
      try await lab.sync(0)
      #expect(try await lab.snapshot(slot: "old").versions.count == 601)
      // Needs more than the contents of the deleted saves took.
      lab.save(0, slot: "new", deltaBytes: 40_000)
      try await lab.sync(0)
      let left = try await lab.snapshot(slot: "old")
      #expect(left.versions.count < 50, "\(left.versions.count) records of the deleted slot are left")
      try await PruningLab.checkDatabase(lab.storage)
      try await lab.storage.close()
    }
  }

  @Test("the service prunes what is due, once, and leaves alone what was pruned a moment ago")
  func service() async throws {
    try await TemporaryFolder.with { folder in
      var lab = try PruningLab(in: folder, players: 1)
      for _ in 0..<40 {
        lab.now += Self.hour
        lab.save(0)
        try await lab.sync(0)
      }
      #expect(try await lab.storage.containersToPrune(after: nil, now: lab.now, limit: 10).containers.count == 1)
      try await lab.prune()
      #expect(try await lab.storage.containersToPrune(after: nil, now: lab.now, limit: 10).containers.isEmpty)
      lab.now += PruningLab.day
      #expect(
        try await lab.storage.containersToPrune(after: nil, now: lab.now, limit: 10).containers
          == [PruningLab.container])
      try await lab.storage.close()
    }
  }

  @Test("a sweep of the service prunes every player that is due and counts what it removed, and a second one nothing")
  func sweep() async throws {
    try await TemporaryFolder.with { folder in
      var lab = try PruningLab(in: folder, players: 1)
      for _ in 0..<100 {
        lab.now += 30_000
        lab.save(0)
        try await lab.sync(0)
      }
      let registry = PrometheusRegistry()
      let metrics = ServerMetrics(registry)
      func sweep(_ lab: PruningLab) async {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        await PruningService(storage: lab.storage, metrics: metrics, logger: logger, clock: { lab.now }).sweep()
      }
      // Notes where the player is.
      await sweep(lab)
      let before = try await lab.snapshot().versions.count
      lab.now += lab.rules.windowMilliseconds + Self.hour
      try await lab.sync(0)
      await sweep(lab)
      let left = try await lab.snapshot().versions.count
      #expect(before == 100 && left < before / 2)
      let figures = registry.text()
      #expect(figures.contains("keepsake_pruned_versions_total \(before - left)"))
      await sweep(lab)
      #expect(registry.text() == figures)
      try await lab.storage.close()
    }
  }
}
#endif
