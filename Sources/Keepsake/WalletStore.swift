public import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// A permanent currency: gems. Currencies of one run (gold) belong into the saved game.
///
///     extension Currency { static let gems: Self = "gems" }
public struct Currency: Sendable, Hashable, ExpressibleByStringLiteral {
  /// Its name, on every device.
  public let name: String

  public init(_ name: String) { self.name = name.canonical }
  public init(stringLiteral name: String) { self.init(name) }
}

/// What an operation grants with it: a sword.
public struct Goods: Sendable, Hashable, ExpressibleByStringLiteral {
  public let name: String

  public init(_ name: String) { self.name = name.canonical }
  public init(stringLiteral name: String) { self.init(name) }
}

/// A player's money in one currency, as this device knows it.
public struct Balance: Sendable, Hashable {
  /// On all devices and in the bank.
  public var total: Int
  /// What can be spent here now, without asking anybody.
  public var spendable: Int
  /// Claimed and not yet confirmed by the bank.
  public var pending: Int

  public init(total: Int, spendable: Int, pending: Int) {
    self.total = total
    self.spendable = spendable
    self.pending = pending
  }
}

/// The player's money. It can't be joined like progress: there is a bank, and rights to spend that are handed out beforehand,
/// so that any number of devices can spend offline and none overdraws.
///
///     game.wallet[.gems].spendable
///     try game.wallet.earn(5, .gems, for: "level 3")
///     try game.wallet.spend(50, .gems, for: "sword", goods: ["sword"])
///     try game.wallet.claim(100, .gems, key: "daily-2026-11-20", for: "daily gift")
///
/// An operation is durable when the call returns: it costs one wait on the disk. Repeating one under the same id changes
/// nothing. Safe to use from any thread.
public final class WalletStore: Sendable {
  private let core: GameCore
  /// The wallet as it is in the store; nil when it has to be read again.
  private let known = Mutex<WalletState?>(nil)

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
    guard let state = try state() else { return Balance(total: 0, spendable: 0, pending: 0) }
    let wallet = KeepsakeReplication.Wallet(state)
    return Balance(
      total: Int(clamping: wallet.total(currency.name)), spendable: Int(clamping: wallet.spendable(currency.name)),
      pending: Int(clamping: wallet.pending(currency.name)))
  }

  /// Every currency that was ever used, sorted by name.
  public func currencies() throws -> [Currency] {
    guard let state = try state() else { return [] }
    return KeepsakeReplication.Wallet(state).currencies.map { Currency($0) }
  }

  /// Adds to the player's money; it can be spent here at once. Returns the operation's id.
  @discardableResult
  public func earn(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil
  ) throws -> OperationID {
    try perform(Self.operation(.earn, amount, currency, reason, id, []))
  }

  /// Takes from the player's money, within what can be spent here now.
  ///
  /// Throws `GameDataError.Code.insufficient`, with what could be spent and what there is in all; nothing has changed then.
  @discardableResult
  public func spend(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil, goods: [Goods] = []
  ) throws -> OperationID {
    try perform(Self.operation(.spend, amount, currency, reason, id, goods))
  }

  /// Asks the bank to pay something once per player, whatever device asks: a daily gift, a quest. Pending until it confirms.
  @discardableResult
  public func claim(
    _ amount: Int, _ currency: Currency, key: String, for reason: String, goods: [Goods] = []
  ) throws -> OperationID {
    try perform(Self.operation(.claim(key: key), amount, currency, reason, nil, goods))
  }

  static func operation(
    _ kind: WalletOperation.Kind, _ amount: Int, _ currency: Currency, _ reason: String, _ id: OperationID?,
    _ goods: [Goods]
  ) throws -> WalletOperation {
    var random = SystemRandomNumberGenerator()
    let operation = WalletOperation(
      id: id ?? OperationID(using: &random), kind: kind, currency: currency.name, amount: Int64(amount), reason: reason,
      goods: goods.map(\.name))
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
      // Before the write, so that whoever reads during it asks the store again.
      invalidate()
      defer { invalidate() }
      _ = try core.store.write { transaction in
        try DeviceCommit.apply(
          CommitDraft(wallet: [operation]), now: core.environment.nowMilliseconds(), writer: core.store.writer,
          in: &transaction, using: &random)
      }
    }
    core.noteCommit()
    return operation.id
  }

  func invalidate() { known.withLock { $0 = nil } }

  private func state() throws -> WalletState? {
    try known.withLock { known in
      if let known { return known }
      known = try core.store.read { try $0.wallet() }
      return known
    }
  }
}
