import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// What a store keeps of a player that it has left.
@Suite struct FormerWalletTests {
  private static let home = ContainerID(high: 1, low: 1)

  /// A store that was at home: one operation that the bank knows, one that it doesn't; then it left.
  private func traveller(in folder: URL) throws -> Store {
    let store = try Store.open(at: folder)
    try WalletLab.change(store) { $0.state.bank = Self.home }
    try WalletLab.change(store) { $0.state.isBound = true }
    try WalletLab.perform([WalletLab.operation(1)], in: store)
    try WalletLab.acceptAll(in: store)
    try WalletLab.perform([WalletLab.operation(2, amount: 7)], in: store)
    try store.write { transaction in
      var facts = try transaction.facts()
      facts.container = Self.home
      try transaction.setFacts(facts)
      var random = SeededRandom(seed: 1)
      try DeviceCommit.leaveBank(in: &transaction, using: &random)
    }
    return store
  }

  @Test("a former wallet is kept whole across openings; its operations are in the ledger, and wait there")
  func kept() throws {
    let folder = try TemporaryFolder()
    var store = try traveller(in: folder.url)
    let former = try store.read { try $0.formerWallets() }
    #expect(former.map(\.bank) == [Self.home] && former.first?.pending("gems") == 107)
    #expect(try WalletLab.state(of: store).totals.isEmpty)
    try store.close()
    store = try Store.open(at: folder.url)
    #expect(try store.read { try $0.formerWallets() } == former)
    let ledger = try WalletLab.ledger(of: store)
    #expect(ledger.map(\.id) == [1, 2] && ledger.map(\.status) == [.settled, .waiting])
    // What the former bank decides is recorded in the ledger.
    let declined = WalletLab.operation(2, amount: 7)
    try store.write { transaction in
      try transaction.setFormerWallets([])
      try transaction.recordDecisions([Wallet.Decided(operation: declined, verdict: .declined)])
    }
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .declined])
    #expect(try store.read { try $0.walletNotices() }.map(\.operation) == [declined])
    try store.close()
  }

  @Test("an operation that was made for the former bank isn't performed again")
  func repeated() throws {
    let folder = try TemporaryFolder()
    let store = try traveller(in: folder.url)
    let repeats = try store.read { transaction in
      try [1, 2].map { try DeviceCommit.isRepeat(WalletLab.operation($0, amount: $0 == 1 ? 100 : 7), in: transaction) }
    }
    #expect(repeats == [true, true])
    try store.close()
  }

  @Test("a wallet that is rebuilt from its pages offers its bank nothing that was made for the former one")
  func rebuilt() throws {
    let folder = try TemporaryFolder()
    var store = try traveller(in: folder.url)
    try WalletLab.change(store) { wallet in
      (wallet.state.isBound, wallet.state.bank) = (true, ContainerID(high: 2, low: 2))
    }
    try WalletLab.perform([WalletLab.operation(3, amount: 9)], in: store)
    #expect(try store.read { try $0.walletBeginning() } == 2)
    try store.write { try $0.run("DELETE FROM fact WHERE name = ?", [WalletBook.name]) }
    try store.close()
    store = try Store.open(at: folder.url)
    let state = try WalletLab.state(of: store)
    #expect(state.undecided.flatMap { $0.map(\.id.low) } == [3])
    #expect(try store.read { try $0.formerWallets() }.first?.pending("gems") == 107)
    try store.close()
  }

  @Test("the claims of a voucher are kept beside the wallet, which each operation writes, until it is paid")
  func claims() throws {
    let folder = try TemporaryFolder()
    var store = try Store.open(at: folder.url)
    let claims = (0..<100).map { WalletVoucher.Claim(key: "quest \($0)", currency: "gems", amount: 3) }
    let vouchers = [claims, []].enumerated().map { number, claims in
      WalletVoucher(
        bank: Self.home, chain: ChainID(high: 0, low: UInt64(number)), receiver: ContainerID(high: 2, low: 2),
        amounts: ["gems": 50], claims: claims, code: Data([1, 2]))
    }
    func rows() throws -> Int {
      try store.read { try Int.fetchOne($0.statement("SELECT count(*) FROM fact WHERE name LIKE 'voucher claims %'")) }
        ?? 0
    }
    try WalletLab.change(store) { $0.state.vouchers = vouchers }
    try WalletLab.perform([WalletLab.operation(1)], in: store)
    let book = try store.read { transaction throws in
      try transaction.book(in: try #require(try transaction.walletBody()))
    }
    #expect(try book.state.vouchers.allSatisfy(\.claims.isEmpty) && rows() == 1)
    #expect(try WalletLab.state(of: store).vouchers == vouchers)
    try store.close()
    store = try Store.open(at: folder.url)
    #expect(try WalletLab.state(of: store).vouchers == vouchers)
    try WalletLab.change(store) { $0.state.vouchers.removeFirst() }
    #expect(try WalletLab.state(of: store).vouchers == [vouchers[1]] && rows() == 0)
    try store.close()
  }

  @Test("a former wallet that no store can have written is refused")
  func forged() throws {
    let folder = try TemporaryFolder()
    let store = try traveller(in: folder.url)
    try store.write { transaction in
      var former = try transaction.formerWallets()
      former[0].state.balances = ["gems": -1]
      try transaction.setFormerWallets(former)
    }
    let error = #expect(throws: StoreError.self) { try store.read { try $0.formerWallets() } }
    #expect(error?.code == .damaged)
    try store.close()
  }
}
