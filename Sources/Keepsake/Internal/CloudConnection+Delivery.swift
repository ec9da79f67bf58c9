import KeepsakeReplication
import KeepsakeStore

// On the caller's thread: what is shown must be there when the call returns, and must not come at any other time.
extension CloudConnection {
  /// Shows what was kept back; false if there was nothing.
  nonisolated func deliver() throws -> Bool {
    desk.looks()
    do {
      let (core, wallet) = (core, news.wallet)
      let shown: [EngineNews] = try core.translating {
        guard try core.store.read({ try $0.facts().hasArrivals }) else { return [] }
        return try core.store.write { try DeviceEngine.deliver(in: &$0) }
      }
      let changes = desk.takeChanges()
      if desk.isHolding, !changes.isEmpty { try wallet.hold() }
      for item in shown { news.heard(item) }
      for change in changes { core.tell(change) }
      board.delivered()
      // What was shown may have something for the cloud, and its service says what is left.
      if !shown.isEmpty { core.noteCommit() }
      return !shown.isEmpty || !changes.isEmpty
    } catch {
      desk.noteArrivals()
      throw error
    }
  }

  nonisolated func deliver(_ delivery: CloudDelivery) {
    let before = desk.set(delivery)
    guard (before == .immediately) != (delivery == .immediately) else { return }
    if delivery == .immediately {
      news.wallet.release()
      for change in desk.takeChanges() { core.tell(change) }
      return core.noteCommit()
    }
    do {
      try news.wallet.hold()
    } catch {
      // Money then shows as it is, which is told.
      core.report(Incident(kind: .unreadable, message: "the wallet can't be read: \(error)", date: core.now))
    }
  }
}
