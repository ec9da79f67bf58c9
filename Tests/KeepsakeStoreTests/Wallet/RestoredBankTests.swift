import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// What a store offers again to a bank that was set back, and what its ledger says meanwhile.
@Suite struct RestoredBankTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let gift = WalletLab.operation(2, .claim(key: "gift"))

  private func settled(_ store: Store, includingChain: Bool) throws -> [Int] {
    try store.read { try $0.settledOperations(includingChain: includingChain) }.map { Int($0.id.low) }
  }

  /// The bank closes the wallet's chain after what it has acknowledged.
  private func closeChain(in store: Store) throws {
    let state = try WalletLab.state(of: store)
    try WalletLab.receive(
      WalletReply(chain: state.chain, state: .closed(common: state.acknowledged)), seed: state.chain.low, in: store)
  }

  /// The bank was set back, and asks.
  private func ask(_ epoch: UInt64 = 1, in store: Store) throws {
    let chain = try WalletLab.state(of: store).chain
    try WalletLab.receive(WalletReply(chain: chain, state: .restored, epoch: epoch), in: store)
  }

  /// The bank settles the first late operations.
  private func settleLate(_ count: Int, _ verdict: WalletDecision.Verdict = .accepted, in store: Store) throws {
    let state = try WalletLab.state(of: store)
    try WalletLab.receive(
      WalletReply(
        chain: state.chain, state: .accepted(state.acknowledged), statement: state.statement + 1,
        epoch: state.proving ?? state.epoch,
        decisions: state.late.prefix(count).map { WalletDecision(id: $0.id, verdict: verdict) }), in: store)
  }

  private func performedRows(_ store: Store) throws -> Int? {
    try store.read { try Int.fetchOne($0.database, sql: "SELECT COUNT(*) FROM performed") }
  }

  /// A store with three operations that a bank settled on a chain that was closed since, and one on the next chain.
  private func open() throws -> Store {
    let store = try Store.open(at: folder.store)
    try WalletLab.perform([WalletLab.operation(0), WalletLab.operation(1, .spend, amount: 50), Self.gift], in: store)
    try WalletLab.acceptAll([(Self.gift, .accepted)], in: store)
    try closeChain(in: store)
    try WalletLab.perform([WalletLab.operation(3)], in: store)
    try WalletLab.acceptAll(in: store)
    return store
  }

  @Test("what counts is offered again: on which chain it was decides how; nothing that waits, or was declined")
  func settledOnes() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(try settled(store, includingChain: true).isEmpty)
    try WalletLab.perform([WalletLab.operation(0), WalletLab.operation(1, .spend, amount: 50), Self.gift], in: store)
    #expect(try settled(store, includingChain: true).isEmpty, "no bank has decided them")
    try WalletLab.acceptAll([(Self.gift, .declined)], in: store)
    try WalletLab.perform([WalletLab.operation(3)], in: store)
    #expect(try settled(store, includingChain: true) == [0, 1] && settled(store, includingChain: false).isEmpty)
    try closeChain(in: store)
    for includingChain in [true, false] { #expect(try settled(store, includingChain: includingChain) == [0, 1]) }
    try settleLate(1, in: store)
    #expect(try settled(store, includingChain: false) == [0, 1, 3])
    try WalletLab.perform([WalletLab.operation(4)], in: store)
    try WalletLab.acceptAll(in: store)
    #expect(try settled(store, includingChain: false) == [0, 1, 3])
    #expect(try settled(store, includingChain: true) == [0, 1, 3, 4])
    // A purchase that waits, one that was declined, and one whose id another one has.
    let late = [5, 6, 7].map { WalletLab.operation($0, .spend, amount: 1) }
    try WalletLab.change(store) { $0.state.late = OperationList(late) }
    try WalletLab.acceptAll([(late[0], .waiting), (late[1], .declined), (late[2], .idReused)], in: store)
    #expect(try settled(store, includingChain: true) == [0, 1, 3, 4])
    try WalletLab.acceptAll([(late[0], .accepted)], in: store)
    #expect(try settled(store, includingChain: true) == [0, 1, 3, 4, 5])
  }

  @Test("what a restored bank declines of what was settled before is in the ledger and a notice, with goods and amount")
  func declinedAfterRestore() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let sword = WalletLab.operation(1, .spend, amount: 50, goods: ["sword"])
    try WalletLab.perform([WalletLab.operation(0), sword], in: store)
    try WalletLab.acceptAll(in: store)
    try closeChain(in: store)
    try ask(in: store)
    #expect(try WalletLab.state(of: store).again == 2 && store.read { try $0.walletNotices() }.isEmpty)
    try settleLate(2, .declined, in: store)
    let notices = try store.read { try $0.walletNotices() }
    #expect(notices.map(\.verdict) == [.declined, .declined] && notices.last?.operation == sword)
    #expect(try store.read { try $0.walletEntries(newest: .max) }.map(\.status) == [.declined, .declined])
    #expect(try settled(store, includingChain: true).isEmpty)
  }

  @Test("operations on a damaged page are left out, and the others are offered again")
  func damagedPage() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.perform((0..<70).map { WalletLab.operation($0) }, in: store)
    try WalletLab.acceptAll(in: store)
    let lost = WalletPage.name(of: 32)
    try store.write { transaction throws in
      try transaction.database.execute(
        sql: "UPDATE fact SET body = zeroblob(100) WHERE name = ?", arguments: [lost])
    }
    #expect(try settled(store, includingChain: true) == Array(0..<32) + Array(64..<70))
  }

  @Test("what is offered again keeps its place in the ledger, stays settled there, and is performed once")
  func keepsNumbers() throws {
    var store = try open()
    let (before, rows) = (try store.read { try $0.walletEntries(newest: .max) }, try performedRows(store))
    #expect(before.count == 4 && before.allSatisfy { $0.status == .settled })
    let notices = try store.read { try $0.walletNotices() }
    try ask(in: store)
    func check() throws {
      #expect(try store.read { try $0.walletEntries(newest: .max) } == before)
      #expect(try performedRows(store) == rows && store.read { try $0.walletNotices() } == notices)
    }
    try check()
    #expect(try WalletLab.state(of: store).late.map(\.id.low) == [0, 1, 2] && WalletLab.state(of: store).again == 3)
    #expect(try settled(store, includingChain: true) == [3], "the others are undecided now")
    // In the middle of it, the game is started anew.
    try settleLate(1, in: store)
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.isEmpty)
    try check()
    #expect(try WalletLab.state(of: store).late.map(\.id.low) == [1, 2] && WalletLab.state(of: store).again == 2)
    try settleLate(2, in: store)
    try check()
    #expect(try WalletLab.state(of: store).late.isEmpty && WalletLab.state(of: store).again == 0)
    #expect(try settled(store, includingChain: true) == [0, 1, 2, 3])
  }

  @Test("a store that is asked again while it offers, offers nothing twice")
  func askedAgain() throws {
    let store = try open()
    defer { try? store.close() }
    try ask(in: store)
    try settleLate(1, in: store)
    for epoch in [2, 3] as [UInt64] {
      try ask(epoch, in: store)
      let state = try WalletLab.state(of: store)
      #expect(state.late.map(\.id.low) == [0, 1, 2] && state.again == 3 && state.proving == epoch)
    }
    #expect(try WalletLab.ledger(of: store).map(\.id) == [0, 1, 2, 3])
  }

  @Test("operations of the chain that the bank lost are offered from where it is, and stay settled in the ledger")
  func replayed() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.perform((0..<5).map { WalletLab.operation($0) }, in: store)
    try WalletLab.acceptAll(in: store)
    try WalletLab.perform([WalletLab.operation(5)], in: store)
    let state = try WalletLab.state(of: store)
    let head = WalletLab.head(state.chain, after: (0..<2).map { WalletLab.operation($0) })
    let before = try store.read { try $0.walletEntries(newest: .max) }
    let rows = try performedRows(store)
    try ask(in: store)
    try WalletLab.receive(
      WalletReply(chain: state.chain, state: .from(head: head, common: nil), epoch: 1), in: store)
    let replaying = try WalletLab.state(of: store)
    #expect(replaying.operations.map(\.id.low) == [2, 3, 4, 5] && replaying.replayed == 3)
    #expect(replaying.acknowledged == head && replaying.head == state.head)
    #expect(try store.read { try $0.walletEntries(newest: .max) } == before)
    #expect(before.map(\.status) == [.waiting, .settled, .settled, .settled, .settled, .settled])
    #expect(try settled(store, includingChain: true) == [0, 1])
    try WalletLab.acceptAll(in: store)
    #expect(try WalletLab.ledger(of: store).map(\.id) == Array(0..<6) && performedRows(store) == rows)
    #expect(try WalletLab.ledger(of: store).allSatisfy { $0.status == .settled })
    #expect(try settled(store, includingChain: true) == Array(0..<6))
  }

  @Test("what comes again after the chain was closed, too, has one entry")
  func closedWhileReplaying() throws {
    let store = try open()
    defer { try? store.close() }
    try ask(in: store)
    try closeChain(in: store)
    let state = try WalletLab.state(of: store)
    #expect(state.late.map(\.id.low) == [0, 1, 2, 3] && state.again == 4 && state.proving == 1)
    #expect(try WalletLab.ledger(of: store).map(\.id) == [0, 1, 2, 3])
    #expect(try WalletLab.ledger(of: store).allSatisfy { $0.status == .settled })
    try settleLate(4, in: store)
    #expect(try settled(store, includingChain: false) == [0, 1, 2, 3])
  }

  @Test("a crash before the answer of a restored bank is stored leaves the store as it was")
  func crash() throws {
    struct Crash: Error {}
    let store = try open()
    defer { try? store.close() }
    let before = try WalletLab.state(of: store)
    let chain = before.chain
    #expect(throws: Crash.self) {
      try store.write { transaction throws in
        try WalletLab.receive(WalletReply(chain: chain, state: .restored, epoch: 1), in: &transaction)
        #expect(try transaction.wallet()?.again == 3)
        throw Crash()
      }
    }
    #expect(try WalletLab.state(of: store) == before && settled(store, includingChain: true) == [0, 1, 2, 3])
    try ask(in: store)
    #expect(try WalletLab.state(of: store).late.map(\.id.low) == [0, 1, 2])
    #expect(try WalletLab.ledger(of: store).map(\.id) == [0, 1, 2, 3])
  }

  @Test("of a long ledger the newest ten thousand operations are offered again, none of them under a new number")
  func longLedger() async throws {
    let url = folder.store
    try await onThread {
      let store = try Store.open(at: url)
      defer { try? store.close() }
      // Nobody decides this one, so that the ledger keeps all that come after it.
      let early = WalletLab.operation(0, .spend, amount: 1)
      try WalletLab.change(store) { $0.state.late = [early] }
      try WalletLab.perform((1..<10_100).map { WalletLab.operation($0, amount: 1) }, in: store)
      try WalletLab.acceptAll(in: store)
      try closeChain(in: store)
      let count = try WalletLab.ledger(of: store).count
      #expect(count == 10_100)
      try ask(in: store)
      let state = try WalletLab.state(of: store)
      #expect(state.again == 10_000 && state.late.count == 10_001 && state.late.last == early)
      #expect(state.late.first?.id.low == 100)
      #expect(try WalletLab.ledger(of: store).map(\.id) == Array(0..<10_100))
    }
  }
}
