import Foundation
import KeepsakeStore
import Synchronization

/// Reports what happens to a game's data: incidents, changes from elsewhere, and possible changes of slots and
/// statuses.
final class GameEvents: Sendable {
  /// The maximum number of incidents kept: enough that a game that checks now and then misses none, and bounded for one
  /// that never does.
  static let maximumIncidents = 100
  /// The maximum number of changes kept for a game that polls; the same number as a stream buffers.
  static let maximumUntaken = 256

  let changes = Broadcast<GameChange>()
  /// Emitted when the contents of slots may have changed (`slotTicks`), or how far they have been synced
  /// (`statusTicks`). A listener has to check only once for any number of them.
  let slotTicks = Broadcast<Void>(keepingNewest: 1)
  let statusTicks = Broadcast<Void>(keepingNewest: 1)
  /// Changes that `takeChanges` hasn't returned yet.
  private let untaken = Mutex<[GameChange]>([])
  private let incidentLog = Mutex<[Incident]>([])
  private let environment: GameEnvironment

  init(environment: GameEnvironment) { self.environment = environment }

  var now: Date { Date(timeIntervalSince1970: Double(environment.nowMilliseconds()) / 1000) }

  /// The incidents, oldest first.
  var incidents: [Incident] { incidentLog.withLock { $0 } }

  /// Records an incident, and emits it only the first time: a damaged save is found at each load.
  func report(_ incident: Incident) {
    if incident.kind == .failedCommit {
      ExitWork.report("\(incident.slot.map { "the slot \"\($0)\": " } ?? "")\(incident.message)")
    }
    let isNew = incidentLog.withLock { log in
      let known = log.contains {
        $0.kind == incident.kind && $0.version == incident.version && $0.slot == incident.slot
          && $0.message == incident.message
      }
      guard !known else { return false }
      log.append(incident)
      if log.count > Self.maximumIncidents { log.removeFirst() }
      return true
    }
    if isNew { emit(.incident(incident)) }
  }

  /// Reports an incident of the store or of the records.
  func report(_ incident: StoreIncident) {
    let kind: Incident.Kind =
      switch incident.kind {
      case .recovered: .recovered
      case .rebuilt: .rebuilt
      case .reopened: .diskFailed
      case .unnoted, .setAside: .unreadable
      case .removed: .removed
      case .notBackedUp: .backupFailed
      }
    report(Incident(kind: kind, message: incident.message, date: now))
  }

  /// Reports data that doesn't verify under the seal, found when the store is opened or later.
  func report(_ finding: SealFinding) {
    report(
      Incident(
        kind: finding.isDamage ? (finding.version == nil ? .unreadable : .damagedVersion) : .tampered,
        slot: finding.slot,
        version: finding.version, usedInstead: finding.usedInstead, message: finding.message, date: now))
  }

  /// Sends a change to all listeners, and keeps it for `takeChanges`.
  func emit(_ change: GameChange) {
    untaken.withLock { untaken in
      untaken.append(change)
      if untaken.count > Self.maximumUntaken { untaken.removeFirst() }
    }
    changes.send(change)
  }

  /// Returns the changes since the last call, oldest first.
  func takeChanges() -> [GameChange] {
    untaken.withLock { untaken in
      defer { untaken = [] }
      return untaken
    }
  }

  /// Reports that the contents of slots, and with them their status, may have changed.
  func slotsDidChange() {
    slotTicks.send(())
    statusTicks.send(())
  }

  func statusDidChange() { statusTicks.send(()) }

  /// Ends all streams, because the data is closed.
  func finish() {
    changes.finish()
    slotTicks.finish()
    statusTicks.finish()
  }
}
