#if Cloud
import KeepsakeReplication
import Synchronization

/// The storage of one act of the studio: what it commits, it commits together with its row of the audit log.
final class AuditedStorage: DecidingStorage {
  let base: any AdminStorage
  private let state: Mutex<(entry: AuditEntry, isWritten: Bool)>

  init(_ base: any AdminStorage, _ entry: AuditEntry) {
    self.base = base
    state = Mutex((entry, false))
  }

  var clock: @Sendable () -> Int64 { base.clock }

  /// What will be written. Change it before the act is committed.
  var entry: AuditEntry {
    get { state.withLock { $0.entry } }
    set { state.withLock { $0.entry = newValue } }
  }

  func load(_ reads: ReadSet, of container: ContainerID) async throws -> Snapshot {
    try await base.load(reads, of: container)
  }

  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?
  ) async throws -> Bool {
    guard try await base.commit(writes, of: container, ifAt: revision, leaving: leaving, auditing: entry) else {
      return false
    }
    written()
    return true
  }

  /// Notes that the row was committed.
  func written() { state.withLock { $0.isWritten = true } }

  /// Writes the row of an act that has committed nothing: it only looked, had been done before, or was refused.
  func finish(_ result: String = AuditEntry.done) async throws {
    var (entry, isWritten) = state.withLock { $0 }
    // An act that failed after it was committed was done.
    if isWritten { return }
    entry.result = result
    try await base.append(entry)
    written()
  }
}
#endif
