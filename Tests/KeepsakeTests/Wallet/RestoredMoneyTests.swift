import KeepsakeReplication
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeTesting

/// The player's money after the studio has restored its cloud from a backup, as the game sees it.
@Suite(.hangLimit) struct RestoredMoneyTests {
  private let world = TestWorld()

  private func open(_ name: String) throws -> GameData { try world.device(name).open("com.example.space") }

  /// What a game shows of the player's money.
  private struct Shown: Equatable {
    var total: Int
    var pending: Int
    var goods: [Goods: Int]
    var ledger: [OperationID]
    var statuses: [LedgerEntry.Status]
    var notices: [OperationID]
  }

  private func shown(_ game: GameData) throws -> Shown {
    let (balance, ledger) = (game.wallet[.gems], try game.wallet.ledger())
    return Shown(
      total: balance.total, pending: balance.pending, goods: try game.wallet.goods(), ledger: ledger.map(\.id),
      statuses: ledger.map(\.status), notices: try game.wallet.notices().map(\.id))
  }

  /// A phone and a tablet that share 100 gems, and a backup of the cloud.
  private func start() async throws -> (phone: GameData, tablet: GameData, yesterday: TestCloud.Backup) {
    let (phone, tablet) = (try open("phone"), try open("tablet"))
    try phone.wallet.earn(100, .gems, for: "quest")
    try await world.settle()
    return (phone, tablet, world.cloud.backup())
  }

  @Test(
    "balances, goods, ledgers and notices are as before, whether or not the bank is told", arguments: [true, false])
  func sameAsBefore(isMarked: Bool) async throws {
    let (phone, tablet, yesterday) = try await start()
    try phone.wallet.earn(40, .gems, for: "quest")
    try await world.settle()
    try phone.wallet.spend(30, .gems, for: "sword", goods: [Goods("sword")])
    try phone.wallet.claim(20, .gems, key: "daily", for: "daily gift", goods: [Goods("hat")])
    try tablet.wallet.spend(10, .gems, for: "potion", goods: [Goods("potion")])
    try await world.settle()
    let before = (try shown(phone), try shown(tablet))
    #expect(before.0.total == 120 && before.0.goods.count == 3 && before.0.statuses.allSatisfy { $0 == .settled })
    #expect(before.0.notices.count == 1)
    if isMarked { world.cloud.restore(yesterday) } else { world.cloud.memory.container = yesterday.container }
    try await world.settle()
    #expect(try shown(phone) == before.0)
    #expect(try shown(tablet) == before.1)
    let bank = Bank(world.cloud.memory.container.bank())
    #expect(!bank.isFrozen && bank.balance("gems") == 120 && world.cloud.memory.container.orders.isEmpty)
    // A new device learns all of it from the cloud, and the games go on.
    let laptop = try open("laptop")
    try phone.wallet.spend(5, .gems, for: "arrow")
    try await world.settle()
    for game in [phone, tablet, laptop] { #expect(game.wallet[.gems].total == 115) }
    #expect(try laptop.wallet.goods() == before.0.goods)
    #expect(gameErrorCode { try tablet.wallet.claim(20, .gems, key: "daily", for: "daily gift") } == nil)
    try await world.settle()
    #expect(phone.wallet[.gems].total == 115, "the gift was paid")
  }

  @Test("while a device is offline, the other one spends what is its own, and what it claims is pending")
  func waits() async throws {
    let (phone, tablet, yesterday) = try await start()
    try tablet.wallet.earn(60, .gems, for: "quest")
    try await world.settle()
    try world.device("tablet").network = .cut
    world.cloud.restore(yesterday)
    try phone.wallet.claim(20, .gems, key: "daily", for: "daily gift")
    for _ in 0..<4 { try await phone.cloud.sync() }
    #expect(Bank(world.cloud.memory.container.bank()).isFrozen)
    let spendable = phone.wallet[.gems].spendable
    #expect(spendable > 30 && phone.wallet[.gems].pending == 20)
    try phone.wallet.spend(spendable, .gems, for: "castle", goods: [Goods("castle")])
    for _ in 0..<2 { try await phone.cloud.sync() }
    // The tablet knows nothing of all this.
    try tablet.wallet.spend(30, .gems, for: "tower", goods: [Goods("tower")])
    try world.device("tablet").network = .good
    try await world.settle()
    let total = 180 - spendable - 30
    for game in [phone, tablet] {
      #expect(game.wallet[.gems].total == total && game.wallet[.gems].pending == 0)
      #expect(try game.wallet.goods() == [Goods("castle"): 1, Goods("tower"): 1])
      #expect(try game.wallet.ledger().allSatisfy { $0.status == .settled })
    }
    #expect(world.cloud.memory.container.orders.isEmpty)
  }

  @Test("a game that is killed at any moment while the bank asks loses nothing, and is told nothing twice")
  func killed() async throws {
    let (first, tablet, yesterday) = try await start()
    var phone = first
    try phone.wallet.spend(10, .gems, for: "sword", goods: [Goods("sword")])
    try phone.wallet.claim(20, .gems, key: "daily", for: "daily gift")
    try await world.settle()
    let before = (try shown(phone), try shown(tablet))
    world.cloud.restore(yesterday)
    for _ in 0..<3 {
      try? await phone.cloud.sync()
      try world.device("phone").kill()
      phone = try open("phone")
    }
    try await world.settle()
    #expect(try shown(phone) == before.0)
    #expect(try shown(tablet) == before.1)
    // And set back again.
    world.cloud.restore(yesterday)
    try await world.settle()
    #expect(try shown(phone) == before.0)
    #expect(try shown(tablet) == before.1)
  }
}
