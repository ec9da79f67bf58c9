import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeStore
import KeepsakeTesting
import Synchronization
import TestSupport
import Testing

@testable import Keepsake

/// Slots that are local from the beginning, or leave the cloud and become local.
@Suite(.hangLimit) struct LocalSlotsTests: AtHome {
  let home: Household

  init() throws { home = try Household() }

  /// Opens the games of the phone and the tablet, connected, with a save that both have.
  private func bothPlaying(_ level: Int? = 2) async throws -> (here: GameData, there: GameData) {
    let (here, there) = (try phone.open(), try tablet.open())
    for game in [here, there] {
      game.cloud.connect(cloud.address)
      try await game.cloud.sync()
    }
    guard let level else { return (here, there) }
    try await here.saves.save(World(level: level), to: .main)
    try await here.cloud.sync()
    try await until { try there.saves.load(.main)?.level == level }
    return (here, there)
  }

  /// The versions of a slot that the cloud has received and still has.
  private func told(_ slot: String = "main", _ container: MemoryContainer? = nil) -> [VersionRecord] {
    (container ?? cloud.container).changes(after: 0, limit: 10_000).compactMap { change in
      guard case .version(let record) = change.item, record.slot == slot else { return nil }
      return record
    }
  }

  /// The slots of the versions that are queued for sending.
  private func waiting(_ game: GameData) throws -> [String] {
    try game.core.store.read { transaction in
      try transaction.outbox(limit: 1_000).flatMap(\.versions).compactMap { try transaction.version($0)?.record.slot }
    }
  }

  private let secret = Slot<World>("secret")

  // MARK: Becoming local and syncing again

  @Test("saves in a local slot are never sent, also after restarts, and work like any other saves")
  func stays() async throws {
    var game = try phone.open()
    try game.saves.keepLocal(secret, cloudCopy: .removed)
    #expect(try game.saves.isLocal(secret) && !game.saves.isLocal(.main))
    #expect(try game.saves.status(of: secret).state == .empty)
    game.cloud.connect(cloud.address)
    for level in 1...3 { try await game.saves.save(World(level: level), to: secret) }
    try await game.saves.save(World(level: 9), to: .main)
    try await game.cloud.sync()
    #expect(told("secret").isEmpty && told().count == 1)
    #expect(try game.saves.status(of: secret).state == .local(.kept) && game.saves.status(of: .main).state == .stored)
    #expect(cloud.container.slots() == ["main"])
    try game.close()

    game = try phone.open()
    defer { end(game) }
    game.cloud.connect(cloud.address)
    #expect(try game.saves.load(secret)?.level == 3)
    try await game.saves.save(World(level: 4), to: secret)
    try await game.cloud.sync()
    #expect(cloud.container.slots() == ["main"])
    #expect(try game.saves.conflict(secret) == nil)
    #expect(try game.saves.history(of: secret).map(\.state) == [.local, .local, .local, .local])
    let list = try game.saves.list()
    #expect(list.map(\.name) == ["main", "secret"] && list.map(\.isLocal) == [false, true])
    let second = try game.saves.history(of: secret)[2]
    #expect(try game.saves.value(of: second.id, in: secret).level == 2)
    try game.saves.restore(second.id, in: secret)
    #expect(try game.saves.load(secret)?.level == 2)
    try game.saves.delete(secret)
    #expect(try game.saves.load(secret) == nil && game.saves.list().map(\.name) == ["main"])
    #expect(try game.saves.isLocal(secret), "deleted, but still declared local")
    try await game.saves.save(World(level: 5), to: secret)
    try await game.cloud.sync()
    #expect(cloud.container.slots() == ["main"] && game.cloud.status.waitingCommits == 0)
    #expect(try waiting(game).isEmpty)
  }

  @Test("a slot can become local and sync again while the game continues, without a load or a conflict")
  func playsOn() async throws {
    let (here, there) = try await bothPlaying()
    defer {
      end(here)
      end(there)
    }
    for round in 1...3 {
      try here.saves.keepLocal(.main, cloudCopy: round == 2 ? .removed : .kept)
      try await here.saves.save(World(level: 10 * round), to: .main)
      #expect(try here.saves.conflict(.main) == nil, "round \(round)")
      try here.saves.syncAgain(.main)
      try await here.saves.save(World(level: 10 * round + 1), to: .main)
      #expect(try here.saves.conflict(.main) == nil, "round \(round)")
      try await settle(here, there)
      #expect(try there.saves.load(.main)?.level == 10 * round + 1, "round \(round)")
      #expect(try there.saves.conflict(.main) == nil && cloud.container.heads(of: "main").count == 1, "round \(round)")
    }
    // All saves are in the history, but no version that only records the slot becoming local.
    let history = try here.saves.history(of: .main).filter { !$0.isDeleted }
    let levels = try Set(history.map { try here.saves.value(of: $0.id, in: .main).level })
    #expect(levels == [2, 10, 11, 20, 21, 30, 31])
    #expect(try here.saves.history(of: .main).filter(\.isDeleted).count == 1, "it was removed from the cloud once")
  }

  @Test("a slot that leaves the cloud stays local, and is deleted elsewhere except for saves made there meanwhile")
  func leaves() async throws {
    let (here, there) = try await bothPlaying()
    defer {
      end(here)
      end(there)
    }
    there.cloud.disconnect()
    try await until { there.cloud.status.phase == .off }
    try here.saves.keepLocal(.main, cloudCopy: .removed)
    #expect(try here.saves.load(.main)?.level == 2)
    #expect(try here.saves.status(of: .main).state == .local(.kept))
    try await here.cloud.sync()
    #expect(told().contains { $0.tombstone })
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    #expect(try there.saves.load(.main) == nil && there.saves.list().isEmpty)
    #expect(try here.saves.load(.main)?.level == 2)

    // Another device that was offline.
    try here.saves.syncAgain(.main)
    try await settle(here, there)
    #expect(try there.saves.load(.main)?.level == 2)
    there.cloud.disconnect()
    try await until { there.cloud.status.phase == .off }
    try await there.saves.save(World(level: 3, cleared: ["there"]), to: .main)
    try here.saves.keepLocal(.main, cloudCopy: .removed)
    try await here.saves.save(World(level: 7, cleared: ["here"]), to: .main)
    try await here.cloud.sync()
    there.cloud.connect(cloud.address)
    try await settle(there, here)
    #expect(try there.saves.load(.main) == World(level: 3, cleared: ["there"]))
    #expect(try here.saves.load(.main) == World(level: 7, cleared: ["here"]))
    let elsewhere = try #require(try here.saves.status(of: .main).elsewhere)
    #expect(elsewhere.state == .stored)
    #expect(try here.saves.value(of: elsewhere.id, in: .main).level == 3)
    #expect(try here.saves.status(of: .main).state == .local(.kept))
    // Synced again: merged by the rules of the fields, from the common ancestor.
    try here.saves.syncAgain(.main)
    #expect(try here.saves.load(.main) == World(level: 7, cleared: ["here", "there"]))
    try await settle(here, there)
    #expect(try there.saves.load(.main) == World(level: 7, cleared: ["here", "there"]))
  }

  @Test("a slot that stops sending stays in the cloud; others' saves aren't reported, and merge once it syncs again")
  func onlyStops() async throws {
    let (here, there) = try await bothPlaying()
    defer {
      end(here)
      end(there)
    }
    // With the cloud switched off, no exchange in progress can still send the save.
    here.cloud.isEnabled = false
    try await until { here.cloud.status.phase == .paused }
    try await here.saves.save(World(level: 4), to: .main)
    try await here.progress.record(4, for: .level).value
    try here.saves.keepLocal(.main, cloudCopy: .kept)
    // The queued save is no longer sent, but what was queued beside it is.
    #expect(try waiting(here).isEmpty && here.core.store.read { try $0.outboxCount() } == 1)
    here.cloud.isEnabled = true
    try await settle(here, there)
    #expect(told().count == 1 && there.progress[.level] == 4)
    _ = here.takeChanges()
    try await there.saves.save(World(level: 3, cleared: ["there"]), to: .main)
    try await settle(there, here)
    #expect(try here.saves.load(.main)?.level == 4)
    #expect(try here.saves.status(of: .main).elsewhere?.id == there.saves.history(of: .main).first?.id)
    #expect(!here.takeChanges().contains { if case .slots = $0 { true } else { false } })
    try await here.saves.save(World(level: 6), to: .main)
    try here.saves.syncAgain(.main)
    #expect(try here.saves.load(.main) == World(level: 6, cleared: ["there"]))
    try await settle(here, there)
    #expect(try there.saves.load(.main) == World(level: 6, cleared: ["there"]))
  }

  @Test("an unchanged local slot shows the cloud's save when it syncs again, and a deleted one deletes nothing there")
  func nothingNew() async throws {
    let (here, there) = try await bothPlaying()
    defer {
      end(here)
      end(there)
    }
    try here.saves.keepLocal(.main, cloudCopy: .kept)
    try await there.saves.save(World(level: 3), to: .main)
    try await settle(there, here)
    #expect(try here.saves.load(.main)?.level == 2)
    try here.saves.syncAgain(.main)
    #expect(try here.saves.load(.main)?.level == 3 && here.saves.conflict(.main) == nil)

    try here.saves.keepLocal(.main, cloudCopy: .kept)
    try here.saves.delete(.main)
    #expect(try here.saves.load(.main) == nil)
    try here.saves.syncAgain(.main)
    try await settle(here, there)
    #expect(try here.saves.load(.main)?.level == 3 && there.saves.load(.main)?.level == 3)
  }

  @Test("a copy left in the cloud can be removed later, but not what other devices have saved since")
  func removesLater() async throws {
    let (here, there) = try await bothPlaying()
    defer {
      end(here)
      end(there)
    }
    try here.saves.keepLocal(.main, cloudCopy: .kept)
    try here.saves.keepLocal(.main, cloudCopy: .removed)
    try await settle(here, there)
    #expect(try there.saves.load(.main) == nil && here.saves.load(.main)?.level == 2)
    try await there.saves.save(World(level: 5), to: .main)
    try await settle(there, here)
    try here.saves.keepLocal(.main, cloudCopy: .removed)
    try await settle(here, there)
    #expect(try there.saves.load(.main)?.level == 5 && here.saves.load(.main)?.level == 2)
  }

  // MARK: Failures and invalid calls

  @Test("a slot that becomes local offline, while its upload waits, isn't sent, and nothing waits forever")
  func leavesUnderWay() async throws {
    let (here, there) = try await bothPlaying(nil)
    defer {
      end(here)
      end(there)
    }
    cloud.isCut = true
    var random = SystemRandomNumberGenerator()
    // Too large to be part of an exchange: it waits for an upload of its own.
    let text = String((0..<400_000).map { _ in Character(Unicode.Scalar(UInt8.random(in: 33...126, using: &random))) })
    try await here.saves.save(Journal(text: text), to: .asking)
    await #expect { try await here.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .unreachable }
    for copy in [CloudCopy.kept, .removed] { try here.saves.keepLocal(Slot<Journal>.asking, cloudCopy: copy) }
    try await here.saves.save(Journal(text: text + "!"), to: .asking)
    try await heal(here, there)
    try await settle(here, there)
    #expect(told("journal").allSatisfy { $0.tombstone } && here.cloud.status.waitingCommits == 0)
    #expect(try there.saves.load(Slot<Journal>.asking) == nil)
    #expect(try here.saves.load(Slot<Journal>.asking)?.text.count == 400_001)
    try here.saves.syncAgain(Slot<Journal>.asking)
    try await settle(here, there)
    #expect(try there.saves.load(Slot<Journal>.asking)?.text.count == 400_001)
  }

  @Test("a restored cloud receives nothing of a local slot, and learns again that the slot was removed")
  func restoredCloud() async throws {
    let (here, there) = try await bothPlaying()
    defer {
      end(here)
      end(there)
    }
    let backup = cloud.container
    try await here.saves.save(World(level: 3), to: .main)
    try here.saves.keepLocal(.main, cloudCopy: .removed)
    try here.saves.keepLocal(secret, cloudCopy: .kept)
    try await here.saves.save(World(level: 5), to: secret)
    try await here.saves.save(World(level: 8), to: Slot("other"))
    try await here.cloud.sync()
    there.cloud.disconnect()
    try await until { there.cloud.status.phase == .off }
    cloud.container = backup
    try await here.cloud.sync()
    #expect(told("secret").isEmpty && told("other").count == 1)
    let heads = cloud.container.heads(of: "main").compactMap { cloud.container.version($0)?.record }
    #expect(heads.map(\.tombstone) == [true])
    #expect(try here.saves.load(.main)?.level == 3 && here.saves.load(secret)?.level == 5)
    #expect(here.cloud.status.waitingCommits == 0)
    // A slot that only stopped sending isn't sent to a restored cloud, either.
    try here.saves.syncAgain(.main)
    try await here.cloud.sync()
    try here.saves.keepLocal(.main, cloudCopy: .kept)
    var empty = MemoryContainer(epoch: 2)
    empty.advance(to: Cursor(epoch: 2, seq: 0, mark: 0))
    cloud.container = empty
    try await here.cloud.sync()
    #expect(told().allSatisfy { $0.tombstone } && told("secret").isEmpty && told("other").count == 1)
    #expect(try here.saves.load(.main)?.level == 3)
  }

  @Test("a checkpoint of a local and a synced slot is atomic on this device, and only the synced part is sent")
  func checkpoint() async throws {
    let (here, there) = try await bothPlaying()
    defer {
      end(here)
      end(there)
    }
    try here.saves.keepLocal(secret, cloudCopy: .kept)
    try await here.checkpoint {
      try $0.save(World(level: 5), to: secret)
      try $0.save(World(level: 6), to: .main)
      try $0.record(6, for: .level)
    }.value
    await #expect {
      try await here.checkpoint {
        try $0.save(World(level: 7), to: secret)
        try $0.spend(10, .gems, for: "nothing in the purse")
      }.value
    } throws: {
      ($0 as? GameDataError)?.code == .insufficient(0, of: 0)
    }
    #expect(try here.saves.load(secret)?.level == 5)
    try await settle(here, there)
    #expect(try there.saves.load(.main)?.level == 6 && there.progress[.level] == 6 && there.saves.load(secret) == nil)
    #expect(told("secret").isEmpty)
  }

  @Test("a local slot and another device's save of the same name don't affect each other, whichever comes first")
  func sameName() async throws {
    let here = try phone.open()
    let there = try tablet.open()
    defer {
      end(here)
      end(there)
    }
    try here.saves.keepLocal(.main, cloudCopy: .kept)
    there.cloud.connect(cloud.address)
    try await there.saves.save(World(level: 3, cleared: ["there"]), to: .main)
    try await there.cloud.sync()
    here.cloud.connect(cloud.address)
    try await here.cloud.sync()
    #expect(try here.saves.load(.main) == nil && here.saves.list().isEmpty)
    #expect(try here.saves.status(of: .main).elsewhere?.slot == "main")
    try await here.saves.save(World(level: 1, cleared: ["here"]), to: .main)
    try await settle(here, there)
    #expect(try there.saves.load(.main)?.level == 3 && here.saves.load(.main)?.level == 1)
    try here.saves.delete(.main)
    try await settle(here, there)
    #expect(try there.saves.load(.main)?.level == 3)
    try await here.saves.save(World(level: 1, cleared: ["here"]), to: .main)
    try here.saves.syncAgain(.main)
    try await settle(here, there)
    #expect(try there.saves.load(.main) == World(level: 3, cleared: ["here", "there"]))
  }

  @Test("after a kill at any moment, the slot is either local or synced, and has all acknowledged saves")
  func kills() async throws {
    let world = TestWorld()
    let phone = try world.device("phone")
    let slot = Slot<World>("main")
    let found = try await onThread {
      var rounds = 0
      for round in 0..<8 {
        let game = try phone.open("com.example.space")
        if round == 0 { try game.saves.capture(World(level: 1), to: slot).wait() }
        let level = try #require(try game.saves.load(slot)?.level, "round \(round)")
        #expect(level >= rounds, "round \(round)")
        #expect(try game.saves.conflict(slot) == nil && game.saves.list().map(\.name) == ["main"], "round \(round)")
        let acknowledged = Atomic(level)
        let (enough, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        Thread {
          var number = level
          do {
            // Ends when the killed game accepts nothing more.
            while true {
              try game.saves.keepLocal(slot, cloudCopy: number % 3 == 0 ? .removed : .kept)
              try game.saves.capture(World(level: number + 1), to: slot).wait()
              number += 1
              acknowledged.store(number, ordering: .sequentiallyConsistent)
              try game.saves.syncAgain(slot)
              if number == level + 3 + round { enough.signal() }
            }
          } catch {
            // A failure before that fails the test, because the level that is found is too low.
            enough.signal()
          }
          ended.signal()
        }.start()
        enough.wait()
        rounds = acknowledged.load(ordering: .sequentiallyConsistent)
        try phone.kill()
        ended.wait()
      }
      return rounds
    }
    #expect(found >= 8 * 3)
  }

  @Test("if the store can't be written, a slot remains local or synced as it was, and the game can go on saving")
  func noDisk() async throws {
    let game = try phone.open()
    defer { end(game) }
    game.cloud.connect(cloud.address)
    try await game.saves.save(World(level: 2), to: .main)
    try await game.cloud.sync()
    game.cloud.disconnect()
    try await until { game.cloud.status.phase == .off }
    // Another connection begins a write transaction, and doesn't end it.
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(
      path: phone.url.appendingPathComponent(Store.databaseName).path, configuration: configuration)
    try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }
    #expect(storeErrorCode { try game.saves.keepLocal(.main, cloudCopy: .removed) } == .inUse)
    try other.inDatabase { try $0.execute(sql: "ROLLBACK") }
    #expect(try !game.saves.isLocal(.main))
    try await game.saves.save(World(level: 3), to: .main)
    try game.saves.keepLocal(.main, cloudCopy: .removed)
    try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }
    #expect(storeErrorCode { try game.saves.syncAgain(.main) } == .inUse)
    try other.inDatabase { try $0.execute(sql: "ROLLBACK") }
    try other.close()
    try await game.saves.save(World(level: 4), to: .main)
    #expect(try game.saves.isLocal(.main) && game.saves.conflict(.main) == nil && game.saves.load(.main)?.level == 4)
  }

  @Test("a slot in conflict can't become local, invalid names are refused, and nothing changes")
  func refusals() async throws {
    let (here, there) = try await bothPlaying()
    defer {
      end(here)
      end(there)
    }
    for name in ["", "a\u{1}b", "\u{1}slot/main", "\u{E000}file/level.dat", String(repeating: "n", count: 5_000)] {
      #expect(gameErrorCode { try here.saves.keepLocal(name, cloudCopy: .kept) } == .misuse, "\(name.prefix(20))")
      #expect(gameErrorCode { try here.saves.syncAgain(name) } == .misuse, "\(name.prefix(20))")
    }
    #expect(gameErrorCode { try here.saves.capture(World(), to: Slot("\u{E000}file/level.dat")) } == .misuse)
    #expect(gameErrorCode { _ = try here.saves.load(Slot<World>("\u{E000}file/level.dat")) } == .misuse)
    cloud.isCut = true
    try await here.saves.save(World(level: 4), to: .main)
    try await there.saves.save(World(level: 5), to: .main)
    try await heal(here, there)
    try await settle(here, there)
    #expect(gameErrorCode { try here.saves.keepLocal(.main, cloudCopy: .removed) } == .misuse)
    #expect(try !here.saves.isLocal(.main) && here.saves.conflict(.main) != nil)
    try here.saves.syncAgain(.main)
    #expect(try here.saves.conflict(.main)?.sides.map(\.value.level).sorted() == [4, 5])
  }

  @Test("a local slot counts as unsent data, which would be lost with the device's copy")
  func forgetting() async throws {
    let game = try phone.open()
    defer { end(game) }
    game.cloud.connect(cloud.address)
    try await game.saves.save(World(level: 3), to: .main)
    try await game.cloud.sync()
    #expect(try game.core.store.read { try UnsentData($0, hasRecords: false) }.isEmpty)
    try game.saves.keepLocal(.main, cloudCopy: .kept)
    #expect(try game.core.store.read { try UnsentData($0, hasRecords: false) }.saves == ["main"])
  }

  @Test("a local slot is still local after the repair of a damaged store")
  func afterDamage() async throws {
    var game = try phone.open()
    game.cloud.connect(cloud.address)
    try await game.saves.save(World(level: 2), to: .main)
    try await game.cloud.sync()
    try game.saves.keepLocal(.main, cloudCopy: .kept)
    try await game.saves.save(World(level: 3), to: .main)
    try game.close()
    let database = phone.url.appendingPathComponent("store.sqlite")
    var bytes = try Data(contentsOf: database)
    // Everywhere: pages that are free keep old rows.
    var hasWallet = false
    while let place = bytes.range(of: Data("wallet".utf8)) {
      bytes.replaceSubrange(place, with: Data("wallEt".utf8))
      hasWallet = true
    }
    try #require(hasWallet)
    try bytes.write(to: database)
    game = try phone.open()
    defer { end(game) }
    #expect(game.incidents.contains { $0.kind == .recovered })
    game.cloud.connect(cloud.address)
    try await game.cloud.sync()
    #expect(try game.saves.isLocal(.main) && game.saves.load(.main)?.level == 3 && told().count == 1)
  }
}
