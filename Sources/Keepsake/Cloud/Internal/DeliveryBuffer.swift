import Synchronization

/// The delivery settings, and the bank's changes that are held back until the game wants to see them. All other
/// held-back changes are in the store.
final class DeliveryBuffer: Sendable {
  private struct State {
    var delivery = CloudDelivery.immediately
    var downloads = DownloadPolicy.ahead
    var changes: [GameChange] = []
  }
  private let state = Mutex(State())
  private let mayHave = Atomic(true)

  var delivery: CloudDelivery { state.withLock { $0.delivery } }

  /// What is downloaded automatically.
  var downloads: DownloadPolicy { state.withLock { $0.downloads } }

  func set(_ downloads: DownloadPolicy) { state.withLock { $0.downloads = downloads } }

  var isHolding: Bool { delivery != .immediately }

  /// Sets when to deliver, and returns the previous setting.
  func set(_ delivery: CloudDelivery) -> CloudDelivery {
    state.withLock { state in
      defer { state.delivery = delivery }
      return state.delivery
    }
  }

  /// Holds a change of the wallet back. Returns false if it is to be emitted immediately.
  func keep(_ change: GameChange) -> Bool {
    let isKept = state.withLock { state in
      guard state.delivery != .immediately else { return false }
      if change != .wallet || !state.changes.contains(.wallet) { state.changes.append(change) }
      return true
    }
    if isKept { arrivalsDidChange() }
    return isKept
  }

  /// Whether a change of the wallet is held back.
  var hasChanges: Bool { state.withLock { !$0.changes.isEmpty } }

  func takeChanges() -> [GameChange] {
    state.withLock { state in
      defer { state.changes = [] }
      return state.changes
    }
  }

  /// Puts back changes that were taken but couldn't be delivered, before those that came since.
  func putBack(_ changes: [GameChange]) {
    state.withLock { state in
      let since = state.changes.filter { $0 != .wallet || !changes.contains(.wallet) }
      state.changes = changes + since
    }
  }

  /// False only if there is nothing to deliver. Saves a game that asks in each frame from querying the database for
  /// nothing.
  var mayHaveArrivals: Bool { mayHave.load(ordering: .acquiring) }

  func arrivalsDidChange() { mayHave.store(true, ordering: .releasing) }

  /// Call this before checking for arrivals, so that what arrives meanwhile is not missed.
  func looks() { mayHave.store(false, ordering: .releasing) }
}
