import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// The bank alone: what it makes of an offer that is repeated, too early, or of a closed chain.
@Suite struct BankTests {
  private static let chain = ChainID(high: 0, low: 1)

  private func operation(_ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64) -> WalletOperation {
    WalletOperation(id: OperationID(high: 7, low: number), kind: kind, currency: "gems", amount: amount, reason: "test")
  }

  private func offer(
    _ operations: [WalletOperation] = [], late: [WalletOperation] = [], follows: ChainID? = nil, chain: ChainID = chain
  ) -> WalletOffer {
    WalletOffer(
      chain: chain, follows: follows, base: ChainHead(emptyChain: chain), operations: operations, late: late,
      wanted: [:])
  }

  @Test("an offer that is repeated because its response was lost counts once, and gets the same response")
  func repeatedOffer() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let offer = offer(
      [operation(.earn, 10, 1), operation(.spend, 4, 2)],
      late: [operation(.earn, 7, 3), operation(.claim(key: "quest"), 30, 4)], follows: ChainID(high: 0, low: 9))
    let first = try bank.answer(offer, fetchedUpTo: 9, in: &cloud)
    let second = try bank.answer(offer, fetchedUpTo: 9, in: &cloud)
    #expect(first == second && bank.balance("gems") == 43)
    #expect(first.decisions.map(\.verdict) == [.accepted, .accepted] && cloud.decidedTwice.isEmpty)
  }

  @Test("nothing counts on a chain that follows another one until a device has fetched its beginning")
  func beginning() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(offer([operation(.earn, 10, 1)]), fetchedUpTo: 0, in: &cloud)
    let next = offer([operation(.earn, 5, 2)], follows: Self.chain, chain: ChainID(high: 0, low: 2))
    let begun = try bank.answer(next, fetchedUpTo: 0, in: &cloud)
    #expect(begun.state == .begun(next.base) && begun.totals.isEmpty)
    #expect(bank.balance("gems") == 10 && bank.state.pool == ["gems": 10])
    let accepted = try bank.answer(next, fetchedUpTo: 1, in: &cloud)
    #expect(accepted.totals["gems"]?.rights == 15 && bank.balance("gems") == 15)
  }

  @Test("a closed chain takes no operation any more, and its money goes to the player's other devices")
  func closedChain() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    let earned = operation(.earn, 10, 1)
    _ = try bank.answer(offer([earned]), fetchedUpTo: 0, in: &cloud)
    bank.close([Self.chain])
    let more = offer([earned, operation(.earn, 5, 2)])
    let head = more.base.appending(earned)
    #expect(try bank.answer(more, fetchedUpTo: 0, in: &cloud).state == .fenced(head))
    #expect(bank.balance("gems") == 10 && cloud.decision(on: operation(.earn, 5, 2).id) == nil)
    let other = try bank.answer(offer(chain: ChainID(high: 0, low: 2)), fetchedUpTo: 0, in: &cloud)
    #expect(other.totals["gems"]?.rights == 10)
  }

  @Test("the bank grants no more than it holds, whatever a device would like to have")
  func grants() throws {
    var (bank, cloud) = (Bank(BankState()), MemoryContainer(epoch: 1))
    _ = try bank.answer(offer([operation(.earn, 100, 1)]), fetchedUpTo: 0, in: &cloud)
    var poor = offer(chain: ChainID(high: 0, low: 2))
    poor.wanted = ["gems": 80]
    let reply = try bank.answer(poor, fetchedUpTo: 0, in: &cloud)
    #expect((reply.totals["gems"]?.rights ?? 0) == 0 && (bank.state.pool["gems"] ?? 0) == 0)
    #expect(bank.balance("gems") == 100)
  }
}
