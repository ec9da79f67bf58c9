import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// A player without a cloud earns for years: an operation must not write all earlier ones again, and none may be lost.
@Suite struct WalletBookTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static func operation(_ number: Int, _ kind: WalletOperation.Kind = .earn, amount: Int64 = 3)
    -> WalletOperation
  {
    WalletOperation(
      id: OperationID(high: 9, low: UInt64(number)), kind: kind, currency: number % 5 == 0 ? "keys" : "gems",
      amount: amount,
      reason: "level \(number)", madeAtMilliseconds: Int64(number))
  }

  /// Performs operations `numbers`, one in each transaction, as a game makes them.
  private static func perform(_ numbers: Range<Int>, in store: Store, _ kind: WalletOperation.Kind = .earn) throws {
    for number in numbers {
      try store.write { transaction throws in
        var wallet = Wallet(try #require(try transaction.wallet()))
        try wallet.perform(operation(number, kind))
        try transaction.setWallet(wallet.state)
      }
    }
  }

  private static func names(_ database: Database) throws -> [String] {
    try String.fetchAll(database, sql: "SELECT name FROM fact WHERE name LIKE 'wallet%' ORDER BY name")
  }

  @Test("operations are stored in small pages, however many there are, and all of them are there after a restart")
  func grows() throws {
    var store = try Store.open(at: folder.store)
    try Self.perform(0..<100, in: store)
    let state = try #require(try store.read { try $0.wallet() })
    #expect(state.operations.map(\.id.low) == Array(0..<100 as Range<UInt64>))
    let sizes = try store.read { transaction in
      try Row.fetchAll(
        transaction.database, sql: "SELECT LENGTH(body) AS size FROM fact WHERE name LIKE 'wallet%'"
      )
      .map { row -> Int in row["size"] }
    }
    #expect(sizes.count == 5)
    #expect(sizes.allSatisfy { $0 < 8_000 }, "\(sizes)")
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(try store.read { try $0.wallet() } == state)
    let entries = try store.read { try $0.walletEntries(newest: 40) }
    #expect(entries.map(\.number) == Array(60..<100 as Range<Int64>).reversed())
    #expect(entries.allSatisfy { $0.isWaiting && $0.operation == Self.operation(Int($0.number)) })
  }

  @Test("the ledger keeps all operations in order, whichever the bank has settled, and also when the chain is replaced")
  func settles() throws {
    var store = try Store.open(at: folder.store)
    try Self.perform(0..<70, in: store)
    // The bank accepts fifty of them.
    try store.write { transaction throws in
      var state = try #require(try transaction.wallet())
      state.operations.removeFirst(50)
      try transaction.setWallet(state)
    }
    try Self.perform(70..<80, in: store)
    // Another copy of the store continued the chain: twenty of our operations are late, and one more is made.
    try store.write { transaction throws in
      let state = try #require(try transaction.wallet())
      var next = WalletState(chain: ChainID(high: 5, low: 5), follows: state.chain)
      next.late = OperationList(state.operations.dropFirst(10))
      next.operations = [Self.operation(80)]
      try transaction.setWallet(next)
    }
    let state = try #require(try store.read { try $0.wallet() })
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let again = try #require(try store.read { try $0.wallet() })
    #expect(again == state)
    #expect(again.late.map(\.id.low) == Array(60..<80 as Range<UInt64>))
    #expect(again.operations.map(\.id.low) == [80])
    let entries = try store.read { try $0.walletEntries(newest: .max) }
    #expect(entries.map { Int($0.operation.id.low) } == (0...80).reversed())
    let isWaiting = (0...80).reversed().map { (number: Int) -> Bool in number >= 60 }
    #expect(entries.map(\.isWaiting) == isWaiting)
  }

  @Test("the ledger keeps about ten thousand settled operations, and all unreported ones, however old they are")
  func letsGo() async throws {
    let url = folder.store
    try await onThread {
      let store = try Store.open(at: url)
      defer { try? store.close() }
      func add(_ numbers: Range<Int>, settled: Bool) throws {
        try store.write { transaction throws in
          var state = try #require(try transaction.wallet())
          state.operations += numbers.map { Self.operation($0) }
          try transaction.setWallet(state)
          if settled { state.operations.removeFirst(numbers.count) }
          try transaction.setWallet(state)
        }
      }
      try add(0..<12_000, settled: false)
      #expect(try store.read { try $0.walletEntries(newest: .max) }.count == 12_000)
      try store.write { transaction throws in
        var state = try #require(try transaction.wallet())
        state.operations.removeFirst(320)
        try transaction.setWallet(state)
      }
      // Waiting operations are kept, also those that are old enough to be removed.
      let waiting = try store.read { try $0.walletEntries(newest: .max) }
      #expect(waiting.count == 11_680 && waiting.allSatisfy(\.isWaiting))
      try store.write { transaction throws in
        var state = try #require(try transaction.wallet())
        state.operations = []
        try transaction.setWallet(state)
      }
      let kept = try store.read { try $0.walletEntries(newest: .max) }
      #expect(kept.count >= 10_000 && kept.count < 10_000 + 64 && kept.first?.operation.id.low == 11_999)
    }
  }

  @Test(
    "operations that are lost to damage cost no money: others make up for their amounts, and the new chain has no gaps")
  func mends() throws {
    var store = try Store.open(at: folder.store)
    try Self.perform(0..<90, in: store)
    try Self.perform(90..<100, in: store, .spend)
    let before = try #require(try store.read { try $0.wallet() })
    try store.close()
    let files = StoreFiles(folder: folder.store)
    for backup in files.presentBackups { try FileManager.default.removeItem(at: backup) }
    let queue = try DatabaseQueue(path: files.database.path)
    let lost = WalletPage.name(of: 40)
    try queue.write { try $0.execute(sql: "UPDATE fact SET body = zeroblob(100) WHERE name = ?", arguments: [lost]) }
    try queue.close()

    store = try Store.open(at: folder.store)
    #expect(store.incidents.map(\.kind) == [.recovered])
    let after = try #require(try store.read { try $0.wallet() })
    #expect(after.chain != before.chain && after.totals == before.totals)
    for currency in ["gems", "keys"] {
      #expect(Wallet(after).total(currency) == Wallet(before).total(currency), "\(currency)")
    }
    let madeUp = after.operations.filter { $0.reason == "recovered" }
    // Numbers 32 to 63, three each: six in keys, the others in gems.
    let amounts: [Int64] = madeUp.map(\.amount).sorted()
    #expect(amounts == [18, 78])
    // 32 fewer, and two more.
    #expect(after.operations.count == 70)
    // A chain that a bank can verify.
    var head = ChainHead(emptyChain: after.chain)
    for operation in after.operations { head = head.appending(operation) }
    #expect(head == after.head)
    try Self.perform(100..<110, in: store)
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.isEmpty)
    #expect(try store.read { try $0.wallet() }?.operations.count == 80)
  }

  @Test("a damaged book is taken from an older backup and updated from the pages, and no operation replaces another")
  func olderBook() throws {
    let files = StoreFiles(folder: folder.store)
    var store = try Store.open(at: folder.store)
    try store.write { try $0.setFacts(DeviceFacts(caughtUp: true)) }
    try Self.perform(0..<40, in: store)
    try store.close()
    let copy = folder.url.appendingPathComponent("older")
    try FileManager.default.copyItem(at: files.database, to: copy)
    store = try Store.open(at: folder.store)
    try Self.perform(40..<55, in: store)
    try Self.perform(55..<60, in: store, .spend)
    let before = try #require(try store.read { try $0.wallet() })
    try store.close()
    for backup in files.presentBackups { try FileManager.default.removeItem(at: backup) }
    try FileManager.default.copyItem(at: copy, to: files.backups[0])
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "UPDATE fact SET body = zeroblob(100) WHERE name = ?", arguments: [WalletBook.name])
    }
    store = try Store.open(at: folder.store)
    #expect(store.incidents.map(\.kind) == [.recovered])
    let after = try #require(try store.read { try $0.wallet() })
    #expect(after.totals == before.totals && after.head == before.head && after.operations == before.operations)
    // One more run and one more loss: the pages contain the latest operations.
    try Self.perform(60..<63, in: store)
    let last = try #require(try store.read { try $0.wallet() })
    try store.close()
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "UPDATE fact SET body = zeroblob(100) WHERE name = 'facts'")
    }
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    #expect(try store.read { try $0.wallet() } == last)
    #expect(
      try store.read { try $0.walletEntries(newest: .max) }.map(\.operation.id.low)
        == (0..<63).reversed().map { UInt64($0) })
  }

  @Test(
    "an operation with an impossible amount is dropped without a trap, and the balances are unchanged",
    arguments: [Int64.min, -5, 0])
  func forgedAmount(amount: Int64) throws {
    var store = try Store.open(at: folder.store)
    try Self.perform(0..<3, in: store)
    let before = try #require(try store.read { try $0.wallet() })
    try store.write { transaction throws in
      let page = WalletPage(
        first: 0, operations: [Self.operation(0), Self.operation(1, .spend, amount: amount), Self.operation(2)])
      try transaction.setFact(WalletPage.name(of: 0), page)
    }
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.rebuilt])
    let after = try #require(try store.read { try $0.wallet() })
    #expect(after.totals == before.totals && Wallet(after).total("gems") == Wallet(before).total("gems"))
    #expect(after.operations.allSatisfy { $0.reason == "recovered" })
  }

  @Test(
    "a page of operations that was forged in a signed store, or removed from it, costs no money",
    arguments: [true, false])
  func tampered(isTakenOut: Bool) throws {
    let seal = SealLab.request(.signed)
    var store = try Store.open(at: folder.store, seal: seal)
    try Self.perform(0..<50, in: store)
    let before = try #require(try store.read { try $0.wallet() })
    try store.close()
    let name = WalletPage.name(of: 3)
    try SealLab.edit(folder.store) { database in
      if isTakenOut {
        try database.execute(sql: "DELETE FROM fact WHERE name = ?", arguments: [name])
      } else {
        let page = WalletPage(first: 0, operations: (0..<32).map { Self.operation($0, amount: 1_000) })
        let json = String(decoding: try JSONEncoder().encode(page), as: UTF8.self)
        try database.execute(
          sql: "UPDATE fact SET body = ? WHERE name = ?",
          arguments: [SealLab.forged(json, place: RowIdentity.fact(name)), name])
      }
    }
    store = try Store.open(at: folder.store, seal: seal)
    defer { try? store.close() }
    #expect(!SealLab.findings(of: store).isEmpty)
    let after = try #require(try store.read { try $0.wallet() })
    #expect(after.totals == before.totals && Wallet(after).total("gems") == Wallet(before).total("gems"))
    try Self.perform(50..<52, in: store)
  }

  @Test(
    "a wallet that names impossible ranges of operations throws `damaged`, and doesn't trap",
    arguments: [
      #"[{"first":0,"count":-1}]"#, #"[{"first":9223372036854775807,"count":9}]"#, #"[{"first":0,"count":4194305}]"#,
      #"[{"first":-5,"count":2}]"#, #"[{"first":0,"count":9223372036854775807}]"#, #"[{"first":5,"count":200}]"#,
    ])
  func impossible(runs: String) throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try Self.perform(0..<5, in: store)
    try store.write { transaction throws in
      let place = RowIdentity.fact(WalletBook.name)
      let body = try #require(
        try Data.fetchOne(
          transaction.database, sql: "SELECT body FROM fact WHERE name = ?", arguments: [WalletBook.name]))
      let json = String(decoding: try transaction.codec.json(in: body, place: place), as: UTF8.self)
      let forged = json.replacingOccurrences(of: #"[{"count":5,"first":0}]"#, with: runs)
      #expect(forged != json)
      try transaction.run(
        "UPDATE fact SET body = ? WHERE name = ?",
        [transaction.codec.body(of: Data(forged.utf8), place: place), WalletBook.name])
    }
    #expect(errorCode { _ = try store.read { try $0.wallet() } } == .damaged)
    #expect(errorCode { _ = try store.read { try $0.walletEntries(newest: 5) } } == .damaged)
  }
}

/// Unreported operations are held in memory once, and hardly any of them are inspected by an operation.
@Suite struct WalletMemoryTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private struct Refused: Error {}

  private static func earn(_ number: Int, in transaction: inout StoreTransaction) throws {
    var random = SystemRandomNumberGenerator()
    let operation = WalletOperation(
      id: OperationID(high: 8, low: UInt64(number)), kind: .earn, currency: "gems", amount: 1, reason: "level \(number)"
    )
    try DeviceCommit.apply(
      CommitDraft(wallet: [operation]), now: 0, writer: WriterID(1), in: &transaction, using: &random)
  }

  private static func visits(_ store: Store) throws -> Int {
    try store.read { try #require(try $0.wallet()).operations.visits }
  }

  @Test(
    """
    in a store, too, an operation and a balance inspect hardly any others, however many there are, also after a restart
    """)
  func costsTheSame() async throws {
    let url = folder.store
    let found = try await onThread {
      var found: [(cost: Int, atRest: Int, total: Int64)] = []
      var store = try Store.open(at: url)
      for count in [100, 4_000] {
        let known = try store.read { try #require(try $0.wallet()).operations.count }
        try store.write { transaction throws in
          for number in known..<count { try Self.earn(number, in: &transaction) }
        }
        try store.close()
        store = try Store.open(at: url)
        let before = try Self.visits(store)
        try store.write { try Self.earn(count, in: &$0) }
        let after = try Self.visits(store)
        let total = try store.read { Wallet(try #require(try $0.wallet())).total("gems") }
        found.append((after - before, try Self.visits(store) - after, total))
      }
      try store.close()
      return found
    }
    #expect(found[0].cost == found[1].cost && found[1].cost < 10, "\(found)")
    #expect(found.map(\.atRest) == [0, 0] && found.map(\.total) == [101, 4_001])
  }

  @Test("a failed commit, and a read during a commit, don't cause all operations to be decoded again")
  func failedCommit() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.write { transaction throws in
      for number in 0..<500 { try Self.earn(number, in: &transaction) }
    }
    let before = try Self.visits(store)
    #expect(throws: Refused.self) {
      try store.write { transaction throws in
        try Self.earn(500, in: &transaction)
        // As when a frame of the game reads the balance meanwhile.
        let state = try store.read { try #require(try $0.wallet()) }
        #expect(state.operations.count == 500 && state.operations.visits - before < 10)
        throw Refused()
      }
    }
    // If it were decoded again, it would be a new list, which counts from the beginning.
    #expect(try Self.visits(store) - before < 10 && Self.visits(store) >= before)
    // The first operation after it makes a copy, the next ones don't.
    try store.write { try Self.earn(501, in: &$0) }
    let after = try Self.visits(store)
    #expect(after > before)
    try store.write { try Self.earn(502, in: &$0) }
    #expect(try Self.visits(store) - after < 10)
    #expect(try store.read { try #require(try $0.wallet()).operations.map(\.id.low) } == Array(0..<500) + [501, 502])
  }
}
