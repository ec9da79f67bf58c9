import FlowerGarden
import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeStore
import Synchronization
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeTesting

/// Kills, backups and copies of devices.
@Suite(.hangLimit) struct DeviceTests {
  /// A pot whose bytes all depend on its number, so that a mixture of two pots is detected.
  private static func pot(_ number: Int) -> Pot {
    var pot = Pot(weather: UInt64(number))
    pot.height = number
    return pot
  }

  /// The number of the saved pot; 0 if there is none.
  private static func number(in game: GameData, _ what: String) throws -> Int {
    guard let found = try game.saves.load(.pot("sill")) else { return 0 }
    let whole = pot(found.height)
    let isWhole = found.soil == whole.soil && found.light == whole.light && found.photo == whole.photo
    #expect(isWhole, "\(what): pot \(found.height) is not whole")
    #expect(game.incidents.isEmpty, "\(what)")
    return found.height
  }

  @Test("a kill between captures keeps every awaited save; others are kept in order, and never in part")
  func killsAmongCaptures() async throws {
    let seed: UInt64 = 11
    // In this round the writer is held before the last capture, which is then certainly lost.
    let heldRound = 12
    let phone = try TestWorld().device("phone")
    try await onThread {
      var random = SeededGenerator(seed: seed)
      var (acknowledged, captured) = (0, 0)
      for round in 0..<25 {
        let what = "seed \(seed), round \(round)"
        let game = try phone.open(gardenID)
        let found = try Self.number(in: game, what)
        #expect(
          found >= acknowledged && found <= captured,
          "\(what): \(acknowledged) acknowledged, \(captured) captured, \(found) there")
        if round == heldRound + 1 { #expect(found < captured, "\(what): no kill came before a commit's end") }
        captured = found
        var pending: [Pending<Version>] = []
        for _ in 0..<Int.random(in: 2...12, using: &random) {
          captured += 1
          pending.append(try game.saves.capture(Self.pot(captured), to: .pot("sill")))
        }
        let waited = Int.random(in: 0..<pending.count, using: &random)
        _ = try pending[waited].wait(within: Patience.limit)
        acknowledged = found + waited + 1
        let gate = Gate()
        defer { gate.open() }
        if round == heldRound {
          _ = try game.core.store.submit { _, _ in gate.pass() }
          gate.waitForArrival()
          captured += 1
          try game.saves.capture(Self.pot(captured), to: .pot("sill"))
        }
        try phone.kill()
        #expect(phone.game == nil)
      }
    }
  }

  @Test("a kill while a thread saves continuously, across log checkpoints, keeps every acknowledged save whole")
  func killsAmongSaves() async throws {
    let phone = try TestWorld().device("phone")
    let commits = try await onThread {
      var last = 0
      for round in 0..<6 {
        let game = try phone.open(gardenID)
        let found = try Self.number(in: game, "round \(round)")
        #expect(found >= last, "round \(round): \(last) acknowledged, \(found) there")
        let acknowledged = Atomic(found)
        // About 25 KB per commit: more than the log holds before a checkpoint moves it into the database.
        let enough = DispatchSemaphore(value: 0)
        let ended = DispatchSemaphore(value: 0)
        Thread {
          var number = found
          // Ends when the killed game accepts nothing more.
          while (try? game.saves.capture(Self.pot(number + 1), to: .pot("sill")).wait(within: Patience.limit)) != nil {
            number += 1
            acknowledged.store(number, ordering: .sequentiallyConsistent)
            if number == found + 60 + round * 40 { enough.signal() }
          }
          // If saving fails before the kill, the check below finds too few.
          enough.signal()
          ended.signal()
        }.start()
        enough.wait()
        last = acknowledged.load(ordering: .sequentiallyConsistent)
        #expect(last >= found + 60 + round * 40, "round \(round): saving failed after \(last - found) saves")
        try phone.kill()
        ended.wait()
      }
      return last
    }
    #expect(commits >= 6 * 60)
  }

  @Test("a kill in the middle of a commit discards that commit, and keeps all commits before it")
  func killInCommit() async throws {
    let phone = try TestWorld().device("phone")
    let game = try phone.open(gardenID)
    try await game.saves.save(Self.pot(1), to: .pot("sill"))
    let (entered, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    defer { release.signal() }
    let found = try await onThread {
      Thread {
        // Its result doesn't matter: the game has been killed by then.
        try? game.core.store.write { transaction in
          try transaction.setFact("half", "written")
          entered.signal()
          release.wait()
        }
      }.start()
      entered.wait()
      for number in 2...5 { try game.saves.capture(Self.pot(number), to: .pot("sill")) }
      try phone.kill()
      let again = try phone.open(gardenID)
      let half: String? = try again.core.store.read { try $0.fact("half") }
      #expect(half == nil)
      return try Self.number(in: again, "after the kill")
    }
    #expect(found == 1)
  }

  @Test("a killed game sends nothing to the cloud and refuses further calls")
  func deadIsDead() async throws {
    let pair = try await Pair()
    let address = try pair.phone.address
    let before = (phone: pair.phone.traffic, exchanges: pair.world.cloud.exchanges)
    try pair.phone.kill()
    await #expect(throws: (any Error).self) { try await pair.here.game.cloud.sync() }
    // Another game that uses the address of the killed run can't reach the cloud, either.
    let folder = TemporaryFolder.url("ghost")
    defer { try? FileManager.default.removeItem(at: folder) }
    let ghost = try GameData.open(gardenID, at: folder)
    ghost.cloud.connect(address)
    let error = await #expect(throws: GameDataError.self) { try await ghost.cloud.sync() }
    #expect(error?.code == .unreachable)
    try ghost.close()
    #expect(pair.phone.traffic == before.phone && pair.world.cloud.exchanges == before.exchanges)
    try await until { pair.here.game.isClosed }
    #expect(throws: (any Error).self) { try pair.here.game.saves.capture(Pot(), to: .pot("sill")) }
    #expect(pair.phone.game == nil)
    #expect(throws: GameDataError.self) { try pair.phone.address }
    // The world continues without it.
    try await pair.there.water("sill")
    try await pair.world.settle()
  }

  @Test("a request that is under way when its device is killed doesn't reach the cloud")
  func killedRequest() async throws {
    let (clock, cloud) = (TestClock(), MemoryCloud())
    let line = DeviceLine(clock: clock)
    let link = DeviceLink(cloud, over: line, of: "phone")
    let request = ExchangeRequest(cursor: Cursor(epoch: 0, seq: 0, mark: 0), limit: 1)
    line.network = .slow(bytesPerSecond: 1)
    let underWay = Task { try await link.exchange(request) }
    try await until { line.traffic.requests == 1 }
    link.cut()
    // Its bytes arrive all the same.
    clock.hurry()
    defer { clock.stopHurrying() }
    await #expect(throws: (any Error).self) { try await underWay.value }
    #expect(cloud.exchanges == 0)
    link.mend()
    _ = try await link.exchange(request)
    #expect(cloud.exchanges == 1)
  }

  @Test("a kill that fails changes nothing: the game continues, and still syncs")
  func failedKill() async throws {
    let pair = try await Pair()
    let folder = pair.phone.url.deletingLastPathComponent()
    let aside = folder.deletingLastPathComponent().appendingPathComponent(folder.lastPathComponent + "-aside")
    try FileManager.default.moveItem(at: folder, to: aside)
    #expect { try pair.phone.kill() } throws: { $0 is StoreError }
    try? FileManager.default.removeItem(at: folder)  // What the attempt may have made.
    try FileManager.default.moveItem(at: aside, to: folder)
    try await pair.here.water("sill")
    try await pair.world.settle()
    #expect(try pair.there.pot("sill").waterings.value == 1)
  }

  @Test("a copied device counts nothing twice and loses nothing")
  func clone() async throws {
    let pair = try await Pair()
    try pair.here.claimStarterGift()
    try await pair.world.settle()
    let twin = try pair.phone.clone("twin")
    let copy = try twin.garden()
    for (device, garden) in [(pair.phone, pair.here), (twin, copy)] {
      device.network = .cut
      try garden.earn(10, for: "a quest")
      try garden.buy("seeds", for: 5)
      try await garden.water("sill")
      device.network = .good
    }
    try await pair.world.settle()
    for garden in [pair.here, pair.there, copy] {
      let view = try garden.view()
      #expect(view.gems == 110 && view.pots["sill"]?.waterings == 2, "\(view)")
    }
    #expect { try pair.phone.clone("tablet") } throws: { ($0 as? GameDataError)?.code == .misuse }
  }

  @Test("a device restored from a backup has its data, fetches the rest, and loses no device's changes")
  func backupAndRestore() async throws {
    let pair = try await Pair()
    try await pair.here.water("sill", times: 2)
    try await pair.world.settle()
    let backup = try pair.phone.backup()
    try await pair.here.water("sill", times: 3)
    try pair.here.reach(level: 5)
    try await pair.world.settle()
    try pair.phone.restore(backup)
    pair.phone.network = .cut
    let restored = try pair.phone.garden()
    #expect(try restored.pot("sill").waterings.value == 2)
    try await restored.water("sill", times: 10)
    try await pair.heal()
    for garden in [restored, pair.there] {
      #expect(try garden.pot("sill").waterings.value == 15 && garden.game.progress[.level] == 5)
    }
    // A backup of an unused device makes it a new device again.
    let empty = try pair.world.device("laptop").backup()
    try pair.phone.restore(empty)
    let fresh = try pair.phone.garden()
    try await pair.world.settle()
    #expect(try fresh.pot("sill").waterings.value == 15)
  }

  @Test("restoring a backup kills the game that is open, which then sends nothing and accepts nothing")
  func restoreUnderGame() async throws {
    let pair = try await Pair()
    let backup = try pair.phone.backup()
    let before = pair.phone.traffic
    try pair.phone.restore(backup)
    #expect(pair.phone.game == nil)
    #expect(throws: GameDataError.self) { try pair.phone.address }
    try await #require(throws: (any Error).self) { try await pair.here.game.cloud.sync() }
    #expect(pair.phone.traffic == before)
    try await until { pair.here.game.isClosed }
    #expect(throws: (any Error).self) { try pair.here.game.saves.capture(Pot(), to: .pot("sill")) }
    let again = try pair.phone.garden()
    try await pair.world.settle()
    #expect(try again.game.saves.conflict(.pot("sill")) == nil)
  }

  @Test("opening a game that is already open throws an error, and closing it keeps all captures")
  func openTwiceAndClose() async throws {
    let phone = try TestWorld().device("phone")
    let game = try phone.open(gardenID)
    #expect { try phone.open(gardenID) } throws: { ($0 as? StoreError)?.code == .inUse }
    try game.saves.capture(Self.pot(3), to: .pot("sill"))
    try phone.close()
    try phone.close()
    try phone.kill()
    #expect(try Self.number(in: phone.open(gardenID), "after closing") == 3)
  }

  /// Tasks that keep their threads busy, so that nothing else runs on the threads that all tasks share.
  private final class Spinning: Sendable {
    private let begun = Atomic(0)
    private let isOver = Atomic(false)

    func spin() {
      begun.add(1, ordering: .relaxed)
      while !isOver.load(ordering: .relaxed) {}
    }

    /// Returns when this many tasks are spinning.
    func waitForAll(_ count: Int) { while begun.load(ordering: .relaxed) < count { usleep(1_000) } }

    func end() { isOver.store(true, ordering: .relaxed) }
  }

  @Test("a game that was just connected closes even if all threads that tasks share are busy")
  func closesBesideBusyTasks() async throws {
    let phone = try TestWorld().device("phone")
    let threads = ProcessInfo.processInfo.activeProcessorCount
    let spinning = Spinning()
    let closing = Mutex<Result<Void, any Error>?>(nil)
    // Started before the tasks spin, because none of them could start it afterwards.
    Thread {
      spinning.waitForAll(threads)
      let result = Result {
        try phone.open(gardenID)
        try phone.close()
      }
      closing.withLock { $0 = result }
      spinning.end()
    }.start()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 * threads { group.addTask { spinning.spin() } }
    }
    try #require(closing.withLock { $0 }).get()
  }

  @Test("the game's own tables survive a kill, and a restored backup, like other data", arguments: [true, false])
  func records(killed: Bool) async throws {
    let phone = try TestWorld().device("phone")
    let game = try phone.open(gardenID)
    for number in 1...50 {
      try game.records.write { tables in
        try tables.execute(sql: "CREATE TABLE IF NOT EXISTS seen (number INTEGER)")
        try tables.execute(sql: "INSERT INTO seen VALUES (?)", arguments: [number])
      }
    }
    if killed { try phone.kill() } else { try phone.restore(phone.backup()) }
    let again = try phone.open(gardenID)
    #expect(try again.records.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM seen") } == 50)
    #expect(again.incidents.isEmpty)
  }

  @Test(
    "a device may have any name but an empty one, and no name leads outside of the world's folder",
    arguments: ["../../outside", "a/b", "\u{0}", "花", String(repeating: "x", count: 10_000)])
  func names(name: String) throws {
    let world = TestWorld()
    let device = try world.device(name)
    try device.open(gardenID)
    let folder = try #require(device.url.deletingLastPathComponent().lastPathComponent as String?)
    #expect(folder.hasPrefix("keepsake-world-"))
    #expect(world.devices.map(\.name) == [name])
    #expect { try world.device("") } throws: { ($0 as? GameDataError)?.code == .misuse }
  }

  @Test("a game outlives its world, and their folder is removed when both are gone")
  func lifetimes() async throws {
    var folder: URL?
    do {
      let game = try TestWorld().device("phone").garden()
      folder = game.game.url.deletingLastPathComponent()
      try await game.water("sill")
      #expect(try game.pot("sill").waterings.value == 1)
    }
    let path = try #require(folder).path
    try await until { !FileManager.default.fileExists(atPath: path) }
  }
}

/// Exit tests start processes of their own, one at a time.
@Suite(.serialized) struct MisuseTests {
  @Test("moving the clock backwards, or setting an impossible network, stops the process and reports why")
  func traps() async throws {
    let back = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      TestWorld().clock.advance(by: .seconds(-1))
    }
    let slow = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try TestWorld().device("phone").network = .slow(bytesPerSecond: 0)
    }
    let losing = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      try TestWorld().device("phone").network = .losing(every: 0)
    }
    // A process that throws fails, too, but without these texts.
    for (result, text) in [
      (back, "TestClock.advance: time can't go back"), (slow, "TestNetwork.slow: 0 bytes a second"),
      (losing, "TestNetwork.losing: one request in 0"),
    ] {
      let errors = String(decoding: result.standardErrorContent, as: UTF8.self)
      #expect(errors.contains(text))
    }
  }
}
