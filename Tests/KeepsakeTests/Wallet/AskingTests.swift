import Foundation
import KeepsakeReplication
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// Purchases for which a device asks the bank.
@Suite(.hangLimit) struct AskingTests {
  private let world = TestWorld()

  private func open(_ name: String) throws -> GameData { try world.device(name).open("com.example.space") }

  /// A phone and a tablet that have shared 100 gems with the bank.
  private func shared() async throws -> (phone: GameData, tablet: GameData) {
    let (phone, tablet) = (try open("phone"), try open("tablet"))
    try phone.wallet.earn(100, .gems, for: "quest")
    try await world.settle()
    return (phone, tablet)
  }

  private func needs(_ game: GameData) throws -> [String: Int64] {
    try game.core.store.read { try $0.wallet()?.needs ?? [:] }
  }

  /// Lets the purchase's limit pass once the bank has responded to it, and no more, because asking for the devices'
  /// names has a limit of its own. Returns the purchase's error.
  private func failure(
    of game: GameData, _ purchase: Task<OperationID, any Error>, after limit: Duration
  ) async throws -> GameDataError? {
    try await until("the bank has responded") { try game.core.store.read { try $0.wallet()?.held["gems"] } != nil }
    try await until("the purchase waits") { world.clock.sleeps.contains(limit) }
    world.clock.advance(by: limit)
    if case .failure(let error) = await purchase.result { return error as? GameDataError }
    return nil
  }

  @Test("of 100 gems, two devices hold 34 each and the bank the rest; the total is the same everywhere")
  func shares() async throws {
    let (phone, tablet) = try await shared()
    #expect(phone.wallet[.gems] == Balance(total: 100, spendable: 34, pending: 0))
    #expect(tablet.wallet[.gems] == Balance(total: 100, spendable: 34, pending: 0))
    #expect(phone.wallet.bank == .connected)
  }

  @Test("a purchase of 80 of 100 gems gets the rest from the bank and from the other device")
  func asksOtherDevices() async throws {
    let (phone, tablet) = try await shared()
    #expect(gameErrorCode { try phone.wallet.spend(80, .gems, for: "castle") } == .insufficient(34, of: 100))
    let id = OperationID(high: 1, low: 2)
    for _ in 0..<2 {
      let purchase = try await phone.wallet.spend(
        80, .gems, for: "castle", id: id, goods: [Goods("castle")], askingBankFor: .seconds(60))
      #expect(purchase == id)
    }
    #expect(try phone.wallet[.gems].total == 20 && needs(phone).isEmpty)
    try await world.settle()
    #expect(tablet.wallet[.gems].total == 20)
    #expect(try phone.wallet.ledger(newest: 1).map(\.status) == [.settled])
  }

  @Test("what this device holds is spent without a request, more than the player has is refused without one")
  func asksNobody() async throws {
    let (phone, _) = try await shared()
    try world.device("phone").network = .cut
    let before = try world.device("phone").traffic.requests
    try await phone.wallet.spend(34, .gems, for: "tower", askingBankFor: .seconds(60))
    await #expect {
      try await phone.wallet.spend(67, .gems, for: "castle", askingBankFor: .seconds(60))
    } throws: {
      ($0 as? GameDataError)?.code == .insufficient(0, of: 66)
    }
    #expect(try world.device("phone").traffic.requests == before)
    // It could be enough, but nobody can be asked.
    await #expect {
      try await phone.wallet.spend(66, .gems, for: "castle", askingBankFor: .seconds(60))
    } throws: {
      ($0 as? GameDataError)?.code == .unreachable
    }
    #expect(try phone.wallet[.gems].total == 66 && needs(phone).isEmpty)
  }

  @Test("what the bank holds costs one exchange")
  func asksOnce() async throws {
    let home = try Household()
    let here = try home.phone.open()
    defer { end(here) }
    let there = try home.tablet.open()
    for game in [here, there] { game.cloud.connect(home.cloud.address) }
    try here.wallet.earn(90, .gems, for: "quest")
    for _ in 0..<3 {
      try await here.cloud.sync()
      try await there.cloud.sync()
    }
    // Only then does nobody change anything at the bank any more, so that this device hears of nothing later.
    end(there)
    for _ in 0..<2 { try await here.cloud.sync() }
    #expect(here.wallet[.gems].spendable == 30)
    let connection = here.cloud.connection
    // The purchase is reported later.
    let stub = StubCloud(of: here, onCommit: {}, fetching: { try await connection.fetchChanges() })
    let before = home.cloud.exchanges
    defer { withExtendedLifetime(stub) {} }
    try await here.wallet.spend(60, .gems, for: "castle", askingBankFor: .seconds(9))
    #expect(home.cloud.exchanges == before + 1)
    #expect(here.wallet[.gems] == Balance(total: 30, spendable: 0, pending: 0))
  }

  @Test("if the other device is offline, the error names it with its amount and says when it was seen")
  func namesDevices() async throws {
    let (phone, _) = try await shared()
    try world.device("tablet").close()
    world.clock.advance(days: 2)
    let purchase = Task { try await phone.wallet.spend(80, .gems, for: "castle", askingBankFor: .seconds(41)) }
    let error = try #require(await failure(of: phone, purchase, after: .seconds(41)))
    guard case .insufficient(let spendable, let total, let held) = error.code else {
      Issue.record("another error: \(error)")
      return
    }
    // The bank has given this device what it had.
    #expect(spendable == 66 && total == 100)
    #expect(held.map(\.name) == ["tablet"] && held.map(\.amount) == [34])
    #expect(held.first?.device != nil && held.first?.lastSeen == KeepsakeTesting.TestClock.start)
    for text in ["66 gems", "of 100", "34 are on tablet, seen 2 days ago"] {
      #expect(error.message.contains(text), "\(error)")
    }
    #expect(try phone.wallet[.gems].total == 100 && needs(phone).isEmpty)
    _ = try open("tablet")
    try await phone.wallet.spend(80, .gems, for: "castle", askingBankFor: .seconds(3600))
    #expect(phone.wallet[.gems].total == 20)
  }

  @Test("a purchase whose task is cancelled isn't made, and its need ends")
  func cancelled() async throws {
    let (phone, _) = try await shared()
    try world.device("tablet").close()
    let purchase = Task { try await phone.wallet.spend(80, .gems, for: "castle", askingBankFor: .seconds(30)) }
    try await until { try needs(phone) == ["gems": 80] }
    purchase.cancel()
    await #expect(throws: CancellationError.self) { try await purchase.value }
    #expect(try phone.wallet[.gems].total == 100 && needs(phone).isEmpty)
  }

  @Test("a purchase that waits when the data is closed ends, and the data opens without its need")
  func closed() async throws {
    let (phone, _) = try await shared()
    try world.device("tablet").close()
    let purchase = Task { try await phone.wallet.spend(80, .gems, for: "castle", askingBankFor: .seconds(30)) }
    try await until { try needs(phone) == ["gems": 80] }
    try phone.close()
    await #expect(throws: (any Error).self) { try await purchase.value }
    let again = try open("phone")
    #expect(try again.wallet[.gems].total == 100 && needs(again).isEmpty)
  }

  @Test("purchases at the same time don't take each other's money: each that the player can afford is made")
  func together() async throws {
    let (phone, tablet) = try await shared()
    async let castle = phone.wallet.spend(50, .gems, for: "castle", askingBankFor: .seconds(60))
    async let tower = phone.wallet.spend(45, .gems, for: "tower", askingBankFor: .seconds(60))
    _ = try await (castle, tower)
    #expect(try phone.wallet[.gems].total == 5 && needs(phone).isEmpty)
    try phone.wallet.earn(95, .gems, for: "quest")
    try await world.settle()
    let results = await withTaskGroup(of: Bool.self) { group in
      for name in ["castle", "another castle"] {
        group.addTask {
          do {
            try await phone.wallet.spend(80, .gems, for: name, askingBankFor: .seconds(60))
            return true
          } catch {
            return false
          }
        }
      }
      return await group.reduce(into: [Bool]()) { $0.append($1) }
    }
    #expect(results.count(where: \.self) == 1 && phone.wallet[.gems].total == 20)
    try await world.settle()
    #expect(tablet.wallet[.gems].total == 20)
  }

  @Test("a small purchase in between doesn't end the need of one that waits")
  func smallPurchase() async throws {
    let (phone, _) = try await shared()
    try world.device("tablet").close()
    let castle = Task { try await phone.wallet.spend(80, .gems, for: "castle", askingBankFor: .seconds(3600)) }
    try await until { try needs(phone) == ["gems": 80] }
    try phone.wallet.spend(2, .gems, for: "sweet")
    try await until("the castle is still needed") { try needs(phone) == ["gems": 80] }
    _ = try open("tablet")
    _ = try await castle.value
    #expect(phone.wallet[.gems].total == 18)
  }
}
