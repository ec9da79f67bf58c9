import Foundation
import Keepsake
import KeepsakeTesting
import TestSupport
import Testing

/// Which of a player's devices have a save, with a clock that the test advances.
@Suite(.hangLimit) struct SeenTests {
  @Archivable struct Cave: Equatable { var level = 1 }
  static let cave = Slot<Cave>("cave")
  static let attic = Slot<Cave>("attic")

  /// Lets time pass until something happens.
  private func pass(
    _ world: TestWorld, by seconds: Int = 1, until what: String, _ condition: () throws -> Bool
  ) async throws {
    try await until(what) {
      if try condition() { return true }
      world.clock.advance(by: .seconds(seconds))
      return false
    }
  }

  @Test("following a status fetches which devices have the save; nothing is fetched while nothing follows it")
  func live() async throws {
    let world = TestWorld()
    let (phone, tablet, console) = (try world.device("phone"), try world.device("tablet"), try world.device("console"))
    let here = try phone.open("com.example.cave")
    for device in [tablet, console] { try device.open("com.example.cave") }
    try await world.settle()
    console.network = .cut
    try await here.saves.save(Cave(level: 2), to: Self.cave)
    try await here.cloud.sync()
    #expect(try here.saves.status(of: Self.cave).seenBy == nil, "it wasn't requested")

    let (names, told) = AsyncStream<[String]>.makeStream()
    let following = Task {
      for try await status in here.saves.statusUpdates(of: Self.cave) {
        if status.state == .stored, let devices = status.seenBy { told.yield(devices.map(\.name)) }
      }
    }
    var seen: Set<[String]> = []
    let gathering = Task {
      var all: [[String]] = []
      for await devices in names {
        all.append(devices)
        if devices.count == 2 { return all }
      }
      return all
    }
    try await pass(world, until: "the tablet says that it has it") {
      try here.saves.status(of: Self.cave).seenBy?.map(\.name) == ["tablet"]
    }
    console.network = .good
    try await pass(world, until: "the console says that it has it") {
      try here.saves.status(of: Self.cave).seenBy?.map(\.name).sorted() == ["console", "tablet"]
    }
    seen.formUnion(await gathering.value)
    #expect(seen.contains(["tablet"]) && seen.contains { $0.count == 2 } && seen.allSatisfy { !$0.contains("phone") })
    following.cancel()
    _ = await following.result

    // Nothing follows the status any more. Another slot is followed, and two answers about it, with the end of a pause
    // in between, show that the device has asked about everything that it takes as followed.
    try await here.saves.save(Cave(level: 3), to: Self.cave)
    try await world.settle()
    let other = Task { for try await _ in here.saves.statusUpdates(of: Self.attic) {} }
    for level in 2...3 {
      try await here.saves.save(Cave(level: level), to: Self.attic)
      try await world.settle()
      try await pass(world, by: 5, until: "both say that they have the other slot's save") {
        try here.saves.status(of: Self.attic).seenBy?.count == 2
      }
    }
    other.cancel()
    #expect(try here.saves.status(of: Self.cave).seenBy == nil)
    #expect(try await here.saves.seenBy(Self.cave)?.map(\.name).sorted() == ["console", "tablet"])
    #expect(try here.saves.status(of: Self.cave).seenBy?.count == 2)
  }

  @Test("following statuses costs one request every 30 seconds, however many slots are followed")
  func cost() async throws {
    let world = TestWorld()
    let phone = try world.device("phone")
    let here = try phone.open("com.example.cave")
    try await here.saves.save(Cave(level: 2), to: Self.cave)
    try await here.saves.save(Cave(level: 2), to: Self.attic)
    try await world.settle()
    let looks = [Self.cave, Self.attic].map { slot in
      Task { for try await _ in here.saves.statusUpdates(of: slot) {} }
    }
    try await pass(world, until: "both are answered") {
      try [Self.cave, Self.attic].allSatisfy { try here.saves.status(of: $0).seenBy != nil }
    }
    let (before, exchanges, start) = (phone.traffic.requests, world.cloud.exchanges, world.clock.elapsed)
    func asked() -> Int { phone.traffic.requests - before - (world.cloud.exchanges - exchanges) }
    try await pass(world, by: 5, until: "it is asked ten times more") { asked() >= 10 }
    // The first request may have been due at once, and an exchange may be in progress.
    #expect(world.clock.elapsed - start >= .seconds(8 * 30))
    for look in looks { look.cancel() }
  }

  @Test("a save counts as seen only after its delivery; in a conflict, both sides must have been delivered")
  func keptBack() async throws {
    let world = TestWorld()
    let (phone, tablet) = (try world.device("phone"), try world.device("tablet"))
    let (here, there) = (try phone.open("com.example.cave"), try tablet.open("com.example.cave"))
    try await world.settle()
    there.cloud.delivery = .manually
    try await here.saves.save(Cave(level: 2), to: Self.cave)
    for _ in 0..<2 { try await world.settle() }
    #expect(try await here.saves.seenBy(Self.cave) == [])
    try there.cloud.deliver()
    for _ in 0..<2 { try await world.settle() }
    #expect(try await here.saves.seenBy(Self.cave)?.map(\.name) == ["tablet"])

    // The tablet has its own side before there is another one.
    phone.network = .cut
    try await here.saves.save(Cave(level: 3), to: Self.cave)
    try await there.saves.save(Cave(level: 4), to: Self.cave)
    for _ in 0..<2 { try await there.cloud.sync() }
    phone.network = .good
    for _ in 0..<2 { try await here.cloud.sync() }
    #expect(try here.saves.conflict(Self.cave) != nil)
    #expect(try await here.saves.seenBy(Self.cave) == [], "this device has both sides, the tablet only its own")
    // What isn't here yet can't be delivered: an event has announced it, and the fetch may still be on its way.
    try await there.cloud.sync()
    try there.cloud.deliver()
    for _ in 0..<2 { try await world.settle() }
    #expect(try await here.saves.seenBy(Self.cave)?.map(\.name) == ["tablet"])
  }

  @Test("a device restored from a backup counts as having only the versions that it has now")
  func setBack() async throws {
    let world = TestWorld()
    let (phone, tablet) = (try world.device("phone"), try world.device("tablet"))
    let here = try phone.open("com.example.cave")
    try tablet.open("com.example.cave")
    try await world.settle()
    let backup = try tablet.backup()
    try await here.saves.save(Cave(level: 2), to: Self.cave)
    for _ in 0..<2 { try await world.settle() }
    #expect(try await here.saves.seenBy(Self.cave)?.map(\.name) == ["tablet"])
    try tablet.restore(backup)
    let again = try tablet.open("com.example.cave", connecting: false)
    again.cloud.delivery = .manually
    again.cloud.connect(try tablet.address, deviceName: "tablet")
    try await world.settle()
    #expect(try again.saves.load(Self.cave) == nil)
    #expect(try await here.saves.seenBy(Self.cave) == [])
    try again.cloud.deliver()
    for _ in 0..<2 { try await world.settle() }
    #expect(try await here.saves.seenBy(Self.cave)?.map(\.name) == ["tablet"])
  }
}
