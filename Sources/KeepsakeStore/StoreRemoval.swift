package import Foundation
import KeepsakePlatform

/// Removes a whole store: its folder with everything in it.
package enum StoreRemoval {
  /// The prefix of a folder's name while it is removed: a crash during the removal must not leave half a store under
  /// its own name.
  package static let prefix = ".removed-"

  /// Returns whether a folder contains a store, or the remains of one.
  package static func isStore(_ folder: URL) -> Bool {
    let files = StoreFiles(folder: folder)
    return StoreFiles.exists(files.database) || StoreFiles.exists(files.intent) || !files.presentBackups.isEmpty
  }

  /// Removes the store in the folder at `url`, its backups and whatever else is in the folder, durably.
  ///
  /// - Parameter beforeDeleting: Called with each folder under its temporary name before its files are deleted, again
  ///   by the next removal if the program ends or it throws: to remove what belongs to the store and is elsewhere.
  /// - Throws: `StoreError` with nothing changed: `missing` if there is none, `inUse` if it is open. If it fails later,
  ///   the folder already has its temporary name; the next removal beside it does the rest.
  package static func remove(_ url: URL, beforeDeleting: (_ removed: URL) throws -> Void = { _ in }) throws {
    guard isStore(url) else { throw StoreError(.missing, "the folder \(url.path) contains no store") }
    let lock = try StoreLock(at: url.appendingPathComponent("lock"))
    defer { lock.release() }
    let parent = url.deletingLastPathComponent()
    let removed = parent.appendingPathComponent(prefix + UUID().uuidString, isDirectory: true)
    // Windows renames no folder in which a file is open. That leaves a moment in which another program may take the
    // lock, and then the renaming fails.
    if HostSystem.current == .windows { lock.release() }
    guard SystemCall.renameFile(url.path, removed.path) == 0 else {
      throw StoreError(errorNumber: errno, doing: "moving \(url.path)")
    }
    try AtomicFile.syncFolder(parent.path)
    try sweep(parent, beforeDeleting)
  }

  /// Removes what this and interrupted removals left in `folder`.
  private static func sweep(_ folder: URL, _ beforeDeleting: (URL) throws -> Void) throws {
    do {
      var failure: (any Error)?
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where name.hasPrefix(prefix) {
        let removed = folder.appendingPathComponent(name, isDirectory: true)
        do {
          try beforeDeleting(removed)
        } catch {
          // The others don't have to wait for it.
          failure = failure ?? error
          continue
        }
        try FileManager.default.removeItem(at: removed)
      }
      if let failure { throw failure }
    } catch {
      throw StoreError(.io, "data removed from \(folder.path) still takes up space: it can't be deleted", cause: error)
    }
  }
}
