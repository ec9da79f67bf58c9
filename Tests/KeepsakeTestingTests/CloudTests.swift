import FlowerGarden
import Foundation
import Keepsake
import KeepsakeTesting
import Testing

/// A cloud that is full or restored, and worlds that are separate.
struct CloudTests {
  @Test("a full cloud refuses saves and values, which settle() lists; when there is room, all of them are accepted")
  func full() async throws {
    let pair = try await Pair()
    pair.world.cloud.isFull = true
    try await pair.here.water("sill")
    try pair.here.reach(level: 4)
    let owed = try await debts(of: pair.world)
    #expect(owed.map(\.device) == ["phone"])
    let refusals = owed.first?.refusals ?? []
    #expect(refusals.contains { $0.contains("version") } && refusals.contains { $0.contains("level") }, "\(refusals)")
    #expect(refusals.allSatisfy { $0.contains("no storage") })
    #expect(pair.here.game.incidents.contains { $0.kind == .refusedByCloud })
    #expect(pair.there.game.progress[.level] == 1)

    pair.world.cloud.isFull = false
    try await pair.world.settle()
    #expect(try pair.there.pot("sill").waterings.value == 1 && pair.there.game.progress[.level] == 4)
  }

  @Test("a cloud restored from a backup receives everything later again from its devices")
  func restored() async throws {
    let pair = try await Pair(Pot(weather: 6))
    let yesterday = pair.world.cloud.backup()
    try await pair.here.plant("tulip", in: "sill")
    try await pair.there.plant("rose", in: "balcony")
    try pair.here.reach(level: 8)
    try await pair.world.settle()
    pair.cut()
    pair.world.cloud.restore(yesterday)
    let early = try pair.world.device("early").garden()
    try await early.game.cloud.sync()
    #expect(try early.pot("sill").flowers.isEmpty, "the cloud has forgotten it")
    try await pair.heal()
    // A new device learns of it only from the cloud.
    let laptop = try pair.world.device("laptop").garden()
    try await pair.world.settle()
    #expect(
      try laptop.pot("sill").flowers.map(\.kind) == ["tulip"] && laptop.pot("balcony").flowers.map(\.kind) == ["rose"])
    #expect(laptop.game.progress[.level] == 8)
  }

  @Test("two worlds with devices and games of the same names stay separate, and refuse each other's devices")
  func worldsApart() async throws {
    let one = try await Pair()
    let other = try await Pair()
    try await one.here.plant("tulip", in: "sill")
    try one.here.earn(7, for: "a quest")
    one.world.clock.advance(days: 3)
    try await one.world.settle()
    try await other.world.settle()
    #expect(try other.there.pot("sill").flowers.isEmpty && other.there.game.wallet[.gems].total == 0)
    #expect(other.world.clock.now == TestClock.start)
    #expect(try one.there.pot("sill").flowers.count == 1)

    // This includes a device that is set up from the other world's backup.
    try other.phone.restore(one.phone.backup())
    let moved = try other.phone.garden()
    try await moved.water("sill")
    let owed = try await debts(of: other.world)
    #expect(owed.map(\.device) == ["phone"] && owed.first?.failure?.contains("container") == true, "\(owed)")
    guard case .refused = moved.game.cloud.status.phase else {
      Issue.record("the cloud accepts another world's device: \(moved.game.cloud.status)")
      return
    }
    #expect(try other.there.pot("sill").flowers.isEmpty)
  }

  @Test("opening a second game in a world throws an error")
  func oneGame() throws {
    let world = TestWorld()
    try world.device("phone").open("com.example.garden")
    #expect { try world.device("tablet").open("com.example.other") } throws: { ($0 as? GameDataError)?.code == .misuse }
  }
}
