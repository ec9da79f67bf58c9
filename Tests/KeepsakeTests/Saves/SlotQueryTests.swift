import Foundation
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// Live queries of slots.
@Suite struct SlotQueryTests {
  private func slot(_ name: String) -> Slot<World> { Slot(name) }

  private func names(_ update: SlotQuery.Update?) -> [[String]] {
    switch update {
    case nil: []
    case .gathered(let slots)?: [slots.map(\.name)]
    case .updated(let changes)?: [changes.added, changes.changed, changes.removed].map { $0.map(\.name) }
    }
  }

  @Test("a query begins with the matching slots, then reports additions, changes and removals of matching ones only")
  func tellsChanges() async throws {
    let game = try Device().open()
    defer { end(game) }
    for name in ["level-1", "level-2", "other"] {
      try await game.saves.save(World(), to: slot(name), SaveMetadata(progress: 1))
    }
    try await game.saves.save(World(), to: slot("level-3"), SaveMetadata(progress: 0))
    let query = try game.saves.query(matching: "level-*") { ($0.current.metadata.progress ?? 0) > 0.5 }
    var updates = query.makeAsyncIterator()
    #expect(names(try await updates.next()) == [["level-1", "level-2"]])
    // The first two of these don't match.
    try await game.saves.save(World(level: 2), to: slot("other"), SaveMetadata(progress: 1))
    try await game.saves.save(World(level: 2), to: slot("level-3"), SaveMetadata(progress: 0.25))
    try await game.saves.save(World(level: 2), to: slot("level-2"), SaveMetadata(progress: 1))
    #expect(names(try await updates.next()) == [[], ["level-2"], []])
    // Several changes at once are one update.
    try await game.saves.save(World(level: 2), to: slot("level-3"), SaveMetadata(progress: 1))
    try await game.saves.save(World(level: 2), to: slot("level-2"), SaveMetadata(progress: 0))
    try game.saves.delete(slot("level-1"))
    #expect(names(try await updates.next()) == [["level-3"], [], ["level-1", "level-2"]])
    try game.saves.pin(try #require(try game.saves.history(of: "level-3").first).id)
    #expect(names(try await updates.next()) == [[], ["level-3"], []])
  }

  @Test("a query reports what other devices saved, and when the cloud has this device's save", .hangLimit)
  func tellsOfOthers() async throws {
    let cloud = MemoryCloud()
    let here = try Device().open()
    let there = try Device().open()
    defer {
      end(here)
      end(there)
    }
    here.cloud.connect(cloud.address)
    there.cloud.connect(cloud.address)
    var updates = try there.saves.query().makeAsyncIterator()
    #expect(names(try await updates.next()) == [[]])
    try await here.saves.save(World(level: 4), to: .main)
    #expect(names(try await updates.next()) == [["main"], [], []])
    try await there.saves.save(World(level: 5), to: .main)
    var states: [Version.State] = []
    while states.last != .stored {
      guard case .updated(let changes)? = try await updates.next() else { break }
      states += changes.changed.map(\.current.state)
    }
    #expect(states.last == .stored)
  }

  @Test("a new game replaces another device's save that a query has reported, but not one that wasn't shown")
  func toldIsShown() async throws {
    let cloud = MemoryCloud()
    let here = try Device().open()
    let there = try Device().open()
    defer {
      end(here)
      end(there)
    }
    for game in [here, there] {
      game.cloud.connect(cloud.address)
      try await game.cloud.sync()
    }
    var updates = try there.saves.query(matching: "shown").makeAsyncIterator()
    _ = try await updates.next()
    for name in ["shown", "hidden"] { try await here.saves.save(World(heading: 1), to: slot(name)) }
    #expect(names(try await updates.next()) == [["shown"], [], []])
    // The event that brought the one may have come before the other was sent.
    try await here.cloud.sync()
    try await there.cloud.sync()
    for name in ["shown", "hidden"] { try await there.saves.save(World(heading: 2), to: slot(name)) }
    #expect(try there.saves.conflict(slot("shown")) == nil)
    #expect(try there.saves.conflict(slot("hidden"))?.sides.count == 2)
  }

  @Test("a query loses no update while several tasks write as fast as they can", .hangLimit)
  func losesNothing() async throws {
    let game = try Device().open()
    defer { end(game) }
    let (slots, rounds) = (6, 15)
    let query = try game.saves.query(matching: "slot ?") { !$0.name.hasSuffix("z") }
    let latest = Shared<[String: Int]>([:])
    let reader = Task {
      var shown: [String: Int] = [:]
      for try await update in query {
        switch update {
        case .gathered(let slots): for slot in slots { shown[slot.name] = Int(slot.current.metadata.playtime ?? 0) }
        case .updated(let changes):
          for slot in changes.added {
            #expect(shown[slot.name] == nil)
            shown[slot.name] = Int(slot.current.metadata.playtime ?? 0)
          }
          for slot in changes.changed {
            let playtime = Int(slot.current.metadata.playtime ?? 0)
            #expect((shown[slot.name] ?? .max) < playtime)
            shown[slot.name] = playtime
          }
          for slot in changes.removed { #expect(shown.removeValue(forKey: slot.name) != nil) }
        }
        latest.value = shown
        if shown["slot e"] != nil { break }
      }
      return shown
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<slots {
        group.addTask {
          for round in 1...rounds {
            try game.saves.capture(
              World(level: round), to: slot("slot \(number)"), SaveMetadata(playtime: Double(round)))
            if round % 4 == 0 { await Task.yield() }
          }
          if number % 2 == 1 { try game.saves.delete(slot("slot \(number)")) }
        }
      }
      try await group.waitForAll()
    }
    // Only the updates of the tasks' own writes lead to this, and not the one of the save below.
    let expected = ["slot 0": rounds, "slot 2": rounds, "slot 4": rounds]
    try await until("the last save and the last delete have been reported") { latest.value == expected }
    // Ends the reader, after everything that it still has to report.
    try await game.saves.save(World(), to: slot("slot e"))
    let shown = try await reader.value
    #expect(shown == expected.merging(["slot e": 0]) { $1 })
  }

  @Test("a query ends when the game is closed, and when its task is cancelled", .hangLimit)
  func ends() async throws {
    let game = try Device().open()
    let query = try game.saves.query()
    let (gathered, tell) = AsyncStream<Void>.makeStream()
    func listen() -> Task<Int, any Error> {
      Task {
        var count = 0
        for try await _ in query {
          count += 1
          tell.yield()
        }
        return count
      }
    }
    let (first, second) = (listen(), listen())
    var told = gathered.makeAsyncIterator()
    for _ in 0..<2 { await told.next() }
    first.cancel()
    #expect(try await first.value == 1)
    try game.close()
    #expect(try await second.value == 1)
    var after = query.makeAsyncIterator()
    #expect(try await after.next() == nil)
  }

  @Test(
    "patterns match whole names",
    arguments: [
      ("level-*", ["level-", "level-1", "level-*"], ["level", "a level-1", "Level-1"]),
      ("*", ["", "a", "*"], []),
      ("?", ["a", "é", "👩‍🚀"], ["", "ab"]),
      ("*.save", [".save", "a.save", "a.save.save"], ["save", "a.saves"]),
      ("a*b*c", ["abc", "axbxbxc"], ["ab", "abcd", "acb"]),
      ("[abc]?", ["ax", "cc"], ["dx", "a"]),
      ("[0-9a-c][!0-9]", ["0x", "b-"], ["d-", "00"]),
      ("[]x]", ["]", "x"], ["[", "]x"]),
      ("[*]", ["*"], ["a"]),
      ("[a-]", ["a", "-"], ["b"]),
      ("caf\u{e9}", ["cafe\u{301}"], ["cafe"]),
      ("", [""], ["a"]),
    ])
  func patterns(pattern: String, matching: [String], others: [String]) throws {
    let pattern = try NamePattern(pattern)
    for name in matching { #expect(pattern.matches(name), "\(name)") }
    for name in others { #expect(!pattern.matches(name), "\(name)") }
  }

  @Test("an invalid pattern is refused, and a pathological one is matched in reasonable time")
  func badPatterns() throws {
    let game = try Device().open()
    defer { end(game) }
    for pattern in ["[", "a[b", "[]", "[!", "[z-a]", String(repeating: "a", count: 1_025)] {
      #expect(gameErrorCode { _ = try game.saves.query(matching: pattern) } == .misuse, "\(pattern.prefix(20))")
    }
    let wicked = try NamePattern(String(repeating: "a*", count: 400) + "b")
    #expect(!wicked.matches(String(repeating: "a", count: 10_000)))
  }
}
