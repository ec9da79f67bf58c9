#if Cloud
package import Foundation
import GRDB
import KeepsakeReplication

/// Restores a cloud's backup into an empty folder.
///
/// While a restore is in progress, the folder has a folder `restoring`, with which no server starts. When all files in
/// it are on the disk and checked, they are moved out, the database last; the removal of the empty folder completes the
/// restore. A restore that was killed is begun anew by the next one: what the folder has then is the first one's.
package enum BackupRestore {
  /// What a new file system has in its root.
  private static let ignored: Set<String> = [DataFolder.lockName, "lost+found"]

  /// Verifies a backup, and makes a data folder of it.
  ///
  /// The server that is started on the folder begins a new epoch: devices notice, and send what the backup lacks. Costs
  /// two passes over the file.
  ///
  /// - Parameters:
  ///   - file: The backup.
  ///   - data: The folder, which must be empty or not exist. Only its owner may read what is put there.
  ///   - progress: Receives how far it has come.
  /// - Returns: What was restored.
  /// - Throws: A `BackupError`, before anything is written if the backup isn't whole; a `ServerError` if the folder
  ///   can't be written, is used by a server, or if the database is of a newer version.
  package static func restore(
    _ file: URL, to data: URL, progress: BackupProgress.Receiver = { _ in }
  ) throws -> BackupSummary {
    let manager = FileManager.default
    try requireEmpty(data)
    let handle = try CloudBackup.open(file)
    let size: Int64
    do {
      size = Int64(try handle.seekToEnd())
    } catch {
      throw BackupError(.inputOutput, "The backup \(file.path) can't be read.", cause: error)
    }
    do {
      let verified = try CloudBackup.verify(handle, file.path, size, nil, progress)
      let existed = manager.fileExists(atPath: data.path)
      let lock = try DataFolder.lock(data)
      defer { DataFolder.unlock(lock) }
      // Another restore may have been faster.
      try requireEmpty(data)
      do {
        try clear(data)
        return try extract(handle, file, to: data, verified, progress)
      } catch {
        // The first failure is the one to report. What can't be removed now is what a restore that was killed leaves.
        try? undo(data, existed: existed)
        throw error
      }
    } catch is CancellationError {
      throw BackupError(.stopped, "The restore was stopped.")
    }
  }

  private static func undo(_ data: URL, existed: Bool) throws {
    let manager = FileManager.default
    try clear(data)
    try manager.removeItem(at: data.appendingPathComponent(DataFolder.restoringName))
    try manager.removeItem(at: data.appendingPathComponent(DataFolder.lockName))
    if !existed { try manager.removeItem(at: data) }
  }

  /// Throws unless a folder is empty, or has only what an interrupted restore left.
  private static func requireEmpty(_ data: URL) throws {
    guard FileManager.default.fileExists(atPath: data.path) else { return }
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: data.path)
    } catch {
      throw BackupError(.inputOutput, "The folder \(data.path) can't be read.", cause: error)
    }
    let isInterrupted = names.contains(DataFolder.restoringName)
    let foreign = names.filter { name in
      !ignored.contains(name)
        && !(isInterrupted && (DataFolder.transientNames.contains(name) || BackupLayout.allows(name)))
    }
    guard foreign.isEmpty else {
      throw BackupError(
        .notEmpty, "A backup is restored into an empty folder only, and \(data.path) has \(foreign.sorted()[0]).")
    }
  }

  /// Removes everything that an interrupted restore left, and begins one.
  private static func clear(_ data: URL) throws {
    let manager = FileManager.default
    do {
      // First of all, so that whatever is interrupted can be seen.
      let restoring = data.appendingPathComponent(DataFolder.restoringName)
      try manager.createDirectory(
        at: restoring, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      try PrivateFile.sync(data, isFolder: true)
      for name in try manager.contentsOfDirectory(atPath: data.path)
      where !ignored.contains(name) && name != DataFolder.restoringName {
        try manager.removeItem(at: data.appendingPathComponent(name))
      }
      for name in try manager.contentsOfDirectory(atPath: restoring.path) {
        try manager.removeItem(at: restoring.appendingPathComponent(name))
      }
    } catch let error as ServerError {
      throw error
    } catch {
      throw BackupError(.inputOutput, "The folder \(data.path) can't be written.", cause: error)
    }
  }

  private static func extract(
    _ handle: FileHandle, _ file: URL, to data: URL, _ verified: BackupSummary, _ progress: BackupProgress.Receiver
  ) throws -> BackupSummary {
    let manager = FileManager.default
    let restoring = data.appendingPathComponent(DataFolder.restoringName, isDirectory: true)
    let contents = ContentFiles(
      folder: restoring.appendingPathComponent(DataFolder.contentsName, isDirectory: true))
    do {
      try manager.createDirectory(
        at: contents.folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    } catch {
      throw BackupError(.inputOutput, "The folder \(contents.folder.path) can't be created.", cause: error)
    }
    var summary = try withoutActuallyEscaping(progress) { progress in
      let reader = BackupReader(handle, path: file.path, sink: FolderSink(folder: restoring)) {
        try progress(BackupProgress(step: .restoring, doneBytes: $0, totalBytes: verified.fileBytes))
      }
      try reader.read()
      return reader.summary
    }
    guard summary == verified else {
      throw BackupError(.damaged, "The backup \(file.path) has changed while it was restored.")
    }
    let database = restoring.appendingPathComponent(DataFolder.databaseName)
    do {
      let (generation, lost) = try BackedUpDatabase.verify(database, contents: contents)
      summary.lostContents = lost
      try PrivateFile.write(
        Data("\(generation)\n".utf8), to: restoring.appendingPathComponent(DataFolder.witnessName))
    } catch let error as DatabaseError {
      throw Schema.failure(error, opening: database)
    }
    for folder in [contents.folder, restoring] { try PrivateFile.sync(folder, isFolder: true) }
    // The database last: without it, a folder is no cloud's.
    let names = try names(in: restoring).filter { $0 != DataFolder.databaseName }.sorted()
    for name in names + [DataFolder.databaseName] {
      try PrivateFile.move(restoring.appendingPathComponent(name), to: data.appendingPathComponent(name))
    }
    do {
      try manager.removeItem(at: restoring)
    } catch {
      throw BackupError(.inputOutput, "The folder \(restoring.path) can't be removed.", cause: error)
    }
    try PrivateFile.sync(data, isFolder: true)
    return summary
  }

  private static func names(in folder: URL) throws -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder.path)
    } catch {
      throw BackupError(.inputOutput, "The folder \(folder.path) can't be read.", cause: error)
    }
  }
}

/// Writes the files of a backup into a folder; each is on the disk when it ends.
private struct FolderSink: BackupSink {
  let folder: URL
  private var file: (handle: FileHandle, path: String)?

  init(folder: URL) { self.folder = folder }

  mutating func begin(_ path: String, size: Int64) throws {
    let url = folder.appendingPathComponent(path)
    file = (try PrivateFile.createHandle(url), url.path)
  }

  func write(_ piece: Data) throws {
    guard let file else { return }
    do {
      try file.handle.write(contentsOf: piece)
    } catch {
      throw BackupError(.inputOutput, "\(file.path) can't be written.", cause: error)
    }
  }

  mutating func end() throws {
    guard let file else { return }
    do {
      try file.handle.synchronize()
      try file.handle.close()
    } catch {
      throw BackupError(.inputOutput, "\(file.path) can't be written to the disk.", cause: error)
    }
    self.file = nil
  }
}
#endif
