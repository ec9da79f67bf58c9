import Foundation
import Keepsake
import KeepsakeTesting
import Testing

/// A guest signs in, in worlds in which games are killed and devices are restored from backups.
struct AccountWorldTests {
  private static let id = "com.example.accounts"
  private static let level = ProgressKey("level", default: 1, rule: .max)
  private static let coins = ProgressKey<Int>("coins", rule: .counter)
  private static let gems = Currency("gems")
  private static let ada = Account.named("ada")

  private func playAsGuest(on device: TestDevice) throws {
    let guest = try device.open(Self.id, account: .guest, connecting: false)
    try guest.progress.record(6, for: Self.level).wait()
    try guest.progress.add(3, to: Self.coins).wait()
    try guest.wallet.earn(100, Self.gems, for: "a quest")
    try guest.wallet.spend(30, Self.gems, for: "a sword")
    try device.close()
  }

  private func check(_ game: GameData, money: Int, _ what: String) {
    #expect(game.progress[Self.level] == 6 && game.progress[Self.coins] == 3, "\(what)")
    #expect(game.wallet[Self.gems].total == money, "\(what)")
  }

  @Test("a game killed right after adopting, three times while offline, adds the guest's data exactly once")
  func killed() async throws {
    let world = TestWorld()
    let (phone, tablet) = (try world.device("phone"), try world.device("tablet"))
    let there = try tablet.open(Self.id, account: Self.ada)
    try there.wallet.earn(7, Self.gems, for: "a quest")
    try await world.settle()
    try playAsGuest(on: phone)
    phone.network = .cut
    for round in 1...3 {
      let game = try phone.open(Self.id, account: Self.ada)
      #expect(try game.adopt(.guest).money == (round == 1 ? [Self.gems: 70] : [:]))
      try phone.kill()
    }
    phone.network = .good
    let game = try phone.open(Self.id, account: Self.ada)
    try await world.settle()
    check(game, money: 77, "phone")
    check(there, money: 77, "tablet")
    try phone.close()
    let guest = try phone.open(Self.id, account: .guest, connecting: false)
    #expect(guest.wallet[Self.gems].total == 0 && guest.progress[Self.level] == 6)
  }

  @Test("a device restored to before it adopted, and a copy of it, don't add the guest's money a second time")
  func setBack() async throws {
    let world = TestWorld()
    let (phone, tablet) = (try world.device("phone"), try world.device("tablet"))
    try playAsGuest(on: phone)
    let yesterday = try phone.backup()
    let copy = try phone.clone("copy")
    let there = try tablet.open(Self.id, account: Self.ada)
    for round in 1...2 {
      let game = try phone.open(Self.id, account: Self.ada)
      try game.adopt(.guest)
      try await world.settle()
      check(game, money: 70, "round \(round)")
      try phone.restore(yesterday)
    }
    let game = try copy.open(Self.id, account: Self.ada)
    try game.adopt(.guest)
    try await world.settle()
    check(game, money: 70, "copy")
    check(there, money: 70, "tablet")
  }
}
