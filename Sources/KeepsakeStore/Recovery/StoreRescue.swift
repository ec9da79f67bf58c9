package import Foundation
import GRDB
import KeepsakePlatform

/// Copies open databases whose files were removed into a new folder, through the connections that are still open.
package enum StoreRescue {
  /// Thrown if something is at the destination, which is unchanged.
  package struct Occupied: Error {}

  /// A database, read through the connection that writes: a further connection would be opened by the path.
  private final class OpenSource<Base: BackupSource>: BackupSource {
    let base: Base
    let pool: DatabasePool

    init(_ base: Base, _ pool: DatabasePool) { (self.base, self.pool) = (base, pool) }

    func report(_ incident: StoreIncident) { base.report(incident) }

    /// Not asked: the files are most likely gone.
    func requirePresence() {}

    func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
      try pool.writeWithoutTransaction(body)
    }

    func problem(in copy: Database) throws -> String? { try base.problem(in: copy) }

    var suspected: Data? { base.suspected }
  }

  /// Copies a database. If something is wrong with it, or with the copy, the copy is marked, so that its first opening
  /// checks all of it and repairs it: a damaged copy is better than none.
  private static func copy(_ source: OpenSource<some BackupSource>, to files: some BackupFiles) throws {
    var reason = source.suspected
    try DatabaseCopy.make(of: source, at: files.database) { copy in
      let problem: String?
      do {
        problem = try source.problem(in: copy)
      } catch let error as DatabaseError where error.isBrokenFile {
        problem = error.message ?? "damaged"
      } catch let error as StoreError where error.code == .damaged {
        // A row has its checksum and can't be decoded.
        problem = error.message
      }
      reason = reason ?? problem.map { Data("\($0)\n".utf8) }
    }
    if let reason { try AtomicFile.write(reason, to: files.suspicion) }
  }

  /// Writes everything that was committed to a new folder at `url`: all of it or nothing. The folder appears with its
  /// name once it is complete and durable, and never over anything but an empty folder.
  ///
  /// Writers wait until it is done.
  ///
  /// - Parameters:
  ///   - store: The store; it may also be intact.
  ///   - records: The game's own tables, if they are open.
  ///   - complete: Adds what else belongs to the folder, before it gets its name.
  /// - Throws: `Occupied`; `StoreError`: `damaged` or `io` if what is open can't be read, `diskFull`, `notPermitted`.
  package static func rescue(
    _ store: Store, _ records: RecordsDatabase?, to url: URL, complete: (_ folder: URL) throws -> Void = { _ in }
  ) throws {
    let folder = URL(fileURLWithPath: url.path, isDirectory: true)
    guard try isFree(folder) else { throw Occupied() }
    let parent = folder.deletingLastPathComponent()
    try StoreFolder.create(parent)
    let partial = parent.appendingPathComponent(".keepsake-\(UUID().uuidString).partial", isDirectory: true)
    do {
      try StoreFolder.create(partial)
      let files = StoreFiles(folder: partial)
      try StoreError.translating("copying the open data") {
        try copy(OpenSource(store.database, store.database.pool), to: files)
        if let records { try copy(OpenSource(records, records.pool), to: RecordsFiles(folder: partial)) }
      }
      try complete(partial)
      try AtomicFile.syncFolder(partial.path)
      // Replaces an empty folder, and fails for anything else.
      guard SystemCall.renameFile(partial.path, folder.path) == 0 else {
        let number = errno
        if [ENOTEMPTY, EEXIST, ENOTDIR].contains(number) { throw Occupied() }
        throw StoreError(errorNumber: number, doing: "naming the new folder \(folder.path)")
      }
    } catch {
      // The reason to give up is the error that is thrown.
      try? FileManager.default.removeItem(at: partial)
      throw error
    }
    try AtomicFile.syncFolder(parent.path)
  }

  /// Returns whether nothing, or an empty folder, is at `folder`.
  private static func isFree(_ folder: URL) throws -> Bool {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty
    } catch CocoaError.fileReadNoSuchFile, CocoaError.fileNoSuchFile {
      return true
    } catch {
      // A file, or a folder that this program may not read: something is there.
      return false
    }
  }
}
