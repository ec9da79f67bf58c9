import Foundation
public import KeepsakeReplication
import KeepsakeStore

extension WalletStore {
  /// How long a purchase that failed waits for the names of the devices that hold the rest.
  private static let namesLimit = Duration.seconds(2)

  /// Spends money, up to everything that the player has: asks the bank for what this device can't spend by itself, and
  /// the bank asks the player's other devices.
  ///
  /// ```swift
  /// try await game.wallet.spend(80, .gems, for: "castle", goods: [.castle], askingBankFor: .seconds(10))
  /// ```
  ///
  /// Returns at once, without a request, if this device can spend the amount, after one exchange if the bank holds the
  /// rest, and otherwise as soon as other devices that are online have returned enough. The money that was collected is
  /// spent in one transaction: another purchase may be faster, but none is charged twice or in part. Purchases that are
  /// made at the same time are met in the order of the calls, as far as the money is enough.
  ///
  /// Throws at once if the player doesn't have that much in all, or if there is no bank (`bank`). What the bank and
  /// other devices gave meanwhile stays here. A failure because of other devices costs another round trip for their
  /// names, of at most two seconds.
  ///
  /// While `Cloud.delivery` holds the bank's grants back, this spends them nevertheless, but no more than the total
  /// that is shown.
  ///
  /// - Parameters:
  ///   - amount: At least 1.
  ///   - currency: The currency.
  ///   - reason: A text for the ledger.
  ///   - id: The operation's identifier, to make a retry safe; a new one if nil.
  ///   - goods: What the operation grants.
  ///   - limit: How long to wait for the bank and for other devices, by a clock that can't be set.
  /// - Returns: The operation's identifier.
  /// - Throws: `GameDataError` with `insufficient`, which says which devices hold the rest; with `unreachable`,
  ///   `refused` or `timedOut` if the bank can't be asked; with `misuse`, `idReused`, `tooLarge` or `closed`.
  ///   `StoreError`. `CancellationError` if the task is cancelled. Nothing is spent then.
  @discardableResult
  public func spend(
    _ amount: Int, _ currency: Currency, for reason: String, id: OperationID? = nil, goods: [Goods] = [],
    askingBankFor limit: Duration
  ) async throws -> OperationID {
    let operation = try Self.operation(.spend, amount, currency, reason, id, goods, in: core)
    guard let refused = try attempt(operation) else { return operation.id }
    guard bank == .connected, refused.total >= operation.amount else { throw refused.error }
    let (need, changes) = needs.begin(operation.amount, of: operation.currency)
    defer { end(need, of: operation.currency) }
    return try await perform(operation, askingFor: need, limit, changes)
  }

  private func perform(
    _ operation: WalletOperation, askingFor need: UInt64, _ limit: Duration, _ changes: AsyncStream<Void>
  ) async throws -> OperationID {
    let timer = Task { [core, needs] in
      // A cancelled sleep ends the wait, too.
      try? await core.environment.sleep(limit)
      needs.stopWaiting(need)
    }
    defer { timer.cancel() }
    try requestNeed(of: operation.currency)
    // Not awaited here: it also waits for saves that are being downloaded.
    let exchange = Task { [core, needs] in
      do {
        try await core.cloud.fetchChanges()
        needs.bankAnswered(need, .success(()))
      } catch {
        needs.bankAnswered(need, .failure(error))
      }
    }
    defer { exchange.cancel() }
    var iterator = changes.makeAsyncIterator()
    while true {
      // Before the attempt, so that what arrives after this is tried once more.
      let answer = needs.answer(to: need)
      let canHope = try canBecomeSpendable(operation)
      guard try attempt(operation) != nil else { return operation.id }
      try answer?.get()
      // Another operation in this currency may have ended the need.
      if canHope, try requestNeed(of: operation.currency) { core.cloud.didCommit() }
      guard canHope || answer == nil, await iterator.next() != nil else {
        try Task.checkCancellation()
        // What came in the last moment counts.
        guard let refused = try attempt(operation) else { return operation.id }
        let held = try core.store.read { try $0.wallet()?.held[operation.currency] }
        guard answer != nil || held != nil else {
          throw GameDataError(.timedOut, "the cloud has not responded within \(limit)")
        }
        throw try await naming(refused, held ?? [], operation.currency)
      }
    }
  }

  /// Returns whether the player has enough, and, as far as the bank has said, somebody can return it.
  private func canBecomeSpendable(_ operation: WalletOperation) throws -> Bool {
    try core.store.read { transaction in
      guard let wallet = try transaction.wallet().map({ KeepsakeReplication.Wallet($0) }) else { return false }
      return wallet.total(operation.currency) >= operation.amount
        && wallet.state.held[operation.currency]?.isEmpty != true
    }
  }

  /// An operation that this device can't perform by itself.
  private struct Refused {
    var error: GameDataError
    var spendable: Int64
    var total: Int64
  }

  /// Performs the operation. Returns nil if that succeeded, or why this device has too little.
  private func attempt(_ operation: WalletOperation) throws -> Refused? {
    do {
      try perform([operation], spendingUnshown: true)
      return nil
    } catch let error as GameDataError {
      guard case .insufficient(let spendable, let total, _) = error.code else { throw error }
      return Refused(error: error, spendable: spendable, total: total)
    }
  }

  /// Records in the wallet what the purchases in a currency need now. Returns whether that differs from before.
  @discardableResult
  private func requestNeed(of currency: String) throws -> Bool {
    try core.translating {
      func change(in transaction: StoreTransaction) throws -> KeepsakeReplication.Wallet? {
        guard var wallet = try transaction.wallet().map({ KeepsakeReplication.Wallet($0) }) else { return nil }
        let need = needs.amount(of: currency, total: wallet.total(currency))
        guard need != wallet.state.needs[currency] else { return nil }
        let isNew = need != nil && wallet.state.needs[currency] == nil
        guard !isNew || wallet.state.needs.count < KeepsakeReplication.Wallet.maximumNeeds else {
          throw GameDataError(.tooLarge, "purchases in too many currencies wait for the bank at the same time")
        }
        wallet.need(need, of: currency)
        return wallet
      }
      // Most changes of the wallet don't change a need, and a write waits for the disk.
      guard try core.store.read({ try change(in: $0) }) != nil else { return false }
      return try core.store.write { transaction in
        guard let wallet = try change(in: transaction) else { return false }
        try transaction.setWallet(wallet.state)
        return true
      }
    }
  }

  /// Ends a purchase, whether or not it was made.
  private func end(_ need: UInt64, of currency: String) {
    needs.end(need)
    do {
      if try requestNeed(of: currency) { core.cloud.didCommit() }
    } catch {
      // Opening the data again ends all needs.
      guard !core.store.isClosed else { return }
      core.events.report(
        Incident(
          kind: .failedCommit, message: "a purchase in \(currency) that failed is still requested: \(error)",
          date: core.now))
    }
  }

  /// Adds to the error which devices hold the rest.
  private func naming(
    _ refused: Refused, _ known: [WalletHolding], _ currency: String
  ) async throws -> GameDataError {
    guard !known.isEmpty else { return refused.error }
    var names: [DeviceID: String] = [:]
    if known.contains(where: { $0.device != nil }) {
      do {
        for device in try await core.ask(within: Self.namesLimit, core.cloud.devices) {
          names[device.device] = device.name
        }
      } catch is CancellationError {
        throw CancellationError()
      } catch {
        // The amounts are worth more than the names, which the error then lacks.
      }
    }
    let held = known.map { Holding($0, names: names) }
    let offset = try core.store.read { try $0.facts().serverOffsetMilliseconds }
    let now = core.now.addingTimeInterval(Double(offset) / 1000)
    return GameDataError(
      .insufficient(spendable: refused.spendable, total: refused.total, held: held),
      """
      only \(refused.spendable) \(currency) can be spent here now, of \(refused.total) in all: \
      \(Holding.text(held, now: now)). They can be spent here when such a device is online, or is removed.
      """)
  }
}
