import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@testable import Keepsake
@testable import KeepsakeStore

/// A page of the database is lost while the game runs.
@Suite struct LostPageTests {
  let device: Device

  init() throws { device = try Device() }

  @Test("if a save's page is lost, the save before it loads with an incident, saving works, and reopening repairs")
  func lostPage() throws {
    var game = try device.open()
    var random = SeededGenerator(seed: 77)
    func text() -> String {
      (0..<25_000).map { _ in String(UInt64.random(in: 0 ... .max, using: &random), radix: 16) }.joined()
    }
    let first = Journal(text: text())
    try game.saves.capture(first, to: .byProgress).wait()
    try game.saves.capture(Journal(text: text()), to: .byProgress).wait()
    // So that no part of it is in memory.
    try game.close()
    game = try device.open()
    let frame = try game.core.store.read { transaction in
      let head = try transaction.heads(of: "journal")[0]
      return try transaction.encoded(#require(try transaction.version(head)).record.contents[0], against: nil).bytes
    }
    let file = device.url.appendingPathComponent(Store.databaseName)
    let database = try Data(contentsOf: file)
    // One of the two may cross the end of a page, and then isn't found in one piece.
    let place = try #require([50_000, 51_500].lazy.compactMap { database.range(of: frame[$0..<$0 + 32]) }.first)
      .lowerBound
    let handle = try FileHandle(forWritingTo: file)
    try handle.seek(toOffset: UInt64(place / 4_096 * 4_096))
    try handle.write(contentsOf: Data(count: 4_096))
    try handle.close()
    game.core.store.base.memory.forgetPlain()
    game.core.store.base.database.pool.releaseMemory()

    let given = try game.saves.load(.byProgress)
    #expect(given == first)
    #expect(game.incidents.map(\.kind) == [.damagedVersion])
    let next = Journal(text: text())
    try game.saves.capture(next, to: .byProgress).wait()
    try game.saves.capture(World(level: 1), to: .main).wait()
    #expect(try game.saves.load(.byProgress) == next)
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.incidents.map(\.kind) == [.recovered])
    #expect(try game.saves.load(.byProgress) == next && game.saves.load(.main) == World(level: 1))
  }
}
