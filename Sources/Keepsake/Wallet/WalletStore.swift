public import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// The player's money.
///
/// ```swift
/// game.wallet[.gems].spendable
/// try game.wallet.earn(5, .gems, for: "level 3")
/// try game.wallet.spend(50, .gems, for: "sword", goods: [.sword])
/// try game.wallet.claim(100, .gems, key: "daily-2026-11-20", for: "daily gift")
/// ```
///
/// Money can't be joined like progress. A bank in the cloud keeps the account and grants each device a part that it can
/// spend offline, so that any number of devices can spend and none overdraws.
///
/// So each device holds a share of the balance: what the bank granted it, and what it earned itself. A purchase that
/// costs more than this device's share fails even online. Another device gives back part of its share while this one
/// has less than half of an equal share, and all of it when it is removed (`Cloud.remove`).
///
/// An operation is durable when the call returns. It costs one wait for the disk, independent of the number of earlier
/// operations. A balance costs a dictionary lookup; the first one after an operation reads the wallet's row. Repeating
/// an operation with the same identifier changes nothing. Safe to use from any thread.
///
/// Operations that no cloud knows are kept until one is connected, at most 4,194,304 of them; the next one throws
/// `tooLarge`. Each takes about 200 bytes of memory while the data is open, 160 bytes on disk, and 7 microseconds at
/// opening.
///
/// Calls throw `GameDataError` for invalid requests, and `StoreError` for problems on this device: `diskFull`,
/// `notPermitted` or `io` if the disk can't be written, with nothing changed; `damaged` if the wallet can't be read.
/// Then close the data and open it again: the wallet is rebuilt from a backup and its operations, an incident reports
/// it, and the bank of a connected cloud decides.
public final class WalletStore: Sendable {
  private let core: GameCore
  private struct Known {
    /// The balances as shown; nil if they have to be read again.
    var balances: [String: Balance]?
    /// Set while what arrives is held back.
    var hold: WalletHold?
  }
  private let known = Mutex(Known())

  init(core: GameCore) { self.core = core }

  /// The balance of a currency; zeros if it was never used. If `balance(of:)` would throw, the result is zeros, and an
  /// incident reports the error.
  ///
  /// - Parameter currency: The currency.
  /// - Returns: The balance.
  public subscript(currency: Currency) -> Balance {
    do {
      return try balance(of: currency)
    } catch {
      core.events.report(
        Incident(kind: .unreadable, message: "the wallet can't be read: \(error)", date: core.now))
      return Balance(total: 0, spendable: 0, pending: 0)
    }
  }

  /// Returns the balance of a currency.
  ///
  /// - Parameter currency: The currency.
  /// - Returns: The balance; zeros if the currency was never used.
  /// - Throws: `StoreError` if the wallet can't be read.
  public func balance(of currency: Currency) throws -> Balance {
    try balances()[currency.name] ?? Balance(total: 0, spendable: 0, pending: 0)
  }

  /// Lists every currency that was ever used.
  ///
  /// - Returns: The currencies, sorted by name.
  /// - Throws: `StoreError` if the wallet can't be read.
  public func currencies() throws -> [Currency] { try balances().keys.sorted().map { Currency($0) } }

  /// Lists the operations that this device made: for a player's "where did my gems go?" and for support.
  ///
  /// At least the newest 10,000 operations are kept, and all that no cloud knows. Operations of other devices aren't
  /// included. Costs reading the requested entries, and for one currency also those between them.
  ///
  /// - Parameters:
  ///   - currency: Only operations in this currency; all if nil.
  ///   - limit: The most entries to return.
  /// - Returns: The entries, newest first.
  /// - Throws: `StoreError` if the store can't be read.
  public func ledger(of currency: Currency? = nil, newest limit: Int = 100) throws -> [LedgerEntry] {
    let entries = try core.store.read { transaction in
      try transaction.walletEntries(newest: limit) { operation in
        operation.effect != .giveBack && (currency == nil || operation.currency == currency?.name)
      }
    }
    return entries.compactMap(LedgerEntry.init)
  }

  /// Adds to the player's money. The amount can be spent on this device immediately.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - reason: A text for the ledger.
  ///   - id: The operation's identifier, to make a retry safe; a new one if nil.
  /// - Returns: The operation's identifier.
  /// - Throws: `GameDataError` with `misuse` or `tooLarge`; `StoreError`. Nothing has changed then.
  @discardableResult
  public func earn(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil
  ) throws -> OperationID {
    try perform(Self.operation(.earn, amount, currency, reason, id, [], in: core))
  }

  /// Spends money, up to what can be spent on this device now.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - reason: A text for the ledger.
  ///   - id: The operation's identifier, to make a retry safe; a new one if nil.
  ///   - goods: What the operation grants.
  /// - Returns: The operation's identifier.
  /// - Throws: `GameDataError` with `insufficient`, `misuse` or `tooLarge`; `StoreError`. Nothing has changed then.
  @discardableResult
  public func spend(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil, goods: [Goods] = []
  ) throws -> OperationID {
    try perform(Self.operation(.spend, amount, currency, reason, id, goods, in: core))
  }

  /// Asks the bank for a payment that each player gets once, whichever device asks: a daily gift, a quest. Pending
  /// until the bank confirms it.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - key: Identifies the payment: each player gets it once.
  ///   - reason: A text for the ledger.
  ///   - goods: What the operation grants.
  /// - Returns: The operation's identifier.
  /// - Throws: `GameDataError` with `misuse` or `tooLarge`; `StoreError`. Nothing has changed then.
  @discardableResult
  public func claim(
    _ amount: Int, _ currency: Currency, key: String, for reason: String, goods: [Goods] = []
  ) throws -> OperationID {
    try perform(Self.operation(.claim(key: key), amount, currency, reason, nil, goods, in: core))
  }

  static func operation(
    _ kind: WalletOperation.Kind, _ amount: Int, _ currency: Currency, _ reason: String, _ id: OperationID?,
    _ goods: [Goods], in core: GameCore
  ) throws -> WalletOperation {
    var random = SystemRandomNumberGenerator()
    let operation = WalletOperation(
      id: id ?? OperationID(using: &random), kind: kind, currency: currency.name, amount: Int64(amount), reason: reason,
      goods: goods.map(\.name), madeAtMilliseconds: core.environment.nowMilliseconds())
    do {
      try operation.check()
    } catch {
      throw GameDataError.translated(error)
    }
    return operation
  }

  private func perform(_ operation: WalletOperation) throws -> OperationID {
    var random = SystemRandomNumberGenerator()
    try core.translating {
      guard !core.store.isClosed else { throw GameDataError.closed }
      try refuseUnshown([operation])
      // Also before the write, so that a reader during the write reads the store again.
      invalidate()
      defer { invalidate() }
      _ = try core.store.write { transaction in
        try DeviceCommit.apply(
          CommitDraft(wallet: [operation]), now: core.environment.nowMilliseconds(), writer: core.store.writer,
          in: &transaction, using: &random)
      }
    }
    core.cloud.didCommit()
    return operation.id
  }

  /// Reads the balances once more before the data is closed, so that they are shown afterwards.
  func keepBalances() {
    // If they can't be read, the next call that asks for them reports it.
    _ = try? balances()
  }

  func invalidate() { known.withLock { $0.balances = nil } }

  private func balances() throws -> [String: Balance] {
    try known.withLock { known in
      if let balances = known.balances { return balances }
      var hold = known.hold
      let balances = try core.store.read { transaction in
        let current = try WalletHold.balances(in: transaction)
        try hold?.follow(in: transaction)
        return hold?.shown(over: current) ?? current
      }
      (known.balances, known.hold) = (balances, hold)
      return balances
    }
  }

  // MARK: Keeping back what comes

  /// Stops showing what arrives from the bank, until the next `hold` or `release`.
  func hold() throws {
    try known.withLock { known in
      let hold = try core.store.read { try WalletHold(in: $0) }
      known = Known(hold: hold)
    }
  }

  func release() { known.withLock { $0 = Known() } }

  /// Refuses to spend what the bank has granted but isn't shown yet, because the shown balance would become negative.
  func refuseUnshown(_ operations: [WalletOperation]) throws {
    guard known.withLock({ $0.hold != nil }) else { return }
    let wallet = try core.store.read { try $0.wallet() }.map { KeepsakeReplication.Wallet($0) }
    var shown = try balances()
    for operation in operations where wallet?.knows(operation) != true {
      var balance = shown[operation.currency] ?? Balance(total: 0, spendable: 0, pending: 0)
      switch operation.effect {
      case .credit: balance.spendable += Int(clamping: operation.amount)
      case .debit:
        guard balance.spendable >= operation.amount else {
          let error = WalletError.insufficientRights(
            currency: operation.currency, spendable: Int64(balance.spendable), balance: Int64(balance.total))
          throw GameDataError.translated(error)
        }
        balance.spendable -= Int(clamping: operation.amount)
      case .claim, .giveBack: break
      }
      shown[operation.currency] = balance
    }
  }
}
