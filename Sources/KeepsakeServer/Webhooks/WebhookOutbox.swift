#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Synchronization

/// Writes events into the transaction of the deed: both are committed, or neither. A storage without one writes none.
///
/// Each endpoint that takes an event has a row of it, so that one that is down holds up no other.
final class WebhookOutbox: Sendable {
  let endpoints: [WebhookEndpoint]
  private let kinds: Set<WebhookKind>
  private let wakers = Mutex<[@Sendable () -> Void]>([])
  private let count = Mutex(0)
  /// How many events were written, with those that were undone.
  var added: Int { count.withLock { $0 } }

  init(_ endpoints: [WebhookEndpoint]) {
    self.endpoints = endpoints
    kinds = endpoints.reduce(into: []) { $0.formUnion($1.kinds) }
  }

  /// Whether any endpoint takes events of a kind.
  func wants(_ kind: WebhookKind) -> Bool { kinds.contains(kind) }

  /// Returns the endpoints that take an event, each with the id that the event has there, and counts them as written.
  func copies(of event: WebhookEvent) -> [(endpoint: String, id: OperationID)] {
    let takers = endpoints.filter { $0.kinds.contains(event.kind) }
    count.withLock { $0 += takers.count }
    // Random, because a restored database gives the same numbers to other events.
    var source = SystemRandomNumberGenerator()
    return takers.map { ($0.name, OperationID(using: &source)) }
  }

  /// Writes an event for each endpoint that takes it.
  ///
  /// - Parameter lane: Whose order it keeps: the container's `deletedMark`.
  func add(_ event: WebhookEvent, to lane: Data, player: Data?, now: Int64, in db: Database) throws {
    for (endpoint, id) in copies(of: event) {
      try db.cachedStatement(
        sql: """
          INSERT INTO webhookEvent (endpoint, lane, key, player, kind, created, queued, data)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?)
          """
      ).execute(arguments: [endpoint, lane, id.bytes, player, event.kind.rawValue, now, now, event.data])
    }
  }

  /// Adds that a device is new, if it is; before its row is written.
  func addDevice(_ identity: DeviceIdentity, now: Int64, in db: Database) throws {
    guard wants(.deviceAdded) else { return }
    let known = try Row.fetchOne(
      db.cachedStatement(sql: "SELECT 1 FROM device WHERE container = ? AND id = ?"),
      arguments: [identity.container.bytes, identity.device.bytes])
    guard known == nil, try !SQLiteCloudStorage.isRetired(identity.device, of: identity.container, in: db) else {
      return
    }
    try add(
      .deviceAdded(identity.device), to: identity.container.deletedMark, player: identity.player.bytes, now: now,
      in: db)
  }

  /// Calls `waker` whenever events were committed.
  func onEvents(_ waker: @escaping @Sendable () -> Void) { wakers.withLock { $0.append(waker) } }

  /// Reports that events were committed, or may have been.
  func wake() { for waker in wakers.withLock({ $0 }) { waker() } }
}

extension SQLiteContainer {
  /// Writes what backends are told of a commit; before the requesting device is recorded, or a device removed.
  ///
  /// - Parameter arrived: Versions that weren't here.
  mutating func report(_ writes: WriteSet, _ events: WebhookEvents, arrived: [VersionID]) throws {
    guard let outbox else { return }
    if outbox.wants(.conflictOpen) { try noteConflicts(writes) }
    var own: [WebhookEvent] = []
    if let added = events.added, let device = writes.device,
      try row("SELECT 1 FROM device WHERE container = ? AND id = ?", [id, device.id.bytes]) == nil
    {
      own.append(added)
    }
    if let setBack = events.setBack { own.append(setBack) }
    let seqs = writes.versions.mapValues(\.version.seq)
    own += arrived.sorted { seqs[$0] ?? 0 < seqs[$1] ?? 0 }.compactMap { events.saves[$0] }
    own += events.purchases
    if let removed = events.removed { own.append(removed) }
    guard !own.isEmpty else { return }
    let player = try writes.device?.visit?.player.bytes ?? playerBytes()
    for event in own { try outbox.add(event, to: deletedMark, player: player, now: now, in: db) }
    hasEvents = true
  }

  /// Notes which of the slots that have changed show several versions, since when.
  private func noteConflicts(_ writes: WriteSet) throws {
    for slot in Set(writes.versions.values.map { bytes($0.version.record.slot) }) {
      let heads = try row("SELECT count(*) FROM head WHERE container = ? AND slot = ?", [number, slot])
      if try heads?.decode(Int.self, atIndex: 0) ?? 0 > 1 {
        try run("INSERT OR IGNORE INTO webhookConflict (container, slot, since) VALUES (?, ?, ?)", [number, slot, now])
      } else {
        try run("DELETE FROM webhookConflict WHERE container = ? AND slot = ?", [number, slot])
      }
    }
  }

  /// The id of the container's player; nil if no device, recovery code or identity is left.
  func playerBytes() throws -> Data? {
    try row(
      """
      SELECT player FROM device WHERE container = ?1
      UNION ALL SELECT player FROM recovery WHERE container = ?1
      UNION ALL SELECT player FROM identity WHERE container = ?1
      LIMIT 1
      """, [id]
    )?.decode(atIndex: 0)
  }
}
#endif
