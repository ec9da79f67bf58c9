import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// What a bank has, but can't charge yet, and what it acknowledged, but may lose.
@Suite struct WaitingTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let spends = (1...3).map { WalletLab.operation($0, .spend, amount: 10, goods: ["hat \($0)"]) }

  /// A store with an earning, three late spends, and another earning.
  private func open() throws -> Store {
    let store = try Store.open(at: folder.store)
    try WalletLab.perform([WalletLab.operation(0)], in: store)
    try WalletLab.change(store) { $0.state.late = OperationList(Self.spends) }
    try WalletLab.perform([WalletLab.operation(4)], in: store)
    return store
  }

  // MARK: Waiting at the bank

  @Test("operations that wait at the bank keep their place in the ledger until it decides them, also after a restart")
  func waits() throws {
    var store = try open()
    try WalletLab.acceptAll(Self.spends.map { ($0, .waiting) }, in: store)
    let state = try WalletLab.state(of: store)
    #expect(state.waiting.elementsEqual(Self.spends) && state.late.isEmpty && state.operations.isEmpty)
    try store.close()
    store = try Store.open(at: folder.store)
    #expect(try WalletLab.state(of: store) == state)
    let statuses: [WalletEntry.Status] = [.settled, .waiting, .waiting, .waiting, .settled]
    #expect(try WalletLab.ledger(of: store).map(\.id) == [0, 1, 2, 3, 4])
    #expect(try WalletLab.ledger(of: store).map(\.status) == statuses)
    // One in the middle is decided first.
    try WalletLab.acceptAll([(Self.spends[1], .accepted)], in: store)
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(try WalletLab.state(of: store).waiting.map(\.id.low) == [1, 3])
    #expect(try WalletLab.ledger(of: store).map(\.id) == [0, 1, 2, 3, 4])
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .waiting, .settled, .waiting, .settled])
  }

  @Test("an operation that begins to wait while later ones are unreported keeps its place in the ledger")
  func waitsBeforeOthers() throws {
    let store = try open()
    defer { try? store.close() }
    try WalletLab.perform((10..<30).map { WalletLab.operation($0) }, in: store)
    let state = try WalletLab.state(of: store)
    let ids = try WalletLab.ledger(of: store).map(\.id)
    try WalletLab.receive(
      WalletReply(
        chain: state.chain, state: .accepted(WalletLab.head(state.chain, after: state.operations.prefix(3))),
        statement: state.statement + 1, decisions: [WalletDecision(id: Self.spends[0].id, verdict: .waiting)]),
      in: store)
    #expect(try WalletLab.state(of: store).waiting.elementsEqual([Self.spends[0]]))
    #expect(try WalletLab.ledger(of: store).map(\.id) == ids && Set(ids).count == ids.count)
  }

  @Test("the page of an operation that waits at the bank is kept, however old it is")
  func isKept() async throws {
    let url = folder.store
    let store = try open()
    try await onThread {
      try WalletLab.acceptAll(Self.spends.map { ($0, .waiting) }, in: store)
      try WalletLab.perform((100..<10_200).map { WalletLab.operation($0, amount: 1) }, in: store)
      try WalletLab.acceptAll(in: store)
      try store.close()
      let again = try Store.open(at: url)
      defer { try? again.close() }
      #expect(again.incidents.isEmpty)
      #expect(try WalletLab.state(of: again).waiting.elementsEqual(Self.spends))
    }
  }

  @Test("operations that wait at the bank survive damage to another page of the wallet")
  func survives() throws {
    var store = try open()
    try WalletLab.acceptAll(Self.spends.map { ($0, .waiting) }, in: store)
    try WalletLab.change(store) { $0.state.isBound = true }
    // Begins another page.
    try WalletLab.perform((100..<140).map { WalletLab.operation($0) }, in: store)
    let before = try WalletLab.state(of: store)
    try store.close()
    try SealLab.edit(folder.store) { database in
      try database.execute(
        sql: "DELETE FROM fact WHERE name = ?", arguments: [WalletPage.name(of: WalletPage.capacity)])
    }
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.rebuilt])
    let after = try WalletLab.state(of: store)
    #expect(after.waiting == before.waiting && after.balances == before.balances)
    #expect(after.follows == before.chain && after.late.map(\.id.low) == (100..<127).map { UInt64($0) })
  }

  @Test(
    """
    a wallet that was offered makes nothing up for operations that are lost, even if no reply ever arrived; one that \
    was never offered does
    """, arguments: [true, false])
  func mends(isBound: Bool) throws {
    var store = try Store.open(at: folder.store)
    try WalletLab.perform((0..<3).map { WalletLab.operation($0) }, in: store)
    try WalletLab.change(store) { $0.state.isBound = isBound }
    let before = try WalletLab.state(of: store)
    #expect(before.acknowledged.count == 0 && Wallet(before).total("gems") == 300)
    try store.close()
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "DELETE FROM fact WHERE name = ?", arguments: [WalletPage.name(of: 0)])
    }
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.rebuilt])
    let after = try WalletLab.state(of: store)
    #expect(after.chain != before.chain && after.isBound == isBound)
    // The bank has the three already: what is offered besides them counts again.
    var offered: Int64 = 0
    for operation in after.undecided.joined() { offered += operation.amount }
    #expect(offered == (isBound ? 0 : 300))
    #expect(after.follows == (isBound ? before.chain : nil))
  }

  // MARK: Lost by the bank

  /// Performs operations, of which the bank acknowledges the first sixty, with others that came late between them.
  private func acknowledge() throws -> (Store, [WalletOperation]) {
    let operations = (0..<100).map { WalletLab.operation($0) }
    let store = try Store.open(at: folder.store)
    try WalletLab.perform(Array(operations[..<40]), in: store)
    try WalletLab.change(store) { $0.state.late.append(WalletLab.operation(1_000, .spend)) }
    try WalletLab.perform(Array(operations[40..<60]), in: store)
    try WalletLab.acceptAll(in: store)
    try WalletLab.perform(Array(operations[60...]), in: store)
    return (store, operations)
  }

  @Test("a store returns what the bank acknowledged after a head of its chain, also after a restart, and nothing else")
  func acknowledged() throws {
    var (store, operations) = try acknowledge()
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let chain = try WalletLab.state(of: store).chain
    func found(_ head: ChainHead) throws -> AcknowledgedOperations {
      try store.read { try $0.acknowledgedOperations(after: head) }
    }
    for count in [0, 1, 20, 39, 40, 59, 60] {
      let head = WalletLab.head(chain, after: operations[..<count])
      #expect(try found(head) == .kept(Array(operations[count..<60])), "\(count)")
    }
    // Beyond what is acknowledged, another chain, and a head with another hash.
    #expect(try found(WalletLab.head(chain, after: operations[..<61])) == .branched)
    #expect(try found(WalletLab.head(ChainID(high: 1, low: 1), after: operations[..<20])) == .branched)
    #expect(try found(ChainHead(count: 20, hash: WalletLab.head(chain, after: operations[..<21]).hash)) == .branched)
    #expect(try found(ChainHead(count: .max, hash: ContentHash(of: Data()))) == .branched)
    // A page that is gone.
    try store.write { try $0.run("DELETE FROM fact WHERE name = ?", [WalletPage.name(of: 40)]) }
    #expect(try found(WalletLab.head(chain, after: operations[..<20])) == .notKept)
  }

  @Test("what a bank has lost is offered again from its place in the ledger, and settles there once more")
  func setBack() throws {
    var (store, operations) = try acknowledge()
    let before = try WalletLab.state(of: store)
    let head = WalletLab.head(before.chain, after: operations[..<20])
    try WalletLab.receive(
      WalletReply(chain: before.chain, state: .from(head: head, common: nil), statement: 1), in: store)
    var state = try WalletLab.state(of: store)
    #expect(state.chain == before.chain && state.acknowledged == head && state.head == before.head)
    #expect(Array(state.operations) == Array(operations[20...]))
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(try WalletLab.state(of: store) == state)
    #expect(try WalletLab.ledger(of: store).map(\.id) == Array(0..<40) + [1_000] + Array(40..<100))
    // What had settled stays so for the game.
    #expect(try WalletLab.ledger(of: store).count { $0.status == .waiting } == 41)
    try WalletLab.acceptAll(in: store)
    try WalletLab.perform([WalletLab.operation(100)], in: store)
    state = try WalletLab.state(of: store)
    #expect(state.operations.map(\.id.low) == [100])
    #expect(try WalletLab.ledger(of: store).map(\.id) == Array(0..<40) + [1_000] + Array(40...100))
    // Everything since the bank began can be offered once more.
    let again = try store.read { try $0.acknowledgedOperations(after: ChainHead(emptyChain: before.chain)) }
    #expect(again == .kept(operations))
  }

  @Test("nothing of an earlier chain is returned, and no more than the ledger keeps")
  func bounds() async throws {
    let url = folder.store
    try await onThread {
      let store = try Store.open(at: url)
      defer { try? store.close() }
      let chain = try WalletLab.state(of: store).chain
      let operations = (0..<10_100).map { WalletLab.operation($0, amount: 1) }
      try WalletLab.perform(operations, in: store)
      try WalletLab.acceptAll(in: store)
      func found(_ chain: ChainID, _ count: Int) throws -> Int? {
        let head = WalletLab.head(chain, after: operations[..<count])
        return try store.read { try $0.acknowledgedOperations(after: head) }.operations?.count
      }
      #expect(try found(chain, 100) == 10_000)
      #expect(try found(chain, 99) == nil)
      try WalletLab.receive(
        WalletReply(chain: chain, state: .closed(common: WalletLab.head(chain, after: operations))), in: store)
      #expect(try WalletLab.state(of: store).follows == chain)
      #expect(try found(chain, 10_100) == nil)
    }
  }
}
