import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeStore
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// A player signs in after playing as a guest: the account adopts the guest's data, without losing any of it or
/// counting any of it twice.
@Suite struct AdoptionTests: WithAccounts {
  let place: AccountsFolder
  /// The account's cloud.
  let cloud = MemoryCloud()

  /// A guest's own cloud.
  let theirs = MemoryCloud(id: ContainerID(high: 8, low: 8))

  init() throws { place = try AccountsFolder() }

  var environment: GameEnvironment { environment(leaving: theirs) }

  private func money(_ account: Account, in place: String = "device") throws -> Balance {
    try with(account, in: place) { $0.wallet[.gems] }
  }

  /// The balance in the account's bank.
  private func bank() -> Int64 { Bank(cloud.container.bank()).balance("gems") }

  // MARK: Values and saves

  @Test("values join by their rules, the account's own choices are kept, and adopting again changes nothing")
  func values() async throws {
    let hat = PreferenceKey("hat", default: "none", synced: true)
    let ada = try open(Self.ada)
    defer { end(ada) }
    ada.cloud.connect(cloud.address)
    try await ada.cloud.sync()
    try ada.progress.record(6, for: .level)
    try ada.progress.add(10, to: .coinsFound)
    try ada.progress.set("crown", for: .hat)
    ada.preferences[hat] = "crown"
    ada.preferences[.volume] = 0.1
    try await ada.preferences.flush()
    _ = try await ada.scores.submit(900, to: .easy, player: "Ada").value
    try await ada.cloud.sync()
    clock.advance(by: .seconds(3600))
    let lamp = PreferenceKey("lamp", default: false)
    try with(.guest) { (guest: GameData) throws in
      try guest.progress.record(9, for: .level)
      try guest.progress.add(5, to: .coinsFound)
      try guest.progress.insert("brave", into: .badges)
      try guest.progress.set("cap", for: .hat)
      guest.preferences[hat] = "cap"
      guest.preferences[.volume] = 0.9
      guest.preferences[lamp] = true
      for value in [700, 950] { try guest.scores.submit(value, to: .easy, player: "Ada").wait() }
    }
    for round in 1...2 {
      let adoption = try ada.adopt(.guest)
      #expect(ada.progress[.level] == 9, "round \(round)")
      #expect(ada.progress[.coinsFound] == 15, "round \(round)")
      #expect(ada.progress[.badges] == ["brave"], "round \(round)")
      #expect(ada.progress[.hat] == "crown", "round \(round)")
      #expect(ada.preferences[hat] == "crown", "round \(round)")
      #expect(ada.preferences[.volume] == 0.1, "round \(round)")
      #expect(ada.preferences[lamp], "round \(round)")
      #expect(try ada.scores.top(10, of: .easy).compactMap(\.value.int) == [950, 900, 700], "round \(round)")
      if round == 1 {
        #expect(adoption.values == ["progress/badges", "progress/coins found", "progress/level", "scores/4/easy/Ada"])
        #expect(
          adoption.preferences == ["lamp"] && adoption.scores == 1 && adoption.left.isEmpty && !adoption.isEmptied)
      } else {
        #expect(adoption == Adoption(), "adopting twice changes nothing")
      }
    }
    // A score that the account removed isn't adopted again.
    let worst = try #require(try ada.scores.top(10, of: .easy).last)
    try ada.scores.remove(worst)
    try ada.adopt(.guest)
    #expect(try ada.scores.top(10, of: .easy).compactMap(\.value.int) == [950, 900])
    // The account's other devices receive the same.
    try await ada.cloud.sync()
    let there = try open(Self.ada, in: "tablet")
    defer { end(there) }
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    #expect(there.progress[.level] == 9)
    #expect(there.progress[.coinsFound] == 15)
    #expect(there.progress[.hat] == "crown")
    #expect(try there.scores.top(10, of: .easy).compactMap(\.value.int) == [950])
  }

  @Test("a guest's saves are adopted once, with their history, and conflict with the account's own until resolved")
  func saves() async throws {
    let ada = try open(Self.ada)
    defer { end(ada) }
    ada.cloud.connect(cloud.address)
    try await ada.cloud.sync()
    try await ada.saves.save(Journal(text: "account"), to: .asking)
    try with(.guest) { (guest: GameData) throws in
      for text in ["guest 1", "guest 2"] { try guest.saves.capture(Journal(text: text), to: .asking).wait() }
      try guest.saves.capture(World(level: 4, cleared: ["a"]), to: .main).wait()
      try guest.saves.capture(World(level: 1), to: Slot("gone")).wait()
      try guest.saves.delete(Slot<World>("gone"))
    }
    #expect(try ada.adopt(.guest).saves == ["journal", "main"])
    #expect(try ada.saves.load(.main) == World(level: 4, cleared: ["a"]))
    #expect(try ada.saves.load(Slot<World>("gone")) == nil)
    let conflict = try #require(try ada.saves.conflict(.asking))
    #expect(Set(conflict.sides.map(\.value.text)) == ["account", "guest 2"])
    #expect(try ada.saves.history(of: Slot<Journal>.asking).count == 3)
    try await ada.saves.resolve(conflict, with: Journal(text: "both"))
    for _ in 0..<2 {
      #expect(try ada.adopt(.guest) == Adoption())
      #expect(try ada.saves.conflict(.asking) == nil && ada.saves.load(.asking)?.text == "both")
    }
    try await ada.cloud.sync()
    let there = try open(Self.ada, in: "tablet")
    defer { end(there) }
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    #expect(try there.saves.load(.main) == World(level: 4, cleared: ["a"]) && there.saves.load(.asking)?.text == "both")
    // The guest continues with its own saves, and its new version can be adopted, too.
    try with(.guest) { (guest: GameData) throws in
      #expect(try guest.saves.load(.main)?.level == 4)
      try guest.saves.capture(World(level: 5, cleared: ["a", "b"]), to: .main).wait()
    }
    #expect(try ada.adopt(.guest).saves == ["main"])
    #expect(try ada.saves.load(.main) == World(level: 5, cleared: ["a", "b"]) && ada.saves.conflict(.main) == nil)
  }

  @Test("a save of several segments, its history and 500 values are adopted and reach the account's other device")
  func large() async throws {
    var random = SeededGenerator(seed: 7)
    // Above 4 MiB a save is cut into segments.
    var bytes = Data(capacity: 5 << 20)
    while bytes.count < 5 << 20 { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
    let big = Slot<Ore>("big")
    try with(.guest) { (guest: GameData) throws in
      try guest.saves.capture(Ore(bytes: bytes), to: big).wait()
      try guest.saves.capture(Ore(bytes: bytes + [1]), to: big).wait()
      for number in 0..<500 {
        try guest.progress.record(number, for: ProgressKey("key \(number)", default: -1, rule: .max))
      }
    }
    let ada = try open(Self.ada)
    defer { end(ada) }
    #expect(try ada.adopt(.guest).values.count == 500)
    let history = try ada.saves.history(of: big)
    #expect(history.count == 2)
    let first = try ada.saves.value(of: history[1].id, in: big).bytes
    #expect(ContentHash(of: first) == ContentHash(of: bytes))
    ada.cloud.connect(cloud.address)
    try await ada.cloud.sync()
    let there = try open(Self.ada, in: "tablet")
    defer { end(there) }
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    let loaded = try #require(try there.saves.load(big)?.bytes)
    #expect(loaded.count == bytes.count + 1 && ContentHash(of: loaded.dropLast()) == ContentHash(of: bytes))
    #expect(there.progress.names.count == 500)
  }

  // MARK: Money

  @Test("a guest's money moves to the account once; adopting again moves only what the guest earned since")
  func money() async throws {
    try with(.guest) { (guest: GameData) throws in
      try guest.wallet.earn(100, .gems, for: "a quest")
      try guest.wallet.spend(30, .gems, for: "a sword")
    }
    let ada = try open(Self.ada)
    defer { end(ada) }
    try ada.wallet.earn(7, .gems, for: "a quest")
    #expect(try ada.adopt(.guest).money == [.gems: 70])
    #expect(ada.wallet[.gems] == Balance(total: 77, spendable: 77, pending: 0))
    #expect(try ada.adopt(.guest) == Adoption())
    try with(.guest) { (guest: GameData) throws in
      #expect(guest.wallet[.gems] == Balance(total: 0, spendable: 0, pending: 0))
      #expect(
        gameErrorCode { try guest.wallet.spend(1, .gems, for: "a hat") } == .insufficient(0, of: 0))
      try guest.wallet.earn(5, .gems, for: "a quest")
    }
    #expect(try ada.adopt(.guest).money == [.gems: 5])
    try ada.wallet.spend(80, .gems, for: "a castle")
    ada.cloud.connect(cloud.address)
    try await ada.cloud.sync()
    #expect(bank() == 2 && ada.wallet[.gems].total == 2)
  }

  @Test("a gift that both the guest and the account claimed is paid once; one that only the guest claimed is paid")
  func claims() async throws {
    let ada = try open(Self.ada)
    defer { end(ada) }
    ada.cloud.connect(cloud.address)
    try ada.wallet.claim(100, .gems, key: "starter", for: "welcome")
    try await ada.cloud.sync()
    try with(.guest) { (guest: GameData) throws in
      try guest.wallet.claim(100, .gems, key: "starter", for: "welcome")
      try guest.wallet.claim(20, .gems, key: "daily 1", for: "a daily gift")
    }
    for _ in 0..<2 {
      #expect(try ada.adopt(.guest).money.isEmpty)
      try await ada.cloud.sync()
      #expect(bank() == 120 && ada.wallet[.gems] == Balance(total: 120, spendable: 120, pending: 0))
    }
  }

  @Test("if a guest has a bank of its own, its money is adopted from there, and a gift that both got counts once")
  func connectedGuest() async throws {
    let guest = try open(.guest)
    guest.cloud.connect(theirs.address)
    try guest.wallet.claim(100, .gems, key: "starter", for: "welcome")
    try guest.wallet.earn(50, .gems, for: "a quest")
    try await guest.cloud.sync()
    try guest.wallet.earn(8, .gems, for: "not yet told")
    let ada = try open(Self.ada)
    defer { end(ada) }
    ada.cloud.connect(cloud.address)
    try ada.wallet.claim(100, .gems, key: "starter", for: "welcome")
    try await ada.cloud.sync()
    try ada.progress.set("crown", for: .hat)
    try ada.progress.record(6, for: .level)
    try await ada.cloud.sync()
    // Changed later than the account's values, by a guest that has synced, too.
    clock.advance(by: .seconds(3600))
    try guest.progress.set("cap", for: .hat)
    try guest.progress.record(9, for: .level)
    try await guest.progress.reset(.level, to: 2).value
    try guest.close()
    for round in 1...2 {
      let adoption = try ada.adopt(.guest, emptying: round == 2)
      #expect(adoption.money.isEmpty && adoption.pendingMoney == (round == 1 ? [.gems: 158] : [:]), "round \(round)")
      #expect(adoption.left.isEmpty && adoption.isEmptied == (round == 2), "round \(round)")
      try await until { ada.wallet[.gems] == Balance(total: 158, spendable: 158, pending: 0) }
      try await ada.cloud.sync()
      #expect(ada.progress[.hat] == "crown" && ada.progress[.level] == 6, "round \(round)")
      #expect(bank() == 158 && Bank(theirs.container.bank()).balance("gems") == 0, "round \(round)")
    }
  }

  @Test("a gift that the guest's bank declined, since another device got it, neither moves to the account nor costs it")
  func declinedClaim() async throws {
    var spendable = 0
    for place in ["tablet", "device"] {
      let guest = try open(.guest, in: place)
      guest.cloud.connect(theirs.address)
      try guest.wallet.claim(100, .gems, key: "starter", for: "welcome")
      if place == "device" { try guest.wallet.earn(150, .gems, for: "a quest") }
      // What the guest earned on one device is shared with the other only if both are connected.
      try await guest.cloud.sync()
      spendable = guest.wallet[.gems].spendable
      try guest.close()
    }
    try #require(spendable > 0)
    let ada = try open(Self.ada)
    defer { end(ada) }
    #expect(try ada.adopt(.guest).pendingMoney == [.gems: spendable])
    #expect(ada.wallet[.gems] == Balance(total: 0, spendable: 0, pending: spendable))
    ada.cloud.connect(cloud.address)
    try await until { ada.wallet[.gems] == Balance(total: spendable, spendable: spendable, pending: 0) }
    #expect(bank() == Int64(spendable))
  }

  @Test("if two devices adopt copies of one guest into the same account, each operation counts once")
  func copies() async throws {
    try with(.guest) { (guest: GameData) throws in
      try guest.wallet.earn(100, .gems, for: "a quest")
      try guest.wallet.spend(30, .gems, for: "a sword")
      try guest.progress.add(5, to: .coinsFound)
      try guest.saves.capture(Journal(text: "guest"), to: .asking).wait()
    }
    try FileManager.default.copyItem(
      at: folder.url.appendingPathComponent("device"), to: folder.url.appendingPathComponent("tablet"))
    try with(.guest, in: "tablet") { try $0.wallet.earn(1, .gems, for: "a quest of the copy") }
    for place in ["device", "tablet"] {
      let ada = try open(Self.ada, in: place)
      ada.cloud.connect(cloud.address)
      try await ada.cloud.sync()
      try ada.adopt(.guest)
      for _ in 0..<2 { try await ada.cloud.sync() }
      // What the first device has replaced remains replaced.
      #expect(
        try ada.saves.conflict(.asking) == nil
          && ada.saves.load(.asking)?.text == (place == "device" ? "guest" : "device"))
      _ = try await ada.saves.save(Journal(text: place), to: .asking)
      try await ada.cloud.sync()
      try ada.close()
    }
    #expect(bank() == 71)
    let ada = try open(Self.ada)
    defer { end(ada) }
    ada.cloud.connect(cloud.address)
    try await ada.cloud.sync()
    #expect(ada.progress[.coinsFound] == 5 && ada.wallet[.gems].total == 71)
  }

  // MARK: Crashes

  /// Creates a guest with saves, progress, money and scores, and an account with money of its own.
  private func play() throws {
    try with(Self.ada) { try $0.wallet.earn(7, .gems, for: "a quest") }
    try with(.guest) { (guest: GameData) throws in
      try guest.saves.capture(World(level: 4), to: .main).wait()
      try guest.progress.add(5, to: .coinsFound).wait()
      try guest.wallet.earn(100, .gems, for: "a quest")
      try guest.wallet.claim(20, .gems, key: "daily 1", for: "a daily gift")
      for value in [700, 950] { try guest.scores.submit(value, to: .easy).wait() }
    }
  }

  private enum Step: CaseIterable { case opened, packed, taken, settled }

  /// Adopts up to and including this step, and stops there, as in a crash.
  private func adoptUntil(_ step: Step, as account: Account = ada) throws {
    let game = try open(account)
    defer { end(game) }
    let source = try Store.open(
      at: AccountLocation(.guest, in: folder.url.appendingPathComponent("device")).url, history: .everything)
    defer { do { try source.close() } catch { Issue.record("closing failed: \(error)") } }
    let adopter = Adopter(from: source, into: game.core, for: try #require(game.options.accounts))
    if step == .opened { return }
    try adopter.pack()
    if step == .packed { return }
    _ = try adopter.take()
    if step == .taken { return }
    try adopter.settle()
  }

  @Test(
    "an adoption interrupted after any step, once or twice, can be completed; money is never in both stores",
    arguments: [1, 2])
  func crashes(times: Int) throws {
    for step in Step.allCases {
      try? FileManager.default.removeItem(at: folder.url.appendingPathComponent("device"))
      try play()
      for _ in 0..<times { try adoptUntil(step) }
      let (guest, account) = (try money(.guest), try money(Self.ada))
      #expect(guest.total == (step == .opened ? 100 : 0), "after \(step)")
      #expect(account.total == (step == .opened || step == .packed ? 7 : 107), "after \(step)")
      // No other account can adopt a guest whose adoption has begun.
      if step == .packed || step == .taken {
        try with(.named("ben")) { (ben: GameData) throws in
          #expect(gameErrorCode { try ben.adopt(.guest) } == .promised(to: Self.ada), "after \(step)")
          #expect(ben.wallet[.gems].total == 0 && ben.progress[.coinsFound] == 0)
        }
      }
      try with(Self.ada) { (ada: GameData) throws in
        for _ in 0..<2 { try ada.adopt(.guest) }
        #expect(ada.wallet[.gems] == Balance(total: 107, spendable: 107, pending: 20), "after \(step)")
        #expect(ada.progress[.coinsFound] == 5, "after \(step)")
        #expect(try ada.saves.load(.main)?.level == 4 && ada.saves.conflict(.main) == nil, "after \(step)")
        #expect(try ada.scores.top(10, of: .easy).compactMap(\.value.int) == [950, 700], "after \(step)")
        #expect(try ada.wallet.ledger().count == 3, "after \(step)")
      }
      #expect(try money(.guest).total == 0, "after \(step)")
      // The adopted money belongs to the account: another account adopts values and saves, but no money.
      try with(.named("ben")) { (ben: GameData) throws in
        let adoption = try ben.adopt(.guest)
        #expect(adoption.money.isEmpty)
        #expect(ben.progress[.coinsFound] == 5 && ben.wallet[.gems].total == 0)
      }
    }
  }

  @Test("a guest restored from a backup made during its adoption doesn't give the account its money twice")
  func restoredInTheMiddle() throws {
    try play()
    try adoptUntil(.packed)
    let (place, backup) = (
      folder.url.appendingPathComponent("device/default"), folder.url.appendingPathComponent("backup")
    )
    try FileManager.default.copyItem(at: place, to: backup)
    try with(Self.ada) { try $0.adopt(.guest) }
    try FileManager.default.removeItem(at: place)
    try FileManager.default.copyItem(at: backup, to: place)
    try with(Self.ada) { (ada: GameData) throws in
      try ada.adopt(.guest)
      #expect(ada.wallet[.gems].total == 107)
    }
  }

  // MARK: Emptying, and what remains

  @Test("a guest that is emptied on request no longer exists after adoption, and a new one starts with nothing")
  func empties() throws {
    try play()
    try with(Self.ada) { (ada: GameData) throws in
      #expect(try ada.adopt(.guest, emptying: true).isEmptied)
      #expect(storeErrorCode { try ada.adopt(.guest) } == .missing)
      #expect(ada.wallet[.gems].total == 107)
    }
    try with(.guest) { (guest: GameData) throws in
      #expect(try guest.saves.load(.main) == nil && guest.progress[.coinsFound] == 0 && guest.wallet[.gems].total == 0)
    }
  }

  @Test("data that can't be adopted is reported, and the guest isn't emptied")
  func leaves() throws {
    let file = folder.url.appendingPathComponent("level.dat")
    try Data("level".utf8).write(to: file)
    try play()
    try with(.guest) { (guest: GameData) throws in
      try guest.files.track(file, syncs: false)
      try guest.files.track(file, as: "synced.dat")
      try guest.saves.capture(World(level: 2), to: Slot("kept")).wait()
      try guest.saves.keepLocal("kept", cloudCopy: .kept)
      try guest.saves.capture(World(level: 2), to: Slot("kept there")).wait()
      try guest.records.write { try $0.execute(sql: "CREATE TABLE seen (id INTEGER)") }
    }
    try with(Self.ada) { (ada: GameData) throws in
      try ada.saves.keepLocal("kept there", cloudCopy: .kept)
      let adoption = try ada.adopt(.guest, emptying: true)
      var left = Adoption.Left()
      (left.localSaves, left.files, left.hasRecords) = (["kept", "kept there"], ["level.dat"], true)
      #expect(adoption.left == left && !adoption.isEmptied)
      #expect(adoption.saves == ["main"] && ada.wallet[.gems].total == 107)
      // A synced file is adopted like a save, and tracking the same bytes again adds no head.
      #expect(adoption.files == ["synced.dat"] && ada.takeChanges().contains(.files(["synced.dat"])))
      #expect(try ada.files.names() == ["synced.dat"])
      #expect(try ada.files.track(file, as: "synced.dat").heads().count == 1)
      #expect(try ada.saves.list().map(\.name) == ["main"])
    }
    #expect(try with(.guest) { try $0.saves.load(.main)?.level } == 4)
  }

  @Test("an account can't adopt itself, or missing or open data; data without an account can't adopt; nothing changes")
  func refusals() throws {
    try play()
    try with(Self.ada) { (ada: GameData) throws in
      #expect(gameErrorCode { try ada.adopt(Self.ada) } == .misuse)
      #expect(storeErrorCode { try ada.adopt(.named("ben")) } == .missing)
      let guest = try open(.guest)
      #expect(storeErrorCode { try ada.adopt(.guest) } == .inUse)
      try guest.close()
      #expect(ada.wallet[.gems].total == 7 && ada.progress[.coinsFound] == 0)
    }
    let plain = try Device(clock: clock).open()
    defer { end(plain) }
    #expect(gameErrorCode { try plain.adopt(.guest) } == .misuse)
    #expect(try money(.guest).total == 100)
  }
}

@Archivable struct Ore { var bytes = Data() }
