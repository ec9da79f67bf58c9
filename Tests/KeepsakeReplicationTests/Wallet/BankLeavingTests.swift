import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// The bank alone: a chain that leaves for another bank, and the voucher there.
@Suite struct BankLeavingTests {
  private static let chain = ChainID(high: 0, low: 1)
  private static let other = ChainID(high: 0, low: 2)
  private static let old = ContainerID(high: 1, low: 1)
  private static let new = ContainerID(high: 2, low: 2)
  private static let keys = [Data("secret".utf8)]

  /// A bank with its records.
  private struct Place {
    var bank: Bank
    var cloud = MemoryContainer(epoch: 1)

    init(_ container: ContainerID, keys: [Data]? = BankLeavingTests.keys, planting bugs: Set<PlantedBug> = []) {
      let seal = keys.map { BankSeal(bank: container, keys: $0) }
      bank = Bank(BankState(), rules: BankRules(seal: seal), faults: Faults(planting: bugs))
    }

    mutating func answer(_ offer: WalletOffer) throws -> WalletReply { try bank.answer(offer, in: &cloud) }
  }

  private func operation(
    _ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64, _ currency: String = "gems"
  ) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 7, low: number), kind: kind, currency: currency, amount: amount, reason: "test")
  }

  private func offer(
    _ operations: [WalletOperation] = [], late: [WalletOperation] = [], chain: ChainID = chain, statement: UInt64 = 0,
    follows: ChainID? = nil, showing vouchers: [WalletVoucher] = [], leavingFor receiver: ContainerID? = nil
  ) -> WalletOffer {
    WalletOffer(
      chain: chain, follows: follows, base: ChainHead(emptyChain: chain), statement: statement, operations: operations,
      late: late, vouchers: vouchers, leaving: receiver)
  }

  /// An old bank whose chain earned 100 gems and was paid 30 for a quest, and the voucher of all.
  private func leave(planting bugs: Set<PlantedBug> = []) throws -> (place: Place, voucher: WalletVoucher) {
    var place = Place(Self.old, planting: bugs)
    let operations = [operation(.earn, 100, 1), operation(.claim(key: "quest"), 30, 2)]
    let reply = try place.answer(offer(operations, leavingFor: Self.new))
    return (place, try #require(reply.voucher))
  }

  @Test("a chain leaves with what it held, counts what came with the offer, and is closed; the same again when asked")
  func leaves() throws {
    var place = Place(Self.old)
    let operations = [operation(.earn, 100, 1), operation(.spend, 40, 2), operation(.claim(key: "quest"), 30, 3)]
    let leaving = offer(operations, leavingFor: Self.new)
    let reply = try place.answer(leaving)
    let head = operations.reduce(leaving.base) { $0.appending($1) }
    let voucher = try #require(reply.voucher)
    #expect(reply.state == .closed(common: head) && reply.decisions.map(\.verdict) == [.accepted])
    #expect(voucher.amounts == ["gems": 90] && voucher.bank == Self.old && voucher.receiver == Self.new)
    #expect(voucher.claims == [WalletVoucher.Claim(key: "quest", currency: "gems", amount: 30)])
    #expect(place.bank.balance("gems") == 0 && place.bank.state.chains.isEmpty && place.bank.state.closedChains == 1)
    #expect(try place.answer(leaving) == reply, "the response was lost")
    #expect(place.cloud.voucher(of: Self.chain) == voucher && place.cloud.decidedTwice.isEmpty)
  }

  @Test("a chain that has left for one bank gets the same voucher when it asks for another one")
  func otherReceiver() throws {
    var (place, voucher) = try leave()
    let again = try place.answer(offer(leavingFor: ContainerID(high: 3, low: 3)))
    #expect(again.voucher == voucher && voucher.receiver == Self.new)
    #expect(try place.answer(offer()).voucher == nil, "only a store that leaves gets it")
  }

  @Test("another device's share stays, and the last device takes everything that is left")
  func shares() throws {
    var place = Place(Self.old)
    let (earned, gift) = (operation(.earn, 100, 1), operation(.earn, 50, 2))
    _ = try place.answer(offer([earned]))
    _ = try place.answer(offer([gift], chain: Self.other))
    place.bank.state.pool = ["gems": 7]
    let first = try place.answer(offer([earned], statement: 1, leavingFor: Self.new))
    #expect(first.voucher?.amounts == ["gems": 100])
    #expect(place.bank.balance("gems") == 57, "what others left in the pool is theirs")
    let last = try place.answer(offer([gift], chain: Self.other, statement: 1, leavingFor: Self.new))
    #expect(last.voucher?.amounts == ["gems": 57] && place.bank.balance("gems") == 0)
  }

  @Test("what the player owes is paid before a device leaves")
  func debts() throws {
    var place = Place(Self.old)
    place.bank.state.debts = ["gems": 30]
    let reply = try place.answer(offer([operation(.earn, 100, 1)], leavingFor: Self.new))
    #expect(reply.voucher?.amounts == ["gems": 70] && place.bank.state.debts == nil)
  }

  @Test("a spend that waits for another device keeps the chain, and is charged before the last one leaves")
  func waiting() throws {
    var place = Place(Self.old)
    let earned = operation(.earn, 100, 1)
    _ = try place.answer(offer([earned]))
    _ = try place.answer(offer(chain: Self.other))
    let late = operation(.spend, 60, 2)
    let (follower, former) = (ChainID(high: 0, low: 3), ChainID(high: 0, low: 9))
    _ = try place.answer(offer(chain: follower, follows: former))
    let kept = try place.answer(
      offer(late: [late], chain: follower, statement: 1, follows: former, leavingFor: Self.new))
    #expect(kept.voucher == nil && kept.decisions.map(\.verdict) == [.waiting])
    try place.bank.close([Self.chain, Self.other], in: &place.cloud)
    var asking = offer(chain: follower, statement: 1, follows: former, leavingFor: Self.new)
    asking.waiting = [late.id]
    let reply = try place.answer(asking)
    #expect(reply.decisions.map(\.verdict) == [.accepted] && reply.voucher?.amounts == ["gems": 40])
  }

  @Test("what others wait for is charged from the rights of a chain that leaves")
  func chargesOthersFirst() throws {
    var place = Place(Self.old)
    let earned = operation(.earn, 100, 1)
    _ = try place.answer(offer([earned]))
    let late = operation(.spend, 60, 2)
    let (follower, former) = (ChainID(high: 0, low: 3), ChainID(high: 0, low: 9))
    _ = try place.answer(offer(chain: follower, follows: former))
    let waits = try place.answer(offer(late: [late], chain: follower, statement: 1, follows: former))
    #expect(waits.decisions.map(\.verdict) == [.waiting])
    let reply = try place.answer(offer([earned], statement: 1, leavingFor: Self.new))
    #expect(reply.voucher?.amounts == ["gems": 40] && place.bank.state.waiting.isEmpty)
    #expect(place.cloud.decision(on: late.id)?.verdict == .accepted)
  }

  @Test("a copy of a store that has left gets the same voucher, and leaves again with what it has beside it")
  func copy() throws {
    var (place, voucher) = try leave()
    let known = [operation(.earn, 100, 1), operation(.claim(key: "quest"), 30, 2)]
    let more = operation(.earn, 5, 3)
    let asked = offer(known + [more], leavingFor: Self.new)
    let reply = try place.answer(asked)
    let common = known.reduce(asked.base) { $0.appending($1) }
    #expect(reply.voucher == voucher && reply.state == .closed(common: common))
    let next = ChainID(high: 0, low: 8)
    _ = try place.answer(offer(late: [more], chain: next, follows: Self.chain, leavingFor: Self.new))
    let second = try place.answer(offer(chain: next, statement: 1, follows: Self.chain, leavingFor: Self.new))
    #expect(second.voucher?.amounts == ["gems": 5] && second.voucher?.chain == next)
  }

  @Test("a bank without a seal, and one that was set back and isn't open yet, let nobody leave")
  func stays() throws {
    var unsealed = Place(Self.old, keys: nil)
    let leaving = offer([operation(.earn, 100, 1)], leavingFor: Self.new)
    #expect(try unsealed.answer(leaving).voucher == nil && unsealed.bank.balance("gems") == 100)
    var frozen = Place(Self.old)
    _ = try frozen.answer(offer([operation(.earn, 1, 9)], chain: Self.other))
    frozen.bank.setBack(to: 1)
    #expect(try frozen.answer(leaving).voucher == nil && frozen.bank.balance("gems") == 101)
  }

  @Test("leaving a bank where nothing was ever earned costs it nothing")
  func nothing() throws {
    var place = Place(Self.old)
    let reply = try place.answer(offer(leavingFor: Self.new))
    let voucher = try #require(reply.voucher)
    #expect(voucher.isEmpty && place.bank.state == BankState() && place.cloud.closedChains.isEmpty)
  }

  @Test("a chain that brings nothing leaves for good, and without claims, unless it is the last one")
  func bringsNothing() throws {
    var place = Place(Self.old)
    _ = try place.answer(offer([operation(.earn, 100, 1), operation(.claim(key: "quest"), 30, 2)]))
    let empty = try #require(try place.answer(offer(chain: Self.other, leavingFor: Self.new)).voucher)
    #expect(empty.isEmpty && empty.claims.isEmpty && place.bank.state.chains.keys.sorted() == [Self.chain])
    #expect(try place.answer(offer(chain: Self.other, leavingFor: Self.new)).voucher == empty)
    // A request that was held up doesn't begin it.
    let late = try place.answer(offer(chain: Self.other))
    #expect(late.state == .closed(common: ChainHead(emptyChain: Self.other)))
    #expect(place.bank.state.chains.count == 1 && place.bank.balance("gems") == 130)
    try place.bank.close([Self.chain], in: &place.cloud)
    let last = try #require(
      try place.answer(offer(chain: ChainID(high: 0, low: 77), leavingFor: Self.new)).voucher)
    #expect(last.amounts == ["gems": 130] && last.claims.count == 1)
  }

  private func objection(to order: BankOrder, at place: inout Place) -> BankOrderError? {
    do {
      _ = try place.bank.perform(order, in: &place.cloud)
      return nil
    } catch {
      return error as? BankOrderError
    }
  }

  @Test("what is ordered for a player whose devices have all left is refused, until a device is there again")
  func moved() throws {
    func order(_ kind: BankOrder.Kind, _ number: UInt64, receipt: ContentHash? = nil) -> BankOrder {
      BankOrder(
        id: OperationID(high: 8, low: number), kind: kind, currency: "gems", amount: 5, reason: "test",
        receipt: receipt)
    }
    var (place, _) = try leave()
    let (gift, paid) = (order(.grant, 1), order(.grant, 2, receipt: ContentHash(of: Data("receipt".utf8))))
    for order in [gift, paid] { #expect(objection(to: order, at: &place) == .playerMoved) }
    #expect(place.bank.balance("gems") == 0 && place.cloud.orders.isEmpty)
    #expect(objection(to: order(.charge, 3), at: &place) == nil, "what the player owes stays here")
    _ = try place.answer(offer(chain: Self.other))
    for order in [gift, paid] { #expect(objection(to: order, at: &place) == nil) }
    #expect(place.bank.balance("gems") == 5)
    // One whose devices were only removed may come back.
    var removed = Place(Self.old)
    _ = try removed.answer(offer([operation(.earn, 1, 1)]))
    try removed.bank.close([Self.chain], in: &removed.cloud)
    #expect(objection(to: gift, at: &removed) == nil)
  }

  @Test("a chain that goes on at the same bank leaves its money there")
  func sameBank() throws {
    var place = Place(Self.old)
    let reply = try place.answer(offer([operation(.earn, 100, 1)], leavingFor: Self.old))
    #expect(reply.voucher?.isEmpty == true && place.bank.state.pool == ["gems": 100])
  }

  // MARK: The bank that pays

  @Test("a voucher is paid once, however often it is shown, on whichever chain")
  func paysOnce() throws {
    let voucher = try leave().voucher
    var place = Place(Self.new)
    let first = try place.answer(offer(showing: [voucher]))
    #expect(first.takenVouchers == [Self.chain] && first.totals["gems"]?.rights == 130)
    for chain in [Self.chain, Self.other] {
      #expect(try place.answer(offer(chain: chain, showing: [voucher])).takenVouchers == [Self.chain])
    }
    #expect(place.bank.balance("gems") == 130 && place.cloud.orders.map(\.kind) == [.voucher])
    #expect(place.cloud.orders.map(\.amount) == [130] && place.bank.state.orderNumber == 1)
  }

  @Test("with the bug that pays a voucher twice, money is made")
  func bugPaysTwice() throws {
    let voucher = try leave().voucher
    var place = Place(Self.new, planting: [.payVoucherTwice])
    for _ in 1...2 { _ = try place.answer(offer(showing: [voucher])) }
    #expect(place.bank.balance("gems") > 130)
  }

  @Test("a claim that the old bank paid is never paid here, and one that both paid counts once")
  func claims() throws {
    let voucher = try leave().voucher
    var place = Place(Self.new)
    _ = try place.answer(offer(showing: [voucher]))
    let again = try place.answer(
      offer([operation(.claim(key: "quest"), 30, 9)], chain: Self.other, showing: [voucher]))
    #expect(again.decisions.map(\.verdict) == [.declined] && place.bank.balance("gems") == 130)
    var paid = Place(Self.new)
    _ = try paid.answer(offer([operation(.claim(key: "quest"), 30, 9)]))
    let chain = ChainID(high: 0, low: 5)
    #expect(try paid.answer(offer(chain: chain, showing: [voucher])).takenVouchers == [Self.chain])
    #expect(paid.bank.balance("gems") == 130)
  }

  @Test("two devices that leave one after the other bring a claim that was paid once, and nothing is taken back for it")
  func claimsOfTwoDevices() throws {
    var old = Place(Self.old)
    _ = try old.answer(offer([operation(.earn, 50, 1)], chain: Self.other))
    let quest = [operation(.claim(key: "quest"), 30, 2)]
    let first = try #require(try old.answer(offer(quest, leavingFor: Self.new)).voucher)
    let second = try #require(
      try old.answer(offer([operation(.earn, 50, 1)], chain: Self.other, statement: 1, leavingFor: Self.new)).voucher)
    #expect(first.amounts == ["gems": 30] && second.amounts == ["gems": 50] && first.claims == second.claims)
    var place = Place(Self.new)
    for voucher in [first, second, first] { _ = try place.answer(offer(showing: [voucher])) }
    #expect(place.bank.balance("gems") == 80 && place.cloud.paidClaims == ["quest"])
    // A bank that has paid it, too, takes 30 back, from the second voucher what the first one doesn't have.
    var small = first
    small.amounts = ["gems": 10]
    small = BankSeal(bank: Self.old, keys: Self.keys).signed(small)
    var paid = Place(Self.new)
    _ = try paid.answer(offer([operation(.claim(key: "quest"), 30, 9)]))
    for voucher in [small, small, second, small, second] {
      let chain = ChainID(high: 0, low: 5)
      _ = try paid.answer(offer(chain: chain, showing: [voucher]))
    }
    #expect(paid.bank.balance("gems") == 30 + 50 - 20 && paid.cloud.orders.map(\.amount) == [30])
  }

  @Test("with the bug that ignores paid claims, a gift is paid by both banks")
  func bugPaysClaims() throws {
    let voucher = try leave().voucher
    var place = Place(Self.new, planting: [.payClaimAfterAdoption])
    _ = try place.answer(offer([operation(.claim(key: "quest"), 30, 9)], showing: [voucher]))
    #expect(place.bank.balance("gems") == 160)
  }

  @Test("a voucher that is forged, changed, or for another bank is declined, and the others are paid")
  func forged() throws {
    let voucher = try leave().voucher
    var changed = voucher
    (changed.amounts, changed.chain) = (["gems": 1_000], Self.other)
    let stranger = BankSeal(bank: Self.old, keys: [Data("guessed".utf8)])
    let forged = stranger.signed(
      WalletVoucher(bank: Self.old, chain: ChainID(high: 0, low: 4), receiver: Self.new, amounts: ["gems": 9]))
    let elsewhere = BankSeal(bank: Self.old, keys: Self.keys).signed(
      WalletVoucher(
        bank: Self.old, chain: ChainID(high: 0, low: 5), receiver: ContainerID(high: 3, low: 3), amounts: ["gems": 9]))
    var place = Place(Self.new)
    let reply = try place.answer(offer(showing: [changed, forged, elsewhere, voucher]))
    #expect(reply.declinedVouchers == [changed.chain, forged.chain, elsewhere.chain])
    #expect(reply.takenVouchers == [voucher.chain] && place.bank.balance("gems") == 130)
  }

  @Test("a voucher that the player has no room for, or that the bank can't check, is left for later")
  func later() throws {
    let voucher = try leave().voucher
    var full = Place(Self.new)
    full.bank.state.pool = ["gems": Wallet.maximumTotal - 100]
    let refused = try full.answer(offer(showing: [voucher]))
    #expect(refused.takenVouchers.isEmpty && refused.declinedVouchers.isEmpty && full.cloud.orders.isEmpty)
    #expect(full.cloud.paidClaims.isEmpty, "nor are its claims taken for paid")
    var unsealed = Place(Self.new, keys: nil)
    let unchecked = try unsealed.answer(offer(showing: [voucher]))
    #expect(unchecked.takenVouchers.isEmpty && unchecked.declinedVouchers.isEmpty)
    #expect(unsealed.bank.balance("gems") == 0)
  }

  @Test("a voucher whose order's id a device has used stays unpaid, and the rest of the exchange counts")
  func usedID() throws {
    let voucher = try leave().voucher
    var place = Place(Self.new)
    let id = OperationID(derivedFrom: "voucher \(voucher.bank) \(voucher.chain) gems")
    let earned = WalletOperation(id: id, kind: .earn, currency: "gems", amount: 1, reason: "test")
    let reply = try place.answer(offer([earned], showing: [voucher]))
    #expect(reply.takenVouchers.isEmpty && reply.declinedVouchers.isEmpty && place.cloud.orders.isEmpty)
    #expect(place.bank.balance("gems") == 1 && place.cloud.paidClaims.isEmpty)
  }

  @Test("a chain that leaves takes along what its vouchers brought in the same offer")
  func through() throws {
    let voucher = try leave().voucher
    var place = Place(Self.new)
    _ = try place.answer(offer([operation(.earn, 50, 20)], chain: Self.other))
    let third = ContainerID(high: 3, low: 3)
    let chain = ChainID(high: 0, low: 6)
    let reply = try place.answer(offer(chain: chain, showing: [voucher], leavingFor: third))
    #expect(reply.takenVouchers == [voucher.chain] && reply.voucher?.amounts == ["gems": 130])
    #expect(place.bank.balance("gems") == 50)
  }

  @Test("an offer with too many vouchers is refused")
  func tooMany() throws {
    let voucher = try leave().voucher
    var place = Place(Self.new)
    #expect(throws: ExchangeError.tooMany("vouchers")) {
      try place.answer(offer(showing: Array(repeating: voucher, count: WalletVoucher.maximumShown + 1)))
    }
  }
}
