import FlowerGarden
import Foundation
import Keepsake
import KeepsakeTesting
import Testing

/// Networks that are cut, slow or lose requests, and what `settle` reports about them.
struct NetworkTests {
  @Test("offline changes reach the other device once the network is back; until then, settle() names their device")
  func cutAndHeal() async throws {
    let pair = try await Pair()
    pair.phone.network = .cut
    try await pair.here.plant("tulip", in: "sill")
    try pair.here.reach(level: 3)
    let unsettled = try #require(await #expect(throws: UnsettledError.self) { try await pair.world.settle() })
    let owed = unsettled.debts
    #expect(owed.map(\.device) == ["phone"], "the tablet owes nothing")
    #expect(
      owed.first?.unsentCommits ?? 0 > 0 && owed.first?.isBehind == false && owed.first?.failure == "the network is cut"
    )
    let text = unsettled.description
    #expect(text.contains("phone has") && text.contains("the network is cut"), "\(text)")
    #expect(try pair.there.pot("sill").flowers.isEmpty)

    try await pair.heal()
    #expect(try pair.there.pot("sill").flowers.map(\.kind) == ["tulip"])
    #expect(pair.there.game.progress[.level] == 3)
    for game in [pair.here.game, pair.there.game] {
      #expect(game.cloud.status.phase == .upToDate && game.cloud.status.waitingCommits == 0)
    }
  }

  @Test("settle() reports that a device which can't receive the others' changes is behind")
  func deaf() async throws {
    let pair = try await Pair()
    pair.tablet.network = .cut
    try await pair.here.plant("tulip", in: "sill")
    let owed = try await debts(of: pair.world)
    #expect(owed.map(\.device) == ["tablet"] && owed.first?.isBehind == true && owed.first?.unsentCommits == 0)
  }

  @Test("all changes that arrive before settle() returns are reported to the game and visible")
  func newsIsTold() async throws {
    let pair = try await Pair()
    for round in 2...30 {
      _ = pair.there.game.takeChanges()
      try pair.here.reach(level: round)
      try pair.here.earn(1, for: "a quest")
      try await pair.here.water("sill")
      try await pair.world.settle()
      let changes = pair.there.game.takeChanges()
      #expect(
        changes.contains(.progress(["level"])) && changes.contains(.slots(["pot/sill"])) && changes.contains(.wallet),
        "\(round): \(changes)")
      #expect(pair.there.game.progress[.level] == round && pair.there.game.wallet[.gems].total == round - 1)
    }
  }

  @Test("thirty days of offline saves, levels and settings are synced with few exchanges and few bytes")
  func monthOffline() async throws {
    let pair = try await Pair(Pot(weather: 4))
    let hat = PreferenceKey("hat", default: "none", synced: true)
    pair.phone.network = .cut
    let before = pair.world.cloud.exchanges
    for day in 1...30 {
      pair.world.clock.advance(days: 1)
      try await pair.here.change(pot: "sill") { $0.water() }
      try pair.here.reach(level: day)
      pair.here.game.preferences[hat] = "hat \(day)"
    }
    #expect(pair.world.clock.now == TestClock.start + 30 * 86_400)
    let version = try #require(try pair.here.game.saves.history(of: .pot("sill")).first)
    #expect(version.savedAt == pair.world.clock.now, "saves have the world's date")
    let sent = pair.phone.traffic
    try await pair.heal()
    #expect(try pair.there.pot("sill").waterings.value == 30)
    #expect(pair.there.game.progress[.level] == 30 && pair.there.game.preferences[hat] == "hat 30")
    // The polls of a tablet that woke once in a month, and the rounds of settling.
    #expect(pair.world.cloud.exchanges - before < 100)
    #expect((pair.phone.traffic - sent).bytesSent < 100_000, "thirty pots of 30 KB were sent as deltas")
  }

  @Test("on a slow network, the clock advances by the time that the bytes need, and only during settle()")
  func slow() async throws {
    let pair = try await Pair()
    pair.phone.network = .slow(bytesPerSecond: 1_000)
    let before = pair.world.clock.elapsed
    try await pair.here.game.saves.save(Pot(weather: 5), to: .pot("balcony"))
    #expect(try pair.world.clock.elapsed == before && pair.there.game.saves.isEmpty("balcony"))
    try await pair.world.settle()
    let took = pair.world.clock.elapsed - before
    #expect(took >= .seconds(28) && took < .seconds(600), "\(took) for 30 KB at 1,000 bytes a second")
    let arrived = try pair.there.game.saves.load(.pot("balcony"))
    #expect(arrived?.soil == Pot(weather: 5).soil)
  }

  @Test("a kill in the middle of a slow upload loses nothing, and the save arrives once")
  func killedUpload() async throws {
    let pair = try await Pair()
    pair.phone.network = .slow(bytesPerSecond: 100)
    try await pair.here.change(pot: "sill") { $0.water(2) }
    pair.world.clock.advance(by: .seconds(1))
    try pair.phone.kill()
    let again = try pair.phone.garden()
    try await pair.world.settle()
    #expect(try again.pot("sill").waterings.value == 2 && pair.there.pot("sill").waterings.value == 2)
    #expect(try again.game.saves.conflict(.pot("sill")) == nil)
  }

  @Test(
    "a network that loses requests and responses loses no change, and no change counts twice", arguments: [2, 3, 5])
  func losing(every: Int) async throws {
    let pair = try await Pair()
    (pair.phone.network, pair.tablet.network) = (.losing(every: every), .losing(every: every))
    for round in 1...6 {
      try await pair.here.water("sill")
      try await pair.there.water("sill")
      try pair.here.earn(5, for: "a quest")
      try pair.there.earn(5, for: "a quest")
      try await pair.world.settle()
      for garden in [pair.here, pair.there] {
        let view = try garden.view()
        #expect(view.gems == Int64(10 * round) && view.pots["sill"]?.waterings == 2 * round, "round \(round)")
      }
    }
  }

  @Test("a network that loses everything is reported by settle(), and no change is lost")
  func losingAll() async throws {
    let pair = try await Pair()
    pair.phone.network = .losing(every: 1)
    try pair.here.earn(5, for: "a quest")
    let owed = try await debts(of: pair.world)
    let phone = try #require(owed.first { $0.device == "phone" })
    #expect(phone.hasUnreportedMoney && phone.failure?.contains("lost") == true)
    // Responses were lost, too: the cloud may have the operation already, and counts it once.
    try await pair.heal()
    #expect(pair.there.game.wallet[.gems].total == 5)
  }

  @Test("settle() names devices whose cloud is disabled or that never connected, each with a reason")
  func notTalking() async throws {
    let pair = try await Pair()
    pair.here.game.cloud.isEnabled = false
    try await pair.here.water("sill")
    let laptop = try pair.world.device("laptop")
    let alone = try laptop.open(gardenID, connecting: false)
    let owed = try await debts(of: pair.world)
    #expect(owed.map(\.device) == ["laptop", "phone"])
    #expect(owed.allSatisfy { $0.failure?.isEmpty == false })
    pair.here.game.cloud.isEnabled = true
    alone.cloud.connect(try laptop.address)
    try await pair.world.settle()
    #expect(try alone.saves.load(.pot("sill"))?.waterings.value == 1)
  }
}

extension SaveSlots {
  fileprivate func isEmpty(_ pot: String) throws -> Bool { try load(.pot(pot)) == nil }
}
