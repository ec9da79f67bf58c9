import Foundation
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// What the bank decided, which a game gets to know however often it crashes in between.
@Suite(.hangLimit) struct NoticeTests {
  private let world = TestWorld()

  private func open(_ name: String) throws -> GameData { try world.device(name).open("com.example.space") }

  @Test("a gift is paid to one device and declined to the other; both know it until the game confirms it")
  func claims() async throws {
    var games: [String: GameData] = [:]
    for name in ["phone", "tablet"] {
      let game = try open(name)
      try game.wallet.claim(100, .gems, key: "starter", for: "starter gift", goods: [Goods("hat")])
      games[name] = game
    }
    try await world.settle()
    var verdicts: Set<WalletNotice.Verdict> = []
    for name in ["phone", "tablet"] {
      #expect(games[name]?.wallet[.gems].total == 100 && games[name]?.wallet[.gems].pending == 0)
      for isKilled in [false, true] {
        if isKilled { try world.device(name).kill() } else { try world.device(name).close() }
        let game = try open(name)
        let notices = try game.wallet.notices()
        let notice = try #require(notices.first)
        #expect(notices.count == 1 && notice.kind == .claimed(key: "starter") && notice.amount == 100)
        #expect(notice.currency == .gems && notice.reason == "starter gift" && notice.goods == [Goods("hat")])
        #expect(try game.wallet.ledger().map(\.status) == [notice.verdict == .paid ? .settled : .declined])
        verdicts.insert(notice.verdict)
        games[name] = game
      }
      let game = try #require(games[name])
      let notice = try #require(try game.wallet.notices().first)
      for _ in 0..<2 { try game.wallet.confirm(through: notice) }
      #expect(try game.wallet.notices().isEmpty)
    }
    #expect(verdicts == [.paid, .declined])
  }

  @Test("if two copies of an installation spend the same money, one purchase is declined, with its goods")
  func copies() async throws {
    let phone = try open("phone")
    try phone.wallet.earn(100, .gems, for: "quest")
    try await world.settle()
    let clone = try world.device("phone").clone("copy")
    clone.network = .cut
    let copy = try open("copy")
    try phone.wallet.spend(80, .gems, for: "castle", goods: [Goods("castle")])
    try copy.wallet.spend(70, .gems, for: "tower", goods: [Goods("tower")])
    try await phone.cloud.sync()
    clone.network = .good
    try await world.settle()
    #expect(phone.wallet[.gems].total == 20 && copy.wallet[.gems].total == 20)
    #expect(try phone.wallet.notices().isEmpty)
    let notices = try copy.wallet.notices()
    #expect(notices.map(\.verdict) == [.declined] && notices.first?.goods == [Goods("tower")])
    #expect(notices.first?.kind == .spent && notices.first?.amount == 70)
    #expect(try copy.wallet.ledger(newest: 1).map(\.status) == [.declined])
    let told = copy.takeChanges().flatMap { (change: GameChange) -> [WalletVerdict] in
      if case .decisions(let verdicts) = change { verdicts } else { [] }
    }
    #expect(told.map(\.isAccepted) == [false] && told.first?.operation == notices.first?.id)
  }

  @Test("a checkpoint of a copied installation that isn't covered is declined as a whole")
  func groups() async throws {
    let crowns = Currency("crowns")
    let phone = try open("phone")
    try phone.wallet.earn(100, .gems, for: "quest")
    try await world.settle()
    let clone = try world.device("phone").clone("copy")
    clone.network = .cut
    let copy = try open("copy")
    for game in [phone, copy] {
      try game.checkpoint { checkpoint in
        try checkpoint.spend(100, .gems, for: "exchange")
        try checkpoint.earn(10, crowns, for: "exchange")
      }.wait()
    }
    try await phone.cloud.sync()
    clone.network = .good
    try await world.settle()
    for game in [phone, copy] { #expect(game.wallet[.gems].total == 0 && game.wallet[crowns].total == 10) }
    #expect(try Set(copy.wallet.notices().map(\.verdict)) == [.declined])
    #expect(try copy.wallet.notices().count == 2)
  }

  @Test("a copy's purchase that the balance covers waits until another device has returned enough, and then counts")
  func waits() async throws {
    let phone = try open("phone")
    _ = try open("tablet")
    try phone.wallet.earn(100, .gems, for: "quest")
    try await world.settle()
    try world.device("tablet").close()
    let clone = try world.device("phone").clone("copy")
    clone.network = .cut
    let copy = try open("copy")
    let rights = phone.wallet[.gems].spendable
    // Half of what is left is on the tablet.
    for game in [phone, copy] { try game.wallet.spend(rights, .gems, for: "castle", goods: [Goods("castle")]) }
    try await phone.cloud.sync()
    clone.network = .good
    try await world.settle()
    func told() -> [Bool] {
      copy.takeChanges().flatMap { (change: GameChange) -> [Bool] in
        if case .decisions(let verdicts) = change { verdicts.map(\.isAccepted) } else { [] }
      }
    }
    #expect(told().isEmpty)
    #expect(try copy.wallet.ledger(newest: 1).map(\.status) == [.waiting] && copy.wallet.notices().isEmpty)
    #expect(copy.wallet[.gems].total == 100 - 2 * rights)
    let tablet = try open("tablet")
    try await world.settle()
    #expect(told() == [true])
    #expect(try copy.wallet.ledger(newest: 1).map(\.status) == [.settled] && copy.wallet.notices().isEmpty)
    for game in [phone, tablet, copy] { #expect(game.wallet[.gems].total == 100 - 2 * rights) }
  }

  @Test("while decisions are held back, their notices are, too; delivery shows both")
  func held() async throws {
    let game = try open("phone")
    game.cloud.delivery = .manually
    try game.wallet.claim(100, .gems, key: "starter", for: "starter gift")
    try await world.settle()
    #expect(try game.wallet.notices().isEmpty && game.wallet[.gems].pending == 100)
    try game.cloud.deliver()
    #expect(try game.wallet.notices().map(\.verdict) == [.paid] && game.wallet[.gems].total == 100)
  }

  @Test("confirming a notice also confirms those before it, and no later one")
  func order() async throws {
    let game = try open("phone")
    for day in 1...3 {
      try game.wallet.claim(10, .gems, key: "daily \(day)", for: "day \(day)")
      try await world.settle()
    }
    let notices = try game.wallet.notices()
    #expect(notices.map(\.reason) == ["day 1", "day 2", "day 3"])
    try game.wallet.confirm(through: notices[1])
    #expect(try game.wallet.notices() == [notices[2]])
    try game.wallet.confirm(through: notices[0])
    #expect(try game.wallet.notices() == [notices[2]])
  }
}
