import Dispatch
import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// Commits what was set: together, off the caller's thread, and with the values that are in memory at that time.
extension Preferences {
  /// How long the first value waits for others. The rest of a 16 ms frame is for the commit itself.
  static let commitDelay = DispatchTimeInterval.milliseconds(12)
  /// The maximum size of one group for the cloud; one commit may consist of several.
  private static let groupBytes = ExchangeRules.maximumCommitBytes / 2

  /// Schedules a commit within a frame. Keeps the preferences alive until then, so that nothing that was set is lost.
  func scheduleCommit() {
    let number = ExitWork.begin { self.finishBeforeExit(until: $0) }
    queue.asyncAfter(deadline: .now() + Self.commitDelay) {
      defer { ExitWork.end(number) }
      self.table.withLock { $0.isScheduled = false }
      self.commitSoon()
    }
  }

  /// Commits what was set, and waits for that. Returns false if it isn't decided at the deadline.
  private func finishBeforeExit(until deadline: ContinuousClock.Instant) -> Bool {
    do {
      try flush(within: max(deadline - .now, .zero))
    } catch let error as StoreError where error.code == .timedOut {
      return false
    } catch {
      core.events.report(failure(error))
    }
    return true
  }

  /// Tries once more, when the program ends, to save what could not be saved.
  private func retryBeforeExit() {
    guard !ExitWork.isEnding, table.withLock({ $0.hasUncommitted && $0.exitWork == nil }) else { return }
    // Doesn't keep data open that the game has released.
    let number = ExitWork.begin(isInFlight: false) { [weak self] in self?.finishBeforeExit(until: $0) ?? true }
    let isNeeded = table.withLock { table in
      guard table.exitWork == nil else { return false }
      table.exitWork = number
      return true
    }
    if !isNeeded { ExitWork.end(number) }
  }

  /// Submits what was set to the store. Doesn't wait for the disk, and waits for room in the queue no longer than
  /// `limit`. An incident reports a failure.
  func commitSoon(within limit: Duration? = nil) {
    guard table.withLock({ $0.hasUncommitted }) else { return }
    do {
      try submit(within: limit)
    } catch {
      core.events.report(failure(error))
      retryBeforeExit()
    }
  }

  /// Submits what was set to the store; nil if there is nothing to wait for.
  func commit(within limit: Duration? = nil) throws -> PendingCommit<Void>? {
    guard table.withLock({ $0.isUnsettled }) else { return nil }
    return try submit(within: limit)
  }

  /// Stops accepting values and submits what was set. Returns the commit to wait for, if there is one. Throws
  /// `timedOut`, and stays open, if the disk is so far behind that the commit isn't accepted in time; an incident
  /// reports any other failure.
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

  /// Accepts values again, because the game's data could not be closed yet.
  func reopen() { table.withLock { $0.isClosed = false } }

  @discardableResult
  private func submit(within limit: Duration? = nil) throws -> PendingCommit<Void> {
    let batch = PreferenceBatch()
    let finished: @Sendable (Result<Void, any Error>) -> Void = { self.finish(batch, $0) }
    return try core.store.submit(finished: finished, within: limit) { transaction, _ in
      // Taken only now, so that the commit includes what was set while earlier commits were written.
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
        // There was never a value, so nothing has to be removed.
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

  /// Returns why a synced value can't be stored; nil if it can. With one such value, its whole group would fail, and so
  /// would each later one.
  private func objection(to archive: Data?, as key: CellKey, over cell: CellState?) -> String? {
    if let cell, !cell.isLatest { return "another program uses its name with another rule" }
    // Any stamp will do: it has the same size as the one that the commit assigns, and no stamp is refused.
    let stamp = Stamp(caughtUp: false, milliseconds: 0, writer: core.store.writer)
    let update = CellUpdate(key: key, state: CellState(value: .latest(stamp, .data(archive ?? Data()))))
    return ExchangeRules.objection(to: update)?.message
  }

  private func apply(_ drafts: [CellDraft], to transaction: inout StoreTransaction) throws {
    guard !drafts.isEmpty else { return }
    var random = SystemRandomNumberGenerator()
    try DeviceCommit.apply(
      CommitDraft(cells: drafts), now: core.environment.nowMilliseconds(), writer: core.store.writer, in: &transaction,
      using: &random)
  }

  private func isStored(_ archive: Data?, in change: PreferenceTable.Change) -> Bool {
    guard let stored = change.stored else { return false }
    do {
      return try stored.archive() == archive
    } catch {
      return false  // What is there can't be read, and is replaced.
    }
  }

  /// Runs on the store's thread, before those who wait for the commit continue.
  private func finish(_ batch: PreferenceBatch, _ result: Result<Void, any Error>) {
    guard let taken = batch.taken else {
      if case .failure(let error) = result {
        core.events.report(failure(error))
        retryBeforeExit()
      }
      return
    }
    guard case .failure(let error) = result else {
      let exitWork = table.withLock { table in
        table.committed(batch.kept)
        return table.hasUncommitted ? nil : table.exitWork.take()
      }
      if let exitWork { ExitWork.end(exitWork) }
      for (name, why) in batch.refused {
        core.events.report(
          Incident(
            kind: .failedCommit, message: "the preference \"\(name.prefix(80))\" was not saved: \(why)", date: core.now)
        )
      }
      guard batch.hasCells else { return }
      core.cloud.didCommit()
      // A value that arrived from another device in the meantime may be newer. Not done on this thread, where nobody
      // may wait for a commit.
      let keys = taken.filter(\.slot.isSynced).map { CellKey(collection: Self.collection, key: $0.slot.name) }
      notificationQueue.async { self.lookAgain(at: keys) }
      return
    }
    table.withLock { $0.failed(taken) }
    core.events.report(failure(error))
    retryBeforeExit()
  }

  private func lookAgain(at keys: [CellKey]) {
    guard !table.withLock({ $0.isClosed }) else { return }
    do {
      try received(keys)
    } catch {
      core.events.report(
        Incident(kind: .unreadable, message: "synced preferences can't be read: \(error)", date: core.now))
    }
  }

  private func failure(_ error: any Error) -> Incident {
    let message: String
    if let error = error as? GameDataError, error.code == .closed {
      message = "preferences could not be saved before the game's data was closed"
    } else if ExitWork.isEnding || table.withLock({ $0.isClosed }) {
      // None are set any more.
      message = "preferences could not be saved: \(error)"
    } else {
      message = "preferences could not be saved, and are tried again when the next ones are set: \(error)"
    }
    return Incident(kind: .failedCommit, message: message, date: core.now)
  }
}

/// The values of one commit, from when they are taken until their outcome is known. Unchecked: only the store's thread
/// uses it.
private final class PreferenceBatch: @unchecked Sendable {
  /// The values that were taken; nil before.
  var taken: [PreferenceTable.Change]?
  var kept: [(change: PreferenceTable.Change, stored: PreferenceContent?)] = []
  /// The names of values that can't be stored, and why.
  var refused: [(name: String, why: String)] = []
  var hasCells = false

  func keep(_ change: PreferenceTable.Change, _ archive: Data?) {
    kept.append((change, archive.map { .bytes($0) } ?? .absent))
  }

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
