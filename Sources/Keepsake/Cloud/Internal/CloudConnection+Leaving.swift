import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

// Money at the banks of players that the store belonged to before.
extension CloudConnection {
  nonisolated func settleFormerWallets() {
    Task { await self.lookForFormerWallets() }
  }

  /// Starts to settle what is left with other banks, if the cloud has a bank that the money can go to.
  func beginLeaving() async {
    guard transport?.hasBank == true else { return }
    let service = leaving ?? makeLeavingService()
    leaving = service
    await service.look()
  }

  func endLeaving() async {
    await leaving?.stop()
    (leaving, wasReached) = (nil, false)
  }

  private func lookForFormerWallets() async { await leaving?.look() }

  /// Returns a service that settles former wallets, and gives vouchers to the store's own bank.
  private func makeLeavingService() -> LeavingService<Store> {
    let environment = SyncService<Store>.Environment(
      now: core.environment.nowMilliseconds, random: core.environment.random, sleep: core.environment.sleep)
    let (core, eventHandler) = (core, eventHandler)
    // Most likely the former bank is on the same server.
    var appKey: String?
    if case .server(let server)? = address?.kind { appKey = server.appKey }
    return LeavingService(
      store: core.store.base, executor: executor, environment: environment,
      cloud: { [appKey] in try Self.formerCloud($0, of: core, appKey: appKey) }, report: { eventHandler.handle($0) },
      settled: {
        // The store's own bank pays the voucher.
        core.cloud.didCommit()
        Self.removeUnneededCredentials(of: core)
      })
  }

  private static func formerCloud(
    _ container: ContainerID, of core: GameCore, appKey: String?
  ) throws -> (any Transport)? {
    do {
      let banks = FormerBanks(
        folder: core.store.url, store: core.store.base, environment: core.environment, storage: core.credentials)
      return try banks.cloud(of: container, appKey: appKey)
    } catch {
      core.events.report(
        Incident(
          kind: .unreadable, message: "the bank of the player before can't be asked for the money there: \(error)",
          date: core.now))
      throw error
    }
  }

  /// Removes the credentials of clouds whose banks have settled everything.
  private static func removeUnneededCredentials(of core: GameCore) {
    do {
      let (wallets, container) = try core.store.read { (try $0.formerWallets(), try $0.facts().container) }
      // The store's own container is left next: its credentials may be kept already.
      let needed = wallets.flatMap { [$0.bank, $0.receiver] } + [container]
      let former = FormerClouds(in: core.store.url, of: core.store.base, core.credentials)
      try former.keep(for: Set(needed.compactMap(\.self)))
    } catch {
      core.events.report(
        Incident(
          kind: .unreadable, message: "credentials of a cloud that was left can't be removed: \(error)",
          date: core.now))
    }
  }
}
