import Synchronization

/// Knows when the game wants to see what came, and keeps what the bank said until then. The rest is kept in the store.
final class DeliveryBuffer: Sendable {
  private struct State {
    var delivery = CloudDelivery.immediately
    var downloads = DownloadPolicy.ahead
    var changes: [GameChange] = []
  }
  private let state = Mutex(State())
  private let mayHave = Atomic(true)

  var delivery: CloudDelivery { state.withLock { $0.delivery } }

  /// What comes by itself.
  var downloads: DownloadPolicy { state.withLock { $0.downloads } }

  func set(_ downloads: DownloadPolicy) { state.withLock { $0.downloads = downloads } }

  var isHolding: Bool { delivery != .immediately }

  /// What was set before.
  func set(_ delivery: CloudDelivery) -> CloudDelivery {
    state.withLock { state in
      defer { state.delivery = delivery }
      return state.delivery
    }
  }

  /// Keeps a change of the wallet for later; false if it is to be told at once.
  func keep(_ change: GameChange) -> Bool {
    let isKept = state.withLock { state in
      guard state.delivery != .immediately else { return false }
      if change != .wallet || !state.changes.contains(.wallet) { state.changes.append(change) }
      return true
    }
    if isKept { arrivalsDidChange() }
    return isKept
  }

  /// Whether a change of the wallet is kept.
  var hasChanges: Bool { state.withLock { !$0.changes.isEmpty } }

  func takeChanges() -> [GameChange] {
    state.withLock { state in
      defer { state.changes = [] }
      return state.changes
    }
  }

  /// Keeps on what was taken and could not be told, before what came since.
  func putBack(_ changes: [GameChange]) {
    state.withLock { state in
      let since = state.changes.filter { $0 != .wallet || !changes.contains(.wallet) }
      state.changes = changes + since
    }
  }

  /// False only if there is nothing to show: a game that asks in each frame looks into no database for nothing.
  var mayHaveArrivals: Bool { mayHave.load(ordering: .acquiring) }

  func arrivalsDidChange() { mayHave.store(true, ordering: .releasing) }

  /// To be called before looking, so that what comes meanwhile counts.
  func looks() { mayHave.store(false, ordering: .releasing) }
}
