public import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// The player's money. It can't be joined like progress: there is a bank, and rights to spend that are handed out beforehand,
/// so that any number of devices can spend offline and none overdraws.
///
///     game.wallet[.gems].spendable
///     try game.wallet.earn(5, .gems, for: "level 3")
///     try game.wallet.spend(50, .gems, for: "sword", goods: ["sword"])
///     try game.wallet.claim(100, .gems, key: "daily-2026-11-20", for: "daily gift")
///
/// An operation is durable when the call returns: it costs one wait on the disk, and the same work however many there were before. A
/// balance costs a look into a dictionary; the first one after an operation reads the wallet's row. Repeating an operation under
/// the same id changes nothing. Safe to use from any thread.
///
/// What no cloud was told yet is kept for the day on which one is connected, at most 4,194,304 operations; the next one then throws
/// `tooLarge`. Each takes some 200 bytes of memory while the data is open, 160 on the disk, and 7 microseconds at opening.
///
/// Calls that throw, throw `GameDataError` for what is wrong with them, and `StoreError` for what is wrong here: `diskFull`,
/// `notPermitted` or `io` where the disk takes nothing, with nothing changed; `damaged` where the wallet can't be read, as after
/// somebody's hands in it. Then close the data and open it again: the wallet is put together from a backup and from its operations, which
/// an incident tells, and where a cloud is connected its bank has the last word.
public final class WalletStore: Sendable {
  private let core: GameCore
  private struct Known {
    /// What is shown; nil when it has to be read again.
    var balances: [String: Balance]?
    /// While what comes is kept back.
    var hold: WalletHold?
  }
  private let known = Mutex(Known())

  init(core: GameCore) { self.core = core }

  /// The balance; zeros for a currency that was never used. Throws only where `balance(of:)` would: then zeros too, and an
  /// incident.
  public subscript(currency: Currency) -> Balance {
    do {
      return try balance(of: currency)
    } catch {
      core.report(
        Incident(kind: .unreadable, message: "the wallet can't be read: \(error)", date: core.now))
      return Balance(total: 0, spendable: 0, pending: 0)
    }
  }

  /// The balance; throws `StoreError` if the store can't be read.
  public func balance(of currency: Currency) throws -> Balance {
    try balances()[currency.name] ?? Balance(total: 0, spendable: 0, pending: 0)
  }

  /// Every currency that was ever used, sorted by name.
  public func currencies() throws -> [Currency] { try balances().keys.sorted().map { Currency($0) } }

  /// What was done to the money on this device, newest first: for a player's "where did my gems go?" and for support.
  ///
  /// At least the newest 10,000 operations are kept here, and all that no cloud was told yet; what other devices did isn't among them.
  /// Costs reading as many as are asked for, of one currency also those between. Throws `StoreError` if the store can't be read.
  ///
  /// - Parameters:
  ///   - currency: Only operations in this one; all if nil.
  ///   - limit: The most entries that are given.
  public func ledger(of currency: Currency? = nil, newest limit: Int = 100) throws -> [LedgerEntry] {
    let entries = try core.store.read { transaction in
      try transaction.walletEntries(newest: limit) { operation in
        operation.kind != .giveBack && (currency == nil || operation.currency == currency?.name)
      }
    }
    return entries.compactMap(LedgerEntry.init)
  }

  /// Adds to the player's money; it can be spent here at once. Returns the operation's id.
  @discardableResult
  public func earn(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil
  ) throws -> OperationID {
    try perform(Self.operation(.earn, amount, currency, reason, id, [], in: core))
  }

  /// Takes from the player's money, within what can be spent here now.
  ///
  /// Throws `GameDataError.Code.insufficient`, with what could be spent and what there is in all; nothing has changed then.
  @discardableResult
  public func spend(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil, goods: [Goods] = []
  ) throws -> OperationID {
    try perform(Self.operation(.spend, amount, currency, reason, id, goods, in: core))
  }

  /// Asks the bank to pay something once per player, whatever device asks: a daily gift, a quest. Pending until it confirms.
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
      try refuseUnshown([operation])
      // Before the write, so that whoever reads during it asks the store again.
      invalidate()
      defer { invalidate() }
      _ = try core.store.write { transaction in
        try DeviceCommit.apply(
          CommitDraft(wallet: [operation]), now: core.environment.nowMilliseconds(), writer: core.store.writer,
          in: &transaction, using: &random)
      }
    }
    core.didCommit()
    return operation.id
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

  /// From now on what the bank says doesn't show, up to the next `hold` or `release`.
  func hold() throws {
    try known.withLock { known in
      let hold = try core.store.read { try WalletHold(in: $0) }
      known = Known(hold: hold)
    }
  }

  func release() { known.withLock { $0 = Known() } }

  /// What the bank granted since and isn't shown can't be spent yet: a balance would fall below what is seen to be there.
  func refuseUnshown(_ operations: [WalletOperation]) throws {
    guard known.withLock({ $0.hold != nil }) else { return }
    let wallet = try core.store.read { try $0.wallet() }.map { KeepsakeReplication.Wallet($0) }
    var shown = try balances()
    for operation in operations where wallet?.knows(operation) != true {
      var balance = shown[operation.currency] ?? Balance(total: 0, spendable: 0, pending: 0)
      switch operation.kind {
      case .earn: balance.spendable += Int(clamping: operation.amount)
      case .spend:
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
