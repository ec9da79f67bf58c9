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
/// Money can't be joined like progress. A bank in the cloud keeps the account and grants each device rights: an amount
/// that it can spend offline, so that any number of devices can spend and none overdraws.
///
/// One device alone holds everything. If several were online in the last seven days, each holds an equal share, and so
/// does the bank: of 90 gems, two devices hold 30 each and the bank 30. `spend` takes from this device's share. With
/// `askingBankFor` it also gets the rest, from the bank and from devices that are online. What a lost device holds can
/// be spent again once it is removed (`Cloud.remove`).
///
/// A player has at most 256 currencies.
///
/// An operation is durable when the call returns. It costs one wait for the disk, independent of the number of earlier
/// operations. A balance costs a dictionary lookup; the first one after an operation reads the wallet's row. Repeating
/// an operation with the same identifier changes nothing. Safe to use from any thread.
///
/// Operations that no cloud knows are kept until one is connected, at most 4,194,304 of them; the next one throws
/// `tooLarge`. Each takes about 200 bytes of memory while the data is open, 160 bytes on disk, and 7 microseconds at
/// opening.
///
/// Calls throw `GameDataError` for invalid requests, and with `readOnly` for operations in a shared container that the
/// game may only read; and `StoreError` for problems on this device: `diskFull`,
/// `notPermitted` or `io` if the disk can't be written, with nothing changed; `damaged` if the wallet can't be read.
/// Then close the data and open it again: the wallet is rebuilt from a backup and its operations, an incident reports
/// it, and the bank of a connected cloud decides.
public final class WalletStore: Sendable {
  let core: GameCore
  /// The purchases that wait for the bank.
  let needs = WalletNeeds()
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

  /// Returns the goods that the player has: those of every operation that the bank has counted, the same on every
  /// device that has synced, and those of this device's operations that no bank has decided. The goods of a claim count
  /// when it is paid.
  ///
  /// Without a cloud that has a bank, the goods of this device's operations. `Cloud.delivery` doesn't hold them back.
  /// Costs time in proportion to the number of different goods.
  ///
  /// - Returns: How many of each good the player has; at least 1.
  /// - Throws: `StoreError` if the wallet can't be read.
  public func goods() throws -> [Goods: Int] {
    let counts = try core.store.read { transaction in
      let known = try transaction.goods()
      return try transaction.wallet().map { KeepsakeReplication.Wallet($0).goods(known) } ?? known.counts
    }
    return Dictionary(counts.map { (Goods($0.key), Int(clamping: $0.value)) }) { $0 + $1 }
  }

  /// Lists the operations that this device made, and what the game's own servers granted, charged and refunded: for a
  /// player's "where did my gems go?" and for support.
  ///
  /// At least the newest 10,000 operations are kept, and all that no cloud knows, and the newest 10,000 of the servers.
  /// Operations of other devices aren't included. Costs reading the requested entries, and for one currency also those
  /// between them.
  ///
  /// - Parameters:
  ///   - currency: Only operations in this currency, and conversions to it; all if nil.
  ///   - limit: The most entries to return.
  /// - Returns: The entries, newest first.
  /// - Throws: `StoreError` if the store can't be read.
  public func ledger(of currency: Currency? = nil, newest limit: Int = 100) throws -> [LedgerEntry] {
    let entries = try core.store.read { transaction in
      try transaction.walletEntries(newest: limit) { operation in
        guard operation.effect != .giveBack, let name = currency?.name else { return operation.effect != .giveBack }
        return operation.currency == name || operation.movements.contains { $0.currency == name }
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
  /// - Throws: `GameDataError` with `misuse`, `notAllowed`, `idReused` or `tooLarge`; `StoreError`. Nothing has changed
  ///   then.
  @discardableResult
  public func earn(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil
  ) throws -> OperationID {
    try perform(Self.operation(.earn, amount, currency, reason, id, [], gaining: currency, in: core))
  }

  /// Spends money, up to what can be spent on this device now. Never waits for the network: the other `spend` asks the
  /// bank for the rest.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - reason: A text for the ledger.
  ///   - id: The operation's identifier, to make a retry safe; a new one if nil.
  ///   - goods: What the operation grants.
  /// - Returns: The operation's identifier.
  /// - Throws: `GameDataError` with `insufficient`, `misuse`, `idReused` or `tooLarge`; `StoreError`. Nothing has
  ///   changed then.
  @discardableResult
  public func spend(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil, goods: [Goods] = []
  ) throws -> OperationID {
    try perform(Self.operation(.spend, amount, currency, reason, id, goods, in: core))
  }

  /// Exchanges money for another currency, in one operation: both amounts count, or none, on every device and in the
  /// bank.
  ///
  /// ```swift
  /// try game.wallet.convert(100, .gems, to: 10, .crowns, for: "exchange")
  /// ```
  ///
  /// - Parameters:
  ///   - amount: What is spent, at least 1: up to what can be spent on this device now.
  ///   - currency: Its currency.
  ///   - received: What is added, at least 1. It can be spent on this device immediately.
  ///   - other: Its currency, another one.
  ///   - reason: A text for the ledger.
  ///   - id: The operation's identifier, to make a retry safe; a new one if nil.
  /// - Returns: The operation's identifier.
  /// - Throws: `GameDataError` with `insufficient`, `misuse`, `notAllowed`, `idReused` or `tooLarge`; `StoreError`.
  ///   Nothing has changed then.
  @discardableResult
  public func convert(
    _ amount: Int, _ currency: Currency, to received: Int, _ other: Currency, for reason: String,
    id: OperationID? = nil
  ) throws -> OperationID {
    let kind = WalletOperation.Kind.convert(to: other.name, received: Int64(received))
    return try perform(Self.operation(kind, amount, currency, reason, id, [], gaining: other, in: core))
  }

  /// Asks the bank for a payment that each player gets once, whichever device asks: a daily gift, a quest. Pending
  /// until the bank confirms it, which `notices` reports. A key that was claimed on this device before changes nothing.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - key: Identifies the payment: each player gets it once.
  ///   - reason: A text for the ledger.
  ///   - goods: What the operation grants when it is paid.
  /// - Returns: The operation's identifier; no operation has it if the key was claimed on this device before.
  /// - Throws: `GameDataError` with `misuse`, `notAllowed` or `tooLarge`; `StoreError`. Nothing has changed then.
  @discardableResult
  public func claim(
    _ amount: Int, _ currency: Currency, key: String, for reason: String, goods: [Goods] = []
  ) throws -> OperationID {
    let kind = WalletOperation.Kind.claim(key: key.canonical)
    return try perform(Self.operation(kind, amount, currency, reason, nil, goods, gaining: currency, in: core))
  }

  /// - Parameter gained: The currency of which the operation makes more.
  static func operation(
    _ kind: WalletOperation.Kind, _ amount: Int, _ currency: Currency, _ reason: String, _ id: OperationID?,
    _ goods: [Goods], gaining gained: Currency? = nil, in core: GameCore
  ) throws -> WalletOperation {
    var random = SystemRandomNumberGenerator()
    if let gained, gained.isServerOnly {
      throw GameDataError.translated(WalletError.serverAuthoritative(currency: gained.name))
    }
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
    try perform([operation], spendingUnshown: false)
    return operation.id
  }

  /// - Parameter spendingUnshown: Whether to spend what the bank has granted even if it isn't shown yet.
  func perform(_ operations: [WalletOperation], spendingUnshown: Bool) throws {
    var random = SystemRandomNumberGenerator()
    try core.translating {
      guard !core.store.isClosed else { throw GameDataError.closed }
      try core.requireWritableMoney()
      try refuseUnshown(operations, upToTotal: spendingUnshown)
      // Also before the write, so that a reader during the write reads the store again.
      forgetBalances()
      defer { forgetBalances() }
      _ = try core.store.write { transaction in
        try DeviceCommit.apply(
          CommitDraft(wallet: operations), now: core.environment.nowMilliseconds(), writer: core.store.writer,
          in: &transaction, using: &random)
      }
    }
    invalidate()
    core.cloud.didCommit()
  }

  /// Reads the balances once more before the data is closed, so that they are shown afterwards.
  func keepBalances() {
    // If they can't be read, the next call that asks for them reports it.
    _ = try? balances()
  }

  /// Call this whenever the wallet has changed: balances are read again, and purchases that wait for the bank are tried
  /// again.
  func invalidate() {
    forgetBalances()
    needs.walletDidChange()
  }

  private func forgetBalances() { known.withLock { $0.balances = nil } }

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

  /// The number of the newest notice that may be shown; nil if all may.
  var shownNotice: Int64? { known.withLock { $0.hold?.lastNotice } }

  /// Refuses to spend what the bank has granted but isn't shown yet, because the shown balance would become negative.
  ///
  /// - Parameter upToTotal: Whether only the shown total must not become negative.
  func refuseUnshown(_ operations: [WalletOperation], upToTotal: Bool = false) throws {
    guard known.withLock({ $0.hold != nil }) else { return }
    let fresh = try core.store.read { transaction in
      try operations.filter { try !DeviceCommit.isRepeat($0, in: transaction) }
    }
    var shown = try balances()
    var seen: Set<OperationID> = []
    for operation in fresh where seen.insert(operation.id).inserted {
      for movement in operation.movements {
        var balance = shown[movement.currency] ?? Balance(total: 0, spendable: 0, pending: 0)
        guard (upToTotal ? balance.total : balance.spendable) >= movement.spent else {
          throw WalletError.insufficientRights(
            currency: movement.currency, spendable: Int64(balance.spendable), balance: Int64(balance.total))
        }
        balance.count(movement)
        shown[movement.currency] = balance
      }
    }
  }
}

extension Balance {
  /// Counts what an operation of this device adds to the player's money and takes from it.
  mutating func count(_ movement: WalletOperation.Movement) {
    let change = Int(clamping: movement.earned - movement.spent)
    total += change
    // A purchase that asked the bank spends what isn't shown.
    spendable = max(spendable + change, 0)
  }
}
