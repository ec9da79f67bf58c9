import KeepsakeReplication
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// What the game's own servers do with a player's money, as the game sees it.
@Suite(.hangLimit) struct OrderTests {
  private let world = TestWorld()

  private func open(_ name: String) throws -> GameData { try world.device(name).open("com.example.space") }

  @Test("a grant is on every device, in the ledger, and in a notice that a crash doesn't lose")
  func grants() async throws {
    var phone = try open("phone")
    let tablet = try open("tablet")
    try await world.settle()
    try phone.wallet.earn(10, .gems, for: "quest")
    let id = try world.cloud.grant(90, .gems, for: "sorry for the wait", goods: [Goods("hat")])
    try world.cloud.grant(90, .gems, for: "sorry for the wait", id: id, goods: [Goods("hat")])
    #expect(gameErrorCode { try world.cloud.grant(91, .gems, for: "", id: id) } == .idReused(id))
    try await world.settle()
    for game in [phone, tablet] {
      #expect(game.wallet[.gems].total == 100)
      #expect(try game.wallet.goods() == [Goods("hat"): 1])
      let entry = try #require(try game.wallet.ledger().first { $0.id == id })
      #expect(entry.kind == .granted && entry.amount == 90 && entry.currency == .gems && entry.status == .settled)
      #expect(entry.reason == "sorry for the wait" && entry.goods == [Goods("hat")])
    }
    for isKilled in [false, true] {
      if isKilled { try world.device("phone").kill() } else { try world.device("phone").close() }
      phone = try open("phone")
      let notices = try phone.wallet.notices()
      #expect(notices.map(\.verdict) == [.received] && notices.map(\.kind) == [.granted])
      #expect(notices.first?.goods == [Goods("hat")] && notices.first?.id == id)
    }
    try phone.wallet.confirm(through: try #require(try phone.wallet.notices().first))
    try await world.settle()
    #expect(try phone.wallet.notices().isEmpty && tablet.wallet.notices().count == 1)
  }

  @Test("a new install isn't told what the player was granted before it, but has it; and is told what comes")
  func newInstall() async throws {
    let phone = try open("phone")
    try await world.settle()
    try world.cloud.grant(90, .gems, for: "sorry for the wait", goods: [Goods("hat")])
    try await world.settle()
    let tablet = try open("tablet")
    try await world.settle()
    #expect(try phone.wallet.notices().count == 1 && tablet.wallet.notices().isEmpty)
    #expect(try tablet.wallet.goods() == [Goods("hat"): 1] && tablet.wallet.ledger().map(\.kind) == [.granted])
    try world.cloud.grant(1, .gems, for: "thank you")
    try await world.settle()
    #expect(try phone.wallet.notices().count == 2 && tablet.wallet.notices().map(\.reason) == ["thank you"])
  }

  @Test("a refunded purchase is marked where it was made, and every device learns that its goods are gone")
  func refunds() async throws {
    let (phone, tablet) = (try open("phone"), try open("tablet"))
    try phone.wallet.earn(100, .gems, for: "quest")
    let sword = try phone.wallet.spend(30, .gems, for: "sword", goods: [Goods("sword")])
    let unknown = OperationID(high: 1, low: 1)
    #expect(gameErrorCode { try world.cloud.refund(unknown, for: "by mistake") } == .missing)
    try await world.settle()
    for _ in 0..<2 { try world.cloud.refund(sword, for: "by mistake") }
    try await world.settle()
    for game in [phone, tablet] {
      #expect(game.wallet[.gems].total == 100)
      #expect(try game.wallet.goods().isEmpty)
      let notice = try #require(try game.wallet.notices().first)
      #expect(notice.kind == .refund(of: sword) && notice.verdict == .takenBack && notice.amount == 30)
      #expect(notice.goods == [Goods("sword")] && notice.reason == "by mistake")
      #expect(try game.wallet.notices().count == 1)
    }
    #expect(try phone.wallet.ledger().map(\.kind) == [.refund(of: sword), .spent, .earned])
    #expect(try phone.wallet.ledger().map(\.status) == [.settled, .refunded, .settled])
    #expect(try tablet.wallet.ledger().map(\.kind) == [.refund(of: sword)])
  }

  @Test("a charge beyond the balance is owed, and what the player earns pays it")
  func owes() async throws {
    let game = try open("phone")
    #expect(try game.wallet.owed(.gems) == 0)
    try game.wallet.earn(30, .gems, for: "quest")
    try await world.settle()
    try world.cloud.charge(50, .gems, for: "chargeback")
    try await world.settle()
    #expect(try game.wallet.owed(.gems) == 20)
    #expect(game.wallet[.gems].total == 0 && game.wallet[.gems].spendable == 0)
    #expect(try game.wallet.notices().map(\.verdict) == [.takenBack])
    #expect(try game.wallet.ledger().first?.kind == .charged)
    try game.wallet.earn(25, .gems, for: "quest")
    try await world.settle()
    #expect(try game.wallet.owed(.gems) == 0)
    #expect(game.wallet[.gems].total == 5 && game.wallet[.gems].spendable == 5)
  }

  @Test("a currency that the game declares as the servers' can't be earned, even before there is a cloud")
  func declared() throws {
    let game = try open("phone")
    let rubies = Currency("rubies", serverOnly: true)
    #expect(rubies == Currency("rubies") && !Currency("rubies").isServerOnly)
    #expect(gameErrorCode { try game.wallet.earn(5, rubies, for: "a cheat") } == .notAllowed(rubies))
    #expect(gameErrorCode { try game.wallet.claim(5, rubies, key: "daily", for: "a cheat") } == .notAllowed(rubies))
    #expect(gameErrorCode { try game.wallet.convert(1, .gems, to: 5, rubies, for: "a cheat") } == .notAllowed(rubies))
    for change in 0..<3 {
      let found = gameErrorCode {
        try game.checkpoint { checkpoint in
          switch change {
          case 0: try checkpoint.earn(5, rubies, for: "a cheat")
          case 1: try checkpoint.claim(5, rubies, key: "daily", for: "a cheat")
          default: try checkpoint.convert(1, .gems, to: 5, rubies, for: "a cheat")
          }
        }
      }
      #expect(found == .notAllowed(rubies))
    }
    #expect(try game.wallet.ledger().isEmpty)
  }

  @Test("a currency that the cloud declares as the servers' is declined once, and then refused; grants can be spent")
  func authoritative() async throws {
    world.cloud.serverOnly = [.gems]
    #expect(world.cloud.serverOnly == [.gems])
    let device = try world.device("phone")
    device.network = .cut
    let game = try open("phone")
    try game.wallet.earn(100, .gems, for: "a cheat")
    device.network = .good
    try await world.settle()
    #expect(game.wallet[.gems].total == 0)
    #expect(try game.wallet.notices().map(\.verdict) == [.notAllowed])
    #expect(try game.wallet.ledger().map(\.status) == [.declined])
    #expect(gameErrorCode { try game.wallet.earn(1, .gems, for: "a cheat") } == .notAllowed(.gems))
    try world.cloud.grant(40, .gems, for: "bought")
    try await world.settle()
    try game.wallet.spend(40, .gems, for: "castle")
    try await world.settle()
    #expect(game.wallet[.gems].total == 0)
    #expect(try game.wallet.ledger().map(\.kind) == [.spent, .granted, .earned])
  }

  @Test("while what arrives is held back, grants are, too, with their notices")
  func held() async throws {
    let game = try open("phone")
    try await world.settle()
    game.cloud.delivery = .manually
    try world.cloud.grant(40, .gems, for: "bought")
    try await world.settle()
    #expect(try game.wallet.notices().isEmpty)
    #expect(game.wallet[.gems].total == 0)
    try game.cloud.deliver()
    #expect(try game.wallet.notices().map(\.verdict) == [.received])
    #expect(game.wallet[.gems].total == 40)
  }
}
