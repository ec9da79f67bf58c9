import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What a bank says to stores of the first version, which know neither restores nor the servers' own currencies: they
/// couldn't read the response.
@Suite struct OldWalletTests {
  private static let chain = ChainID(high: 0, low: 1)
  private static let seal = BankSeal(bank: ContainerID(high: 1, low: 1), keys: [Data("secret".utf8)])

  private var cloud = MemoryContainer(epoch: 1)

  private static func operation(
    _ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64
  ) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 7, low: number), kind: kind, currency: "gems", amount: amount, reason: "test")
  }

  /// - Parameter statement: The newest one that the store has.
  private static func offer(
    _ base: ChainHead = ChainHead(emptyChain: chain), operations: [WalletOperation] = [], statement: UInt64 = 0
  ) -> WalletOffer {
    WalletOffer(chain: chain, version: 1, base: base, statement: statement, operations: operations)
  }

  @Test("an offer without a version is of the first one, and a version below that is refused")
  mutating func versions() throws {
    let old = try JSONEncoder().encode(Self.offer())
    #expect(!String(decoding: old, as: UTF8.self).contains("version"))
    #expect(try JSONDecoder().decode(WalletOffer.self, from: old).version == 1)
    var offer = WalletOffer(chain: Self.chain, base: ChainHead(emptyChain: Self.chain))
    #expect(offer.version == WalletOffer.currentVersion)
    #expect(String(decoding: try JSONEncoder().encode(offer), as: UTF8.self).contains("\"version\":2"))
    offer.version = 0
    var bank = Bank(BankState())
    #expect(throws: ExchangeError.self) { try bank.answer(offer, in: &cloud) }
  }

  @Test("a bank that was set back asks an old store for nothing: it brings what its ledger has, and goes on")
  mutating func restored() throws {
    var bank = Bank(BankState(), rules: BankRules(seal: Self.seal))
    let made = [Self.operation(.earn, 10, 1), Self.operation(.earn, 5, 2)]
    let first = ChainHead(emptyChain: Self.chain).appending(made[0])
    let second = first.appending(made[1])
    let statement = try bank.answer(Self.offer(operations: [made[0]]), in: &cloud).statement
    let backup = (bank.state, cloud)
    let newer = try bank.answer(Self.offer(first, operations: [made[1]], statement: statement), in: &cloud).statement
    #expect(newer > statement)

    bank = Bank(backup.0, rules: BankRules(seal: Self.seal, epoch: 1))
    cloud = backup.1
    let lost = try bank.answer(Self.offer(second, statement: newer), in: &cloud)
    #expect(lost.state == .from(head: first, common: nil))
    let reply = try bank.answer(Self.offer(first, operations: [made[1]], statement: newer), in: &cloud)
    #expect(reply.state == .accepted(second) && reply.statement > newer)
    #expect(!bank.isFrozen && bank.balance("gems") == 15)
    // It comes to rest, and is granted what it lacks.
    bank.state.pool["gems"] = 7
    let next = try bank.answer(Self.offer(second, statement: reply.statement), in: &cloud)
    #expect(next.totals["gems"]?.granted == 7 && next.statement > reply.statement)
    let before = bank.state
    _ = try bank.answer(Self.offer(second, statement: next.statement), in: &cloud)
    #expect(bank.state == before)
  }

  @Test("an earning that isn't allowed is declined")
  mutating func notAllowed() throws {
    for version in [1, 2] {
      var bank = Bank(BankState(), rules: BankRules(authoritative: ["gems"]))
      cloud = MemoryContainer(epoch: 1)
      var offer = Self.offer(operations: [Self.operation(.earn, 10, 1)])
      offer.version = version
      let verdicts = try bank.answer(offer, in: &cloud).decisions.map(\.verdict)
      #expect(verdicts == [version == 1 ? .declined : .notAllowed] && bank.balance("gems") == 0)
    }
  }
}
