import Foundation
import GRDB

// Opening the file of the game's own tables, and letting it go.
extension RecordsDatabase {
  /// Records that nobody uses the tables any more, although they aren't closed. A copy that is being made holds the
  /// folder's lock, and may take longer than anyone waits who opens it again: it is stopped.
  package func willBeReleased() { backup.stop() }

  /// For tests that can't wait for a backup.
  static func open(
    in folder: URL, lock: StoreLock? = nil, objection: Objection = { _ in nil }, backups: BackupSchedule,
    report: @escaping @Sendable (StoreIncident) -> Void
  ) throws -> RecordsDatabase {
    let files = RecordsFiles(folder: folder)
    return try StoreError.translating("opening the records") {
      do {
        let opened = try openOnce(files, lock, objection, backups, report)
        files.reserve.take()
        return opened
      } catch {
        guard StoreError.isFull(error), try files.reserve.giveUp() else { throw error }
        return try openOnce(files, lock, objection, backups, report)
      }
    }
  }

  private static func openOnce(
    _ files: RecordsFiles, _ lock: StoreLock?, _ objection: Objection, _ backups: BackupSchedule,
    _ report: @escaping @Sendable (StoreIncident) -> Void
  ) throws -> RecordsDatabase {
    let checkpointer = WALCheckpointer()
    let presence = FilePresence(files, lock: lock)
    let pool = try RecordsOpening(files).open(checkpointer, presence, objection, report)
    return RecordsDatabase(files, presence, pool: pool, checkpointer: checkpointer, backups, report)
  }
}
