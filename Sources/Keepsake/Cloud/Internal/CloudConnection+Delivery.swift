import KeepsakeReplication
import KeepsakeStore

// These run on the caller's thread: what is delivered must be visible when the call returns, and must not appear at any
// other time.
extension CloudConnection {
  /// Delivers what was held back. Returns false if there was nothing.
  nonisolated func deliver() throws -> Bool {
    deliveryBuffer.looks()
    do {
      let core = core
      let shown: [EngineNotification]? = try core.translating {
        guard try core.store.read({ try $0.facts().hasArrivals }) else { return nil }
        return try core.store.write { try DeviceEngine.deliver(in: &$0) }
      }
      // What was delivered may have to be sent to the cloud. Even if the game sees no difference, the service reports
      // what is left.
      defer { if shown != nil { core.cloud.didCommit() } }
      // These changes are already in the store, even if the wallet can't be read below.
      for item in shown ?? [] { eventHandler.handle(item) }
      let changes = try takeChanges()
      for change in changes { core.events.emit(change) }
      state.delivered()
      return shown?.isEmpty == false || !changes.isEmpty
    } catch {
      deliveryBuffer.arrivalsDidChange()
      throw error
    }
  }

  /// Takes the bank's changes that were held back, and updates the balances shown to their current state. If those
  /// can't be read, the changes stay held back.
  private nonisolated func takeChanges() throws -> [GameChange] {
    let changes = deliveryBuffer.takeChanges()
    guard deliveryBuffer.isHolding, !changes.isEmpty else { return changes }
    do {
      try eventHandler.wallet.hold()
    } catch {
      deliveryBuffer.putBack(changes)
      throw error
    }
    return changes
  }

  nonisolated func deliver(_ delivery: CloudDelivery) {
    let before = deliveryBuffer.set(delivery)
    if delivery == .immediately {
      if before != .immediately { eventHandler.wallet.release() }
      showWithoutService()
      // A sync step in progress may still hold back what it receives.
      return core.cloud.didCommit()
    }
    guard before == .immediately else { return }
    do {
      try eventHandler.wallet.hold()
    } catch {
      // The wallet then shows the current balances, and the incident reports it.
      core.events.report(Incident(kind: .unreadable, message: "the wallet can't be read: \(error)", date: core.now))
    }
  }

  /// Delivers what an earlier run, or this one, held back, if the game wants changes immediately and no service does
  /// it.
  nonisolated func showWithoutService() {
    guard !deliveryBuffer.isHolding else { return }
    do {
      _ = try deliver()
    } catch {
      core.events.report(
        Incident(
          kind: .failedCommit, message: "changes that were held back could not be applied: \(error)", date: core.now))
    }
  }
}
