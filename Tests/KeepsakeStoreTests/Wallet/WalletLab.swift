import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// What the tests of a store's wallet share.
enum WalletLab {
  static func operation(
    _ number: Int, _ kind: WalletOperation.Kind = .earn, amount: Int64 = 100, goods: [String] = []
  ) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 7, low: UInt64(number)), kind: kind, currency: "gems", amount: amount,
      reason: "level \(number)", goods: goods)
  }

  static func change(_ store: Store, _ body: (inout KeepsakeReplication.Wallet) throws -> Void) throws {
    try store.write { transaction throws in
      var wallet = Wallet(try #require(try transaction.wallet()))
      try body(&wallet)
      try transaction.setWallet(wallet.state)
    }
  }

  static func perform(_ operations: [WalletOperation], in store: Store) throws {
    try change(store) { wallet in
      for operation in operations { try wallet.perform(operation) }
    }
  }

  static func state(of store: Store) throws -> WalletState { try #require(try store.read { try $0.wallet() }) }

  /// The head after the first operations of a chain.
  static func head(_ chain: ChainID, after operations: some Sequence<WalletOperation>) -> ChainHead {
    operations.reduce(ChainHead(emptyChain: chain)) { $0.appending($1) }
  }

  /// Takes a reply of a bank as the engine does.
  ///
  /// - Parameter seed: What the id of a new chain depends on.
  static func receive(_ reply: WalletReply, seed: UInt64 = 1, in store: Store) throws {
    try store.write { try receive(reply, seed: seed, in: &$0) }
  }

  static func receive(_ reply: WalletReply, seed: UInt64 = 1, in transaction: inout StoreTransaction) throws {
    var random = SeededRandom(seed: seed)
    var wallet = Wallet(try #require(try transaction.wallet()))
    let change = try wallet.receive(
      reply, using: &random, acknowledged: transaction.acknowledgedOperations, settled: transaction.settledOperations)
    try transaction.setWallet(wallet.state)
    try transaction.recordDecisions(change.decisions)
    try transaction.recordOrders(change.orders, areNews: change.areOrdersNews)
  }

  /// Takes the reply of a bank that has all operations of the chain, with these decisions.
  static func acceptAll(
    _ decisions: [(WalletOperation, WalletDecision.Verdict)] = [], orders: [NumberedOrder] = [], in store: Store
  ) throws {
    let state = try state(of: store)
    try receive(
      WalletReply(
        chain: state.chain, state: .accepted(state.head), statement: state.statement + 1, totals: state.totals,
        balances: state.totals.mapValues(\.rights),
        decisions: decisions.map { WalletDecision(id: $0.id, verdict: $1) }, orders: orders),
      in: store)
  }

  static func removeBackups(of url: URL) throws {
    for backup in StoreFiles(folder: url).presentBackups { try FileManager.default.removeItem(at: backup) }
  }

  /// The ledger's operations and what became of them, oldest first.
  static func ledger(of store: Store) throws -> [(id: Int, status: WalletEntry.Status)] {
    try store.read { try $0.walletEntries(newest: .max) }.reversed().map {
      (Int(truncatingIfNeeded: $0.operation.id.low), $0.status)
    }
  }
}
