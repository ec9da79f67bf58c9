import Foundation
import Keepsake
import Testing

@Suite struct WalletTests {
  let device: Device

  init() throws { device = try Device() }

  @Test("earned money can be spent, but no more than the balance, which is the same after a restart")
  func earnsAndSpends() throws {
    var game = try device.open()
    #expect(game.wallet[.gems] == Balance(total: 0, spendable: 0, pending: 0))
    try game.wallet.earn(80, .gems, for: "level 3")
    try game.wallet.spend(50, .gems, for: "sword", goods: [Goods("sword")])
    #expect(game.wallet[.gems] == Balance(total: 30, spendable: 30, pending: 0))
    #expect(
      gameErrorCode { try game.wallet.spend(31, .gems, for: "shield") } == .insufficient(30, of: 30))
    #expect(game.wallet[.gems].total == 30)
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.wallet[.gems].spendable == 30)
    #expect(try game.wallet.currencies() == [.gems])
  }

  @Test("an operation repeated with its id counts once, as does a repeated claim, which waits for the bank")
  func repeats() throws {
    let game = try device.open()
    defer { end(game) }
    let operation = try game.wallet.earn(10, .gems, for: "quest")
    try game.wallet.earn(10, .gems, for: "quest", id: operation)
    #expect(game.wallet[.gems].total == 10)
    try game.wallet.claim(100, .gems, key: "daily", for: "daily gift")
    try game.wallet.claim(100, .gems, key: "daily", for: "daily gift")
    #expect(game.wallet[.gems] == Balance(total: 10, spendable: 10, pending: 100))
  }

  @Test("a claim's key has the same bytes in each of its spellings, so that a bank pays it once")
  func spellings() throws {
    let game = try device.open()
    defer { end(game) }
    try game.wallet.claim(100, .gems, key: "cafe\u{301}", for: "gift")
    try game.checkpoint { try $0.claim(100, .gems, key: "caf\u{E9}", for: "gift") }.wait()
    let keys = try game.wallet.ledger().compactMap { entry in
      if case .claimed(let key) = entry.kind { Array(key.utf8) } else { nil }
    }
    #expect(keys == [Array("caf\u{E9}".utf8)])
  }

  @Test("the ledger has each operation's kind, amount, date and reason, newest first, also after a restart")
  func ledger() throws {
    let clock = device.clock
    var game = try device.open()
    let first = try game.wallet.earn(80, .gems, for: "level 3")
    clock.advance(by: .seconds(60))
    try game.wallet.earn(5, Currency("keys"), for: "chest")
    try game.wallet.spend(50, .gems, for: "sword", goods: [Goods("sword")])
    try game.wallet.claim(100, .gems, key: "daily", for: "gift")
    #expect(
      gameErrorCode { try game.wallet.spend(31, .gems, for: "shield") } == .insufficient(30, of: 30))
    func check(_ game: GameData) throws {
      let all = try game.wallet.ledger()
      #expect(all.map(\.kind) == [.claimed(key: "daily"), .spent, .earned, .earned])
      #expect(all.map(\.amount) == [100, 50, 5, 80] && all.map(\.reason) == ["gift", "sword", "chest", "level 3"])
      #expect(all[1].goods == [Goods("sword")] && all[3].id == first && all.allSatisfy { $0.status == .waiting })
      #expect(all[2].date.timeIntervalSince(all[3].date) == 60)
      #expect(try game.wallet.ledger(of: Currency("keys")).map(\.amount) == [5])
      #expect(try game.wallet.ledger(of: .gems, newest: 2).map(\.amount) == [100, 50])
      #expect(try game.wallet.ledger(newest: 0).isEmpty && game.wallet.ledger(of: Currency("none")).isEmpty)
    }
    try check(game)
    try game.close()
    game = try device.open()
    defer { end(game) }
    try check(game)
  }

  @Test("amounts, names and goods beyond the limits are refused, and the balance is unchanged")
  func limits() throws {
    let game = try device.open()
    defer { end(game) }
    #expect(gameErrorCode { try game.wallet.earn(1 << 41, .gems, for: "cheat") } == .misuse)
    try game.wallet.earn(1 << 40, .gems, for: "a lot")
    #expect(game.wallet[.gems].total == 1 << 40)
    #expect(
      gameErrorCode { try game.wallet.earn(1, Currency(String(repeating: "x", count: 200)), for: "x") } == .misuse)
    #expect(gameErrorCode { try game.wallet.earn(1, .gems, for: String(repeating: "x", count: 600)) } == .misuse)
    let goods = Array(repeating: Goods("x"), count: 65)
    #expect(gameErrorCode { try game.wallet.spend(1, .gems, for: "x", goods: goods) } == .misuse)
    #expect(game.wallet[.gems].total == 1 << 40)
  }

  @Test("invalid amounts and empty currency names are refused", arguments: [0, -5, Int.max])
  func mistakes(amount: Int) throws {
    let game = try device.open()
    defer { end(game) }
    #expect(gameErrorCode { try game.wallet.earn(amount, .gems, for: "x") } == .misuse)
    #expect(gameErrorCode { try game.wallet.earn(1, Currency(""), for: "x") } == .misuse)
    #expect(try game.wallet.currencies().isEmpty)
  }

  @Test("a checkpoint is atomic: a sword that can't be paid for isn't in the saved world, either")
  func checkpoints() throws {
    var game = try device.open()
    try game.wallet.earn(60, .gems, for: "start")
    #expect(game.wallet[.gems].total == 60)
    try game.saves.capture(World(level: 1), to: .main).wait()
    try game.checkpoint { checkpoint in
      try checkpoint.save(World(level: 2), to: .main)
      try checkpoint.record(2, for: .level)
      try checkpoint.insert("smith", into: .badges)
      try checkpoint.add(1, to: .coinsFound)
      try checkpoint.spend(50, .gems, for: "sword")
    }.wait()
    #expect(game.wallet[.gems].total == 10 && game.progress[.level] == 2)
    let refused = try game.checkpoint { checkpoint in
      try checkpoint.save(World(level: 3), to: .main)
      try checkpoint.record(3, for: .level)
      try checkpoint.spend(50, .gems, for: "another sword")
    }
    #expect(gameErrorCode { try refused.wait() } == .insufficient(10, of: 10))
    // The game continues from its last successful save, not from the one that failed.
    try game.saves.capture(World(level: 4), to: .main).wait()
    #expect(try game.saves.list().first?.isConflicted == false)
    func check(_ game: GameData) throws {
      #expect(try game.saves.load(.main)?.level == 4)
      #expect(game.progress[.level] == 2 && game.progress[.badges] == ["smith"] && game.progress[.coinsFound] == 1)
      #expect(game.wallet[.gems].total == 10)
    }
    try check(game)
    #expect(
      gameErrorCode {
        try game.checkpoint { checkpoint in
          try checkpoint.save(World(), to: .main)
          try checkpoint.save(World(), to: .main)
        }
      } == .misuse)
    try game.close()
    game = try device.open()
    defer { end(game) }
    try check(game)
  }

  @Test("a conversion takes one currency and adds another in one operation, or neither if there is too little")
  func converts() throws {
    let crowns = Currency("crowns")
    var game = try device.open()
    try game.wallet.earn(100, .gems, for: "start")
    let id = try game.wallet.convert(60, .gems, to: 6, crowns, for: "exchange")
    try game.wallet.convert(60, .gems, to: 6, crowns, for: "exchange", id: id)
    #expect(
      gameErrorCode { try game.wallet.convert(41, .gems, to: 4, crowns, for: "exchange") } == .insufficient(40, of: 40))
    #expect(gameErrorCode { try game.wallet.convert(1, .gems, to: 2, .gems, for: "magic") } == .misuse)
    #expect(gameErrorCode { try game.wallet.convert(1, .gems, to: 0, crowns, for: "nothing") } == .misuse)
    try game.checkpoint { checkpoint in
      try checkpoint.save(World(level: 2), to: .main)
      try checkpoint.convert(40, .gems, to: 4, crowns, for: "exchange")
      try checkpoint.spend(10, crowns, for: "throne")
    }.wait()
    func check(_ game: GameData) throws {
      #expect(game.wallet[.gems] == Balance(total: 0, spendable: 0, pending: 0))
      #expect(game.wallet[crowns] == Balance(total: 0, spendable: 0, pending: 0))
      let ledger = try game.wallet.ledger(of: crowns)
      #expect(ledger.map(\.kind) == [.spent, .converted(to: crowns, received: 4), .converted(to: crowns, received: 6)])
      #expect(ledger.map(\.amount) == [10, 40, 60] && ledger.map(\.currency) == [crowns, .gems, .gems])
      #expect(try game.wallet.ledger(of: .gems).count == 3)
    }
    try check(game)
    try game.close()
    game = try device.open()
    defer { end(game) }
    try check(game)
  }

  @Test("another operation under a known id is refused with the id, changes nothing, and the first one stays")
  func reusedIDs() throws {
    var game = try device.open()
    try game.wallet.earn(500, .gems, for: "start")
    let hat = try game.wallet.spend(5, .gems, for: "hat", goods: [Goods("hat")])
    func check(_ game: GameData) throws {
      #expect {
        try game.wallet.spend(400, .gems, for: "castle", id: hat, goods: [Goods("castle")])
      } throws: { error in
        let error = error as? GameDataError
        return error?.code == .idReused(hat) && error?.message.contains(hat.description) == true
      }
      let castle = try game.checkpoint { checkpoint in
        try checkpoint.save(World(level: 9), to: .main)
        try checkpoint.spend(400, .gems, for: "castle", id: hat)
      }
      #expect(gameErrorCode { try castle.wait() } == .idReused(hat))
      // Worded differently, it is the same operation.
      try game.wallet.spend(5, .gems, for: "a hat", id: hat, goods: [Goods("hat")])
      #expect(game.wallet[.gems].total == 495)
      #expect(try game.saves.load(.main) == nil)
    }
    try check(game)
    try game.close()
    game = try device.open()
    defer { end(game) }
    try check(game)
  }

  @Test("a checkpoint takes at most 100 wallet operations, and refuses the next one at once")
  func manyOperations() throws {
    let game = try device.open()
    defer { end(game) }
    func earn(_ count: Int) throws {
      try game.checkpoint { checkpoint in
        for number in 0..<count { try checkpoint.earn(1, .gems, for: "coin \(number)") }
      }.wait()
    }
    #expect(gameErrorCode { try earn(101) } == .tooLarge)
    #expect(game.wallet[.gems].total == 0)
    try earn(100)
    #expect(game.wallet[.gems].total == 100)
  }
}
