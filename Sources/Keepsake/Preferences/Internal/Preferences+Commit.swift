import Dispatch
import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// How what was set comes into the store: together, off the caller's thread, and as it is in memory at that time.
extension Preferences {
  /// How long what was set first waits for more. The rest of a frame of 16 ms is for the commit itself.
  static let commitDelay = DispatchTimeInterval.milliseconds(12)
  /// What goes into one group for the cloud at most; one commit may consist of several.
  private static let groupBytes = ExchangeRules.maximumCommitBytes / 2

  /// Sees to a commit within a frame. Holds on to the preferences until then: nothing that was set is lost with them.
  func scheduleCommit() {
    queue.asyncAfter(deadline: .now() + Self.commitDelay) {
      self.table.withLock { $0.isScheduled = false }
      self.commitSoon()
    }
  }

  /// Hands what was set to the store without waiting for the disk, and for room in the queue no longer than `limit`; a failure is told by an
  /// incident.
  func commitSoon(within limit: Duration? = nil) {
    guard table.withLock({ $0.hasUncommitted }) else { return }
    do {
      try submit(within: limit)
    } catch {
      core.events.report(failure(error))
    }
  }

  /// Hands what was set to the store; nil if there is nothing to wait for.
  func commit(within limit: Duration? = nil) throws -> PendingCommit<Void>? {
    guard table.withLock({ $0.isUnsettled }) else { return nil }
    return try submit(within: limit)
  }

  /// Sets nothing more, and hands over what was set. Gives what to wait for, if there is anything. Throws `timedOut`, not closed, if the
  /// disk is so far behind that it isn't taken in time; another failure is told by an incident.
  func close(within limit: Duration) throws -> PendingCommit<Void>? {
    table.withLock { $0.isClosed = true }
    do {
      return try commit(within: limit)
    } catch let error as StoreError where error.code == .timedOut {
      reopen()
      throw error
    } catch {
      core.events.report(failure(error))
      return nil
    }
  }

  /// The game's data could not be closed yet.
  func reopen() { table.withLock { $0.isClosed = false } }

  @discardableResult
  private func submit(within limit: Duration? = nil) throws -> PendingCommit<Void> {
    let batch = PreferenceBatch()
    let finished: @Sendable (Result<Void, any Error>) -> Void = { self.finish(batch, $0) }
    return try core.store.submit(finished: finished, within: limit) { transaction, _ in
      // Only now: whatever was set while commits before it were written goes along.
      batch.taken = self.table.withLock { $0.take() }
      try self.write(batch, to: &transaction)
    }
  }

  private func write(_ batch: PreferenceBatch, to transaction: inout StoreTransaction) throws {
    var drafts: [CellDraft] = []
    var bytes = 0
    for change in batch.taken ?? [] {
      let name = change.slot.name
      let archive: Data?
      do {
        archive = try change.content.archive()
      } catch {
        batch.refuse(change, "it can't be encoded: \(error)")
        continue
      }
      if change.slot.isSynced {
        let key = CellKey(collection: Self.collection, key: name)
        let cell = try transaction.cell(key)
        if let why = objection(to: archive, as: key, over: cell) {
          batch.refuse(change, why)
          continue
        }
        batch.keep(change, archive)
        // Nothing was ever there.
        if archive == nil, cell == nil { continue }
        let size = archive?.count ?? 0
        if bytes + size > Self.groupBytes || drafts.count >= DeviceCommit.maximumGroupCells {
          try apply(drafts, to: &transaction)
          (drafts, bytes) = ([], 0)
        }
        drafts.append(CellDraft(key, .set(.data(archive ?? Data()))))
        bytes += size
      } else {
        batch.keep(change, archive)
        guard !isStored(archive, in: change) else { continue }
        if let archive {
          try transaction.setPreference(archive, named: name)
        } else {
          try transaction.removePreference(named: name)
        }
      }
    }
    try apply(drafts, to: &transaction)
    batch.hasCells = (batch.taken ?? []).contains { $0.slot.isSynced }
  }

  /// Why a synced value can't be kept; nil if it can. A group with one such value would fail as a whole, and each one after it.
  private func objection(to archive: Data?, as key: CellKey, over cell: CellState?) -> String? {
    if let cell, !cell.isLatest { return "another program uses its name by another rule" }
    // Any stamp does: it takes as much as the one that the commit gives it, and none is refused.
    let stamp = Stamp(caughtUp: false, milliseconds: 0, writer: core.store.writer)
    let update = CellUpdate(key: key, state: CellState(value: .latest(stamp, .data(archive ?? Data()))))
    return ExchangeRules.objection(to: update)?.message
  }

  private func apply(_ drafts: [CellDraft], to transaction: inout StoreTransaction) throws {
    guard !drafts.isEmpty else { return }
    var random = SystemRandomNumberGenerator()
    try DeviceCommit.apply(
      CommitDraft(cells: drafts), now: core.environment.nowMilliseconds(), writer: core.store.writer, in: &transaction, using: &random)
  }

  private func isStored(_ archive: Data?, in change: PreferenceTable.Change) -> Bool {
    guard let stored = change.stored else { return false }
    do {
      return try stored.archive() == archive
    } catch {
      return false  // What is there can't be read, and is replaced.
    }
  }

  /// On the store's thread, before whoever waits goes on.
  private func finish(_ batch: PreferenceBatch, _ result: Result<Void, any Error>) {
    guard let taken = batch.taken else {
      if case .failure(let error) = result { core.events.report(failure(error)) }
      return
    }
    guard case .failure(let error) = result else {
      table.withLock { $0.committed(batch.kept) }
      for (name, why) in batch.refused {
        core.events.report(
          Incident(kind: .failedCommit, message: "the preference \"\(name.prefix(80))\" was not kept: \(why)", date: core.now))
      }
      guard batch.hasCells else { return }
      core.cloud.didCommit()
      // What came from another device meanwhile may be newer. Not on this thread, where nobody may wait for a commit.
      let keys = taken.filter(\.slot.isSynced).map { CellKey(collection: Self.collection, key: $0.slot.name) }
      notificationQueue.async { self.lookAgain(at: keys) }
      return
    }
    table.withLock { $0.failed(taken) }
    core.events.report(failure(error))
  }

  private func lookAgain(at keys: [CellKey]) {
    guard !table.withLock({ $0.isClosed }) else { return }
    do {
      try received(keys)
    } catch {
      core.events.report(Incident(kind: .unreadable, message: "synced preferences can't be read: \(error)", date: core.now))
    }
  }

  private func failure(_ error: any Error) -> Incident {
    Incident(
      kind: .failedCommit, message: "preferences could not be kept, and are tried again with the next that are set: \(error)",
      date: core.now)
  }
}

/// One commit's values, from when they are taken until it is known what became of them. Unchecked: only the store's thread has it.
private final class PreferenceBatch: @unchecked Sendable {
  /// Nil before.
  var taken: [PreferenceTable.Change]?
  var kept: [(change: PreferenceTable.Change, stored: PreferenceContent?)] = []
  /// Names whose values can't be kept, and why.
  var refused: [(name: String, why: String)] = []
  var hasCells = false

  func keep(_ change: PreferenceTable.Change, _ archive: Data?) { kept.append((change, archive.map { .bytes($0) } ?? .absent)) }

  func refuse(_ change: PreferenceTable.Change, _ why: String) {
    kept.append((change, nil))
    refused.append((change.slot.name, why))
  }
}

extension CellState {
  fileprivate var isLatest: Bool {
    if case .latest = value { return true }
    return false
  }
}
