import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// No operation counts twice and no payment is claimed twice, however long ago the first time was.
@Suite struct PerformedTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let claim = WalletLab.operation(0, .claim(key: "starter gift"))
  private static let earning = WalletLab.operation(1)

  private func knowsBoth(_ store: Store) throws -> Bool {
    try store.read { transaction in
      try transaction.performedOperation(Self.claim.id) == Self.claim.fingerprint
        && transaction.performedOperation(Self.earning.id) == Self.earning.fingerprint
        && transaction.hasClaimed("starter gift")
    }
  }

  @Test("a store knows what was performed and claimed in it after the ledger has let it go, and nothing else")
  func forEver() async throws {
    let url = folder.store
    try await onThread {
      var store = try Store.open(at: url)
      try WalletLab.perform([Self.claim, Self.earning], in: store)
      #expect(try knowsBoth(store))
      try WalletLab.acceptAll([(Self.claim, .accepted)], in: store)
      try WalletLab.perform((2..<10_200).map { WalletLab.operation($0, amount: 1) }, in: store)
      try WalletLab.acceptAll(in: store)
      #expect(try WalletLab.ledger(of: store).first?.id ?? 0 > 1)
      try store.close()
      store = try Store.open(at: url)
      defer { try? store.close() }
      #expect(try knowsBoth(store))
      try store.read { transaction throws in
        #expect(try transaction.performedOperation(OperationID(high: 7, low: 20_000)) == nil)
        #expect(try !transaction.hasClaimed("another gift"))
        // The key's bytes are no operation's id, and an operation's bytes are no key.
        #expect(try !transaction.hasClaimed(String(decoding: Self.earning.id.bytes, as: UTF8.self)))
      }
    }
  }

  @Test("of two operations with one id, the first stays the one that was performed")
  func first() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.perform([Self.earning], in: store)
    try WalletLab.acceptAll(in: store)
    try WalletLab.perform([WalletLab.operation(1, amount: 400)], in: store)
    #expect(try store.read { try $0.performedOperation(Self.earning.id) } == Self.earning.fingerprint)
  }

  @Test("a commit that fails leaves nothing performed")
  func failed() throws {
    struct Refused: Error {}
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(throws: Refused.self) {
      try store.write { transaction throws in
        var wallet = Wallet(try #require(try transaction.wallet()))
        try wallet.perform(Self.claim)
        try transaction.setWallet(wallet.state)
        #expect(try transaction.hasClaimed("starter gift"))
        throw Refused()
      }
    }
    try store.read { transaction throws in
      #expect(try transaction.performedOperation(Self.claim.id) == nil)
      #expect(try !transaction.hasClaimed("starter gift"))
    }
  }

  @Test("what a parcel brings is performed, also the part that comes late")
  func adopted() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let spend = WalletLab.operation(2, .spend, amount: 500)
    try WalletLab.change(store) { wallet in
      let parcel = WalletParcel(id: OperationID(high: 1, low: 1), operations: [Self.claim, Self.earning, spend])
      _ = try wallet.receive(parcel) { _ in false }
    }
    #expect(try WalletLab.state(of: store).late.map(\.id) == [spend.id])
    #expect(try knowsBoth(store))
    #expect(try store.read { try $0.performedOperation(spend.id) } == spend.fingerprint)
  }

  // MARK: Earlier formats

  @Test(
    """
    a store of a format without this table gets it at its first opening: from the ledger, and from the claims that its \
    wallet lists; a wallet that may have been offered counts as offered
    """, arguments: [Seal.Kind.none, .signed, .sealed], [true, false])
  func migrates(kind: Seal.Kind, isConnected: Bool) throws {
    let seal = SealLab.request(kind)
    var store = try Store.open(at: folder.store, seal: seal)
    try WalletLab.perform([Self.claim, Self.earning], in: store)
    try store.write { transaction throws in
      if isConnected { try transaction.setFacts(DeviceFacts(container: ContainerID(high: 1, low: 2))) }
      let place = RowIdentity.fact(WalletBook.name)
      let json = String(
        decoding: try transaction.codec.json(in: #require(try transaction.walletBody()), place: place), as: UTF8.self)
      let earlier = json.replacingOccurrences(of: #""isTabled":true,"#, with: "")
        .replacingOccurrences(of: #""isBound":false"#, with: #""settledClaims":["an old gift"]"#)
      #expect(!earlier.contains("isTabled") && earlier.contains("old gift"))
      try transaction.run(
        "UPDATE fact SET body = ? WHERE name = ?",
        [transaction.codec.body(of: Data(earlier.utf8), place: place), WalletBook.name])
      // By a statement that a seal's ledger sees.
      try transaction.run("DELETE FROM performed", [])
    }
    try store.close()
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "DROP TABLE performed; PRAGMA user_version = 2")
    }
    for _ in 0..<2 {
      store = try Store.open(at: folder.store, seal: seal)
      #expect(store.incidents.isEmpty && SealLab.findings(of: store).isEmpty)
      #expect(try knowsBoth(store))
      #expect(try store.read { try $0.hasClaimed("an old gift") })
      #expect(try WalletLab.state(of: store).isBound == isConnected)
      #expect(try WalletLab.state(of: store).operations.map(\.id) == [Self.claim.id, Self.earning.id])
      try store.close()
    }
  }

  // MARK: Damage

  static let damage = [
    "UPDATE performed SET checksum = x'0011223344556677' WHERE length(key) = 16",
    "UPDATE performed SET checksum = x'' WHERE length(key) = 16",
    "UPDATE performed SET fingerprint = fingerprint + 1 WHERE length(key) = 16",
    "UPDATE performed SET key = x'42' WHERE key = (SELECT MIN(key) FROM performed WHERE length(key) = 16)",
    "UPDATE fact SET body = zeroblob(100) WHERE name = 'wallet'",
    """
    PRAGMA writable_schema = ON;
    DELETE FROM sqlite_schema WHERE name = 'performed'
    """,
  ]

  @Test(
    """
    damage to the table, to the wallet or to the schema is found at opening: what the ledger has is performed as \
    before, and so are claims that only the table knows
    """, arguments: damage)
  func recovers(sql: String) throws {
    var store = try Store.open(at: folder.store)
    try WalletLab.perform([Self.claim, Self.earning], in: store)
    try store.write { try $0.fillPerformed(claims: ["an old gift"]) }
    try store.close()
    try WalletLab.removeBackups(of: folder.store)
    try SealLab.edit(folder.store) { try $0.execute(sql: sql) }
    store = try Store.open(at: folder.store)
    #expect(store.incidents.contains { $0.kind == .recovered })
    #expect(try knowsBoth(store))
    #expect(try store.read { try $0.hasClaimed("an old gift") })
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(store.incidents.isEmpty)
  }

  @Test("a row with a wrong checksum is `damaged` when it is looked up, and never a wrong fingerprint")
  func lookedUp() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.perform([Self.earning], in: store)
    try store.write { try $0.run("UPDATE performed SET fingerprint = fingerprint + 1", []) }
    #expect(errorCode { _ = try store.read { try $0.performedOperation(Self.earning.id) } } == .damaged)
  }

  @Test(
    "in a sealed store, a row that is taken out or put in is found, and what the ledger has is performed as before",
    arguments: SealLab.kinds, [true, false])
  func tampered(kind: Seal.Kind, isTakenOut: Bool) throws {
    let seal = SealLab.request(kind)
    var store = try Store.open(at: folder.store, seal: seal)
    try WalletLab.perform([Self.claim, Self.earning], in: store)
    try store.close()
    try SealLab.edit(folder.store) { database in
      if isTakenOut {
        try database.execute(sql: "DELETE FROM performed")
      } else {
        try database.execute(
          sql: "INSERT INTO performed (\(PerformedRow.columns)) VALUES (?, ?, ?)",
          arguments: PerformedRow(claim: "a gift that was never claimed").arguments)
      }
    }
    store = try Store.open(at: folder.store, seal: seal)
    #expect(SealLab.findings(of: store) == [.rollback])
    #expect(try knowsBoth(store))
    try store.close()
    store = try Store.open(at: folder.store, seal: seal)
    defer { try? store.close() }
    #expect(SealLab.findings(of: store).isEmpty)
  }
}
