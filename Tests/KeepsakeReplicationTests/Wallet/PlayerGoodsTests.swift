import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// The goods that a player has: how the bank numbers their changes, and what a store makes of them.
@Suite struct PlayerGoodsTests {
  private static let chain = ChainID(high: 0, low: 1)

  private func operation(_ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64, _ goods: [String] = [])
    -> WalletOperation
  {
    WalletOperation(
      id: OperationID(high: 7, low: number), kind: kind, currency: "gems", amount: amount, reason: "test", goods: goods)
  }

  /// Twenty earnings with more goods than a reply has.
  private var many: [WalletOperation] {
    (0..<20 as Range<UInt64>).map { number in
      operation(.earn, 1, number, (0..<Wallet.maximumGoods).map { "good\(Int(number) * Wallet.maximumGoods + $0)" })
    }
  }

  @Test("each accepted operation with goods is a change; a store gets those after the last one that it knows")
  func numbered() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    var head = ChainHead(emptyChain: Self.chain)
    func goods(_ operation: WalletOperation, knowing number: UInt64) throws -> WalletGoods? {
      let reply = try bank.answer(
        WalletOffer(chain: Self.chain, base: head, operations: [operation], goods: number), in: &cloud)
      head = head.appending(operation)
      #expect(reply.state == .accepted(head))
      return reply.goods
    }
    #expect(try goods(operation(.earn, 10, 1), knowing: 0) == nil)
    #expect(
      try goods(operation(.spend, 4, 2, ["hat", "hat", "sword"]), knowing: 0)
        == WalletGoods(after: 0, number: 1, counts: ["hat": 2, "sword": 1]))
    #expect(
      try goods(operation(.spend, 1, 3, ["hat"]), knowing: 1) == WalletGoods(after: 1, number: 2, counts: ["hat": 3]))
    #expect(try goods(operation(.spend, 99, 4, ["crown"]), knowing: 2) == nil, "it is declined")
    // The store has it from before the bank was set back.
    #expect(
      try goods(operation(.earn, 1, 5), knowing: 7)
        == WalletGoods(after: 0, number: 2, counts: ["hat": 3, "sword": 1]))
  }

  @Test("a reply with many goods ends with a whole change, and the next one has the rest")
  func paged() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    var offer = WalletOffer(chain: Self.chain, base: ChainHead(emptyChain: Self.chain), operations: many)
    let first = try #require(try bank.answer(offer, in: &cloud).goods)
    #expect(first.after == 0 && first.number == 16 && first.counts.count == 16 * Wallet.maximumGoods)
    offer.goods = first.number
    let second = try #require(try bank.answer(offer, in: &cloud).goods)
    #expect(second.after == 16 && second.number == 20 && second.counts.count == 4 * Wallet.maximumGoods)
    #expect(Set(first.counts.keys).isDisjoint(with: second.counts.keys))
  }

  @Test("a device fetches all goods at once, however many replies that takes")
  func pages() throws {
    var lab = try Lab(devices: 2)
    for operation in many { try lab.commit(0, CommitDraft(wallet: [operation])) }
    for index in 0..<2 {
      try lab.settle(index)
      #expect(lab.devices[index].storage.goods().counts.count == 20 * Wallet.maximumGoods)
    }
  }

  @Test("a store takes the changes that come after those that it knows, and no others")
  func taken() {
    var goods = PlayerGoods()
    let isFirst = goods.take(WalletGoods(after: 0, number: 3, counts: ["hat": 2, "sword": 1]))
    let isNext = goods.take(WalletGoods(after: 3, number: 4, counts: ["hat": 0, "cap": 1]))
    #expect(isFirst && isNext && goods == PlayerGoods(number: 4, counts: ["sword": 1, "cap": 1]))
    let known = goods
    let isStale = !goods.take(WalletGoods(after: 3, number: 5, counts: ["hat": 9]))
    #expect(isStale && goods == known)
    let isWhole = goods.take(WalletGoods(after: 0, number: 1, counts: ["hat": 1]))
    #expect(isWhole && goods == PlayerGoods(number: 1, counts: ["hat": 1]))
  }

  @Test("a game sees the goods of what was bought here before the bank does, but none of a claim that isn't paid")
  func shown() throws {
    var wallet = Wallet(WalletState(chain: Self.chain))
    try wallet.perform(operation(.earn, 10, 1))
    try wallet.perform(operation(.spend, 4, 2, ["hat", "hat"]))
    try wallet.perform(operation(.claim(key: "gift"), 1, 3, ["crown"]))
    let bank = PlayerGoods(number: 1, counts: ["hat": 1, "sword": 2])
    #expect(wallet.goods(bank) == ["hat": 3, "sword": 2])
    wallet.state.operations.removeFirst(3)
    #expect(wallet.goods(bank) == bank.counts)
  }
}
