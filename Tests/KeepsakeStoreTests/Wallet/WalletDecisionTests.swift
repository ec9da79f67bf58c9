import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// What a bank decides is in the ledger, and in notices until the game takes them: no crash loses it.
@Suite struct WalletDecisionTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let sword = WalletLab.operation(1, .spend, amount: 50, goods: ["sword"])
  private static let gift = WalletLab.operation(2, .claim(key: "gift"))
  private static let hat = WalletLab.operation(3, .spend, amount: 5, goods: ["hat"])

  private func notices(_ store: Store) throws -> [WalletNotice] { try store.read { try $0.walletNotices() } }

  /// A store with an earning, a late purchase of a sword, a claim, and a late purchase of a hat.
  private func open(seal: SealRequest = .none) throws -> Store {
    let store = try Store.open(at: folder.store, seal: seal)
    try WalletLab.perform([WalletLab.operation(0)], in: store)
    try WalletLab.change(store) { $0.state.late = [Self.sword] }
    try WalletLab.perform([Self.gift], in: store)
    try WalletLab.change(store) { $0.state.late.append(Self.hat) }
    return store
  }

  @Test(
    """
    declined operations and paid claims are recorded in the ledger and as notices, in their order, also after a \
    restart; charged purchases only in the ledger
    """, arguments: [Seal.Kind.none, .signed, .sealed])
  func records(kind: Seal.Kind) throws {
    let seal = SealLab.request(kind)
    var store = try open(seal: seal)
    try WalletLab.acceptAll([(Self.sword, .declined), (Self.gift, .accepted), (Self.hat, .accepted)], in: store)
    try store.close()
    store = try Store.open(at: folder.store, seal: seal)
    defer { try? store.close() }
    #expect(store.incidents.isEmpty && SealLab.findings(of: store).isEmpty)
    #expect(try WalletLab.ledger(of: store).map(\.id) == [0, 1, 2, 3])
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .declined, .settled, .settled])
    let expected = [
      WalletNotice(number: 1, operation: Self.gift, verdict: .accepted),
      WalletNotice(number: 2, operation: Self.sword, verdict: .declined),
    ]
    #expect(try notices(store) == expected)
  }

  @Test("an operation whose id another one has counts as declined; one that waits at the bank has no notice")
  func otherVerdicts() throws {
    let store = try open()
    defer { try? store.close() }
    try WalletLab.acceptAll([(Self.sword, .idReused), (Self.gift, .declined), (Self.hat, .waiting)], in: store)
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .declined, .declined, .waiting])
    #expect(try notices(store).map(\.verdict) == [.declined, .idReused])
    try WalletLab.acceptAll([(Self.hat, .declined)], in: store)
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .declined, .declined, .declined])
    #expect(try notices(store).map(\.operation) == [Self.gift, Self.sword, Self.hat])
  }

  @Test("a page that gets further operations keeps what became of the earlier ones")
  func pageGoesOn() throws {
    let store = try open()
    defer { try? store.close() }
    try WalletLab.acceptAll([(Self.sword, .declined)], in: store)
    try WalletLab.perform([WalletLab.operation(4), WalletLab.operation(5)], in: store)
    #expect(
      try WalletLab.ledger(of: store).map(\.status) == [.settled, .declined, .settled, .waiting, .waiting, .waiting])
  }

  @Test("an operation gets one notice, however often a bank decides it, also after the game took it")
  func once() throws {
    var store = try open()
    let decisions: [Wallet.Decided] = [
      Wallet.Decided(operation: Self.sword, verdict: .declined),
      Wallet.Decided(operation: Self.gift, verdict: .accepted),
    ]
    try WalletLab.acceptAll(decisions.map { ($0.operation, $0.verdict) }, in: store)
    try store.write { try $0.recordDecisions(decisions + decisions) }
    #expect(try notices(store).map(\.number) == [1, 2])
    try store.write { try $0.removeWalletNotices(upTo: 2) }
    #expect(try notices(store).isEmpty)
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.write { try $0.recordDecisions(decisions) }
    #expect(try notices(store).isEmpty)
    // The ledger has the last word of the bank.
    try store.write { try $0.recordDecisions([Wallet.Decided(operation: Self.sword, verdict: .accepted)]) }
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .settled, .settled, .waiting])
  }

  @Test("an operation that the ledger doesn't have has one notice as long as the game doesn't take it")
  func unknown() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let decided = Wallet.Decided(operation: Self.sword, verdict: .declined)
    for _ in 0..<2 { try store.write { try $0.recordDecisions([decided, decided]) } }
    #expect(try notices(store) == [WalletNotice(number: 1, operation: Self.sword, verdict: .declined)])
  }

  @Test("a crash between the reply and its decisions leaves neither, so that the bank decides again")
  func together() throws {
    struct Crash: Error {}
    let store = try open()
    defer { try? store.close() }
    let before = try WalletLab.state(of: store)
    #expect(throws: Crash.self) {
      try store.write { transaction throws in
        try WalletLab.receive(
          WalletReply(
            chain: before.chain, state: .accepted(before.head), statement: 1, totals: before.totals,
            decisions: [WalletDecision(id: Self.sword.id, verdict: .declined)]), in: &transaction)
        #expect(try transaction.walletNotices().count == 1)
        throw Crash()
      }
    }
    #expect(try WalletLab.state(of: store) == before)
    #expect(try notices(store).isEmpty)
    #expect(try WalletLab.ledger(of: store).allSatisfy { $0.status == .waiting })
  }

  // MARK: Taking notices

  @Test("taking notices removes those up to a number; numbers go on after it, also if all were taken, and a restart")
  func takes() throws {
    var store = try open()
    try WalletLab.acceptAll([(Self.sword, .declined), (Self.gift, .accepted)], in: store)
    try store.write { try $0.removeWalletNotices(upTo: 0) }
    try store.write { try $0.removeWalletNotices(upTo: -1) }
    #expect(try notices(store).map(\.number) == [1, 2])
    try store.write { try $0.removeWalletNotices(upTo: 1) }
    #expect(try notices(store).map(\.number) == [2])
    // More than there are: those that come later aren't taken with them.
    try store.write { try $0.removeWalletNotices(upTo: .max) }
    #expect(try notices(store).isEmpty)
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.acceptAll([(Self.hat, .declined)], in: store)
    #expect(try notices(store) == [WalletNotice(number: 3, operation: Self.hat, verdict: .declined)])
  }

  @Test("of a game that takes no notices, the newest thousand are kept")
  func atMost() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    func decline(_ numbers: ClosedRange<Int>) throws {
      try store.write { transaction throws in
        try transaction.recordDecisions(
          numbers.map { Wallet.Decided(operation: WalletLab.operation($0, .spend), verdict: .declined) })
      }
    }
    try decline(1...999)
    try decline(1_000...1_002)
    #expect(try notices(store).map(\.number) == (3...1_002).map { Int64($0) })
    #expect(try notices(store).map { Int($0.operation.id.low) } == Array(3...1_002))
  }

  @Test("a recovery keeps the notices, and brings none back from a backup that the game has taken since")
  func recovers() throws {
    let files = StoreFiles(folder: folder.store)
    var store = try open()
    try store.write { try $0.setFacts(DeviceFacts(caughtUp: true)) }
    try WalletLab.acceptAll([(Self.sword, .declined), (Self.gift, .accepted)], in: store)
    try store.close()
    let copy = folder.url.appendingPathComponent("older")
    try FileManager.default.copyItem(at: files.database, to: copy)
    store = try Store.open(at: folder.store)
    try store.write { try $0.removeWalletNotices(upTo: 2) }
    try WalletLab.acceptAll([(Self.hat, .declined)], in: store)
    try store.close()
    try WalletLab.removeBackups(of: folder.store)
    try FileManager.default.copyItem(at: copy, to: files.backups[0])
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "UPDATE fact SET body = zeroblob(100) WHERE name = 'facts'")
    }
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    #expect(try notices(store) == [WalletNotice(number: 3, operation: Self.hat, verdict: .declined)])
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .declined, .settled, .declined])
  }

  @Test("a notice that was forged is `damaged`; forged numbers don't trap", arguments: [Int64.min, -1, .max])
  func forged(number: Int64) throws {
    let store = try open()
    defer { try? store.close() }
    try WalletLab.acceptAll([(Self.sword, .declined)], in: store)
    try store.write { transaction throws in
      try transaction.setFact(WalletNotice.Taken.name, WalletNotice.Taken(number: number))
      try transaction.recordDecisions([Wallet.Decided(operation: Self.gift, verdict: .accepted)])
      try transaction.removeWalletNotices(upTo: number)
      try transaction.setFact(
        WalletNotice.name(of: 1), WalletNotice(number: number, operation: Self.hat, verdict: .declined))
    }
    #expect(errorCode { _ = try notices(store) } == .damaged)
  }
}
