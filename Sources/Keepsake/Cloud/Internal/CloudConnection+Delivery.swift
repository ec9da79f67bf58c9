import KeepsakeReplication
import KeepsakeStore

// On the caller's thread: what is shown must be there when the call returns, and must not come at any other time.
extension CloudConnection {
  /// Shows what was kept back; false if there was nothing.
  nonisolated func deliver() throws -> Bool {
    deliveryBuffer.looks()
    do {
      let core = core
      let shown: [EngineNotification]? = try core.translating {
        guard try core.store.read({ try $0.facts().hasArrivals }) else { return nil }
        return try core.store.write { try DeviceEngine.deliver(in: &$0) }
      }
      // What was shown may have something for the cloud. Even where the game sees no difference its service says what is left.
      defer { if shown != nil { core.cloud.didCommit() } }
      // It is in the store by now, whatever becomes of the money.
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

  /// What the bank said, with the money shown as it is by now; kept on where that can't be read.
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
      // A step that is under way may still keep back what it brings.
      return core.cloud.didCommit()
    }
    guard before == .immediately else { return }
    do {
      try eventHandler.wallet.hold()
    } catch {
      // Money then shows as it is, which is told.
      core.events.report(Incident(kind: .unreadable, message: "the wallet can't be read: \(error)", date: core.now))
    }
  }

  /// Shows what an earlier run kept back, or this one before, to a game that wants it at once, where no service does it.
  nonisolated func showWithoutService() {
    guard !deliveryBuffer.isHolding else { return }
    do {
      _ = try deliver()
    } catch {
      core.events.report(Incident(kind: .failedCommit, message: "what was kept back could not be shown: \(error)", date: core.now))
    }
  }
}
