package import KeepsakeReplication

/// Settles what a store left with the banks of players that it belonged to before, beside the sync with its own cloud,
/// which never waits for it.
///
/// Asks after each `look`, and again after growing pauses as long as something is left and a bank can't be reached.
package actor LeavingService<Store: DeviceStore> {
  private nonisolated let executor: QueueExecutor
  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let store: Store
  private let cloud: @Sendable (ContainerID) throws -> (any Transport)?
  private let report: @Sendable (EngineNotification) -> Void
  private let settled: @Sendable () -> Void
  private let sleep: @Sendable (Duration) async throws -> Void
  private var random: any RandomNumberGenerator & Sendable

  /// The chains of former wallets of which it was reported that no credentials for their banks are here.
  private var outOfReach: Set<ChainID> = []
  private var isOn = true
  private var isAsking = false
  /// Whether somebody has called `look` since the current attempt began.
  private var isDue = false
  private var pause = SyncLimits.firstLeavingPauseMilliseconds
  private var asking: Task<Void, Never>?
  private var pausing: Task<Void, Never>?

  /// - Parameters:
  ///   - cloud: Returns the cloud of a container that the store belonged to; nil if this device has no credentials for
  ///     it. Throws, after reporting why, if they can't be read.
  ///   - report: Called with what changed for the game.
  ///   - settled: Called when something was settled: the store's own bank should be asked, and the credentials of banks
  ///     that owe nothing any more can go.
  package init(
    store: Store, executor: QueueExecutor, environment: SyncService<Store>.Environment,
    cloud: @escaping @Sendable (ContainerID) throws -> (any Transport)?,
    report: @escaping @Sendable (EngineNotification) -> Void, settled: @escaping @Sendable () -> Void
  ) {
    self.store = store
    self.executor = executor
    self.cloud = cloud
    self.report = report
    self.settled = settled
    sleep = environment.sleep
    random = environment.random
  }

  /// Asks the banks now, if there is anything to ask. Call it when there may be: after the start, when a network is
  /// there again, and after an adoption.
  package func look() {
    guard isOn else { return }
    isDue = true
    pause = SyncLimits.firstLeavingPauseMilliseconds
    begin()
  }

  /// Ends for ever. What is left stays in the store.
  package func stop() {
    isOn = false
    asking?.cancel()
    pausing?.cancel()
    (asking, pausing) = (nil, nil)
  }

  private func begin() {
    guard isOn, !isAsking else { return }
    pausing?.cancel()
    pausing = nil
    isAsking = true
    asking = Task { await self.ask() }
  }

  private func ask() async {
    var isLeft = true
    while isDue, isOn {
      isDue = false
      isLeft = await askAll()
    }
    isAsking = false
    guard isLeft, isOn else { return }
    let milliseconds = Int64.random(in: pause / 2...pause, using: &random)
    pause = min(pause * 2, SyncLimits.longestLeavingPauseMilliseconds)
    pausing = Task {
      do { try await self.sleep(.milliseconds(milliseconds)) } catch { return }
      self.pauseEnded()
    }
  }

  private func pauseEnded() {
    pausing = nil
    isDue = true
    begin()
  }

  /// Asks about every former wallet, the oldest first, since its voucher may go to a later one. Returns whether to try
  /// again later.
  private func askAll() async -> Bool {
    var (known, isLeft): (Set<ChainID>, Bool) = ([], false)
    do {
      // A voucher may begin a further wallet.
      while isOn, let wallet = try next(besides: known) {
        known.insert(wallet.state.chain)
        let found: (any Transport)?
        // The closure has reported why. The next look tries again.
        do { found = try cloud(wallet.bank) } catch { continue }
        guard let bank = found else {
          // Kept: the credentials may come back.
          if outOfReach.insert(wallet.state.chain).inserted { report(.moneyOutOfReach(LostMoney(wallet))) }
          continue
        }
        if try await !settle(wallet.state.chain, at: bank, &known) { isLeft = true }
      }
    } catch {
      // The network is shown by the status of a cloud that is used; a store that fails, too.
      isLeft = true
    }
    return isLeft
  }

  private func next(besides known: Set<ChainID>) throws -> FormerWallet? {
    try store.write { try $0.formerWallets() }.first { !known.contains($0.state.chain) }
  }

  /// Returns whether the bank has settled the wallet, or never will.
  private func settle(_ chain: ChainID, at cloud: any Transport, _ known: inout Set<ChainID>) async throws -> Bool {
    var chain = chain
    for _ in 0..<SyncLimits.leavingExchanges {
      guard let offer = try store.write({ try DeviceCommit.offer(leavingOn: chain, in: &$0) }) else { return false }
      let answer: LeavingAnswer
      do {
        answer = try await cloud.leave(with: offer)
      } catch {
        return false
      }
      guard isOn else { return false }
      switch answer {
      case .retired:
        let lost = try store.write { try DeviceCommit.giveUp(chain, in: &$0) }
        if let lost { report(.moneyLost(lost)) }
        report(.wallet)
        settled()
        return true
      case .reply(let reply):
        var source = SystemRandomNumberGenerator()
        let step = try store.write { try DeviceCommit.received(reply, in: &$0, using: &source) }
        for notification in step.notifications { report(notification) }
        if step.isSettled { settled() }
        guard let next = step.next else { return step.isSettled }
        known.insert(next)
        chain = next
      }
    }
    return false
  }
}
