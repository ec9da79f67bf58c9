import Foundation
import KeepsakeStore
import Synchronization

/// Reports what happens to a game's data: incidents, changes that came from elsewhere, and that slots or statuses may be other ones now.
final class GameEvents: Sendable {
  /// The most incidents that are remembered: a game that asks now and then misses none, one that never asks isn't flooded.
  static let maximumIncidents = 100
  /// Changes kept for a game that polls; as many as a stream keeps.
  static let maximumUntaken = 256

  let changes = Broadcast<GameChange>()
  /// What is in the slots may have changed, and how far it has come; each listener has to look only once for any number of these.
  let slotTicks = Broadcast<Void>(keepingNewest: 1)
  let statusTicks = Broadcast<Void>(keepingNewest: 1)
  /// For `takeChanges`.
  private let untaken = Mutex<[GameChange]>([])
  private let incidentLog = Mutex<[Incident]>([])
  private let environment: GameEnvironment

  init(environment: GameEnvironment) { self.environment = environment }

  var now: Date { Date(timeIntervalSince1970: Double(environment.nowMilliseconds()) / 1000) }

  /// Oldest first.
  var incidents: [Incident] { incidentLog.withLock { $0 } }

  /// Remembers an incident, and emits it once: a damaged save is found at each load.
  func report(_ incident: Incident) {
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

  /// What the store, or the records, met by themselves.
  func report(_ incident: StoreIncident) {
    let kind: Incident.Kind =
      switch incident.kind {
      case .recovered: .recovered
      case .rebuilt: .rebuilt
      case .reopened: .diskFailed
      case .unnoted: .unreadable
      }
    report(Incident(kind: kind, message: incident.message, date: now))
  }

  /// What a seal finds that doesn't verify, when the store is opened and later.
  func report(_ finding: SealFinding) {
    report(
      Incident(
        kind: finding.isDamage ? (finding.version == nil ? .unreadable : .damagedVersion) : .tampered, slot: finding.slot,
        version: finding.version, usedInstead: finding.usedInstead, message: finding.message, date: now))
  }

  /// Sends a change to whoever listens, and keeps it for whoever asks.
  func emit(_ change: GameChange) {
    untaken.withLock { untaken in
      untaken.append(change)
      if untaken.count > Self.maximumUntaken { untaken.removeFirst() }
    }
    changes.send(change)
  }

  /// The changes since the last call, oldest first.
  func takeChanges() -> [GameChange] {
    untaken.withLock { untaken in
      defer { untaken = [] }
      return untaken
    }
  }

  /// What is in the slots, and with it their status, may have changed.
  func slotsDidChange() {
    slotTicks.send(())
    statusTicks.send(())
  }

  func statusDidChange() { statusTicks.send(()) }

  /// Ends all streams: the data is closed.
  func finish() {
    changes.finish()
    slotTicks.finish()
    statusTicks.finish()
  }
}
