package import Foundation

/// Creates the folders that a store and its files are in.
package enum StoreFolder {
  /// Creates a folder, and the folders above it that are missing, and waits until the disk has the folder's name. Does
  /// nothing if it exists.
  ///
  /// - Parameter isPrivate: Whether only this user may read what is created.
  /// - Throws: `StoreError`: `misuse` if there is a file instead; otherwise by the system's error, such as `diskFull`
  ///   or `notPermitted`.
  package static func create(_ url: URL, isPrivate: Bool = false) throws {
    var isFolder: ObjCBool = false
    if FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) {
      guard isFolder.boolValue else { throw StoreError(.misuse, "\(url.path) is a file, but must be a folder") }
      return
    }
    do {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: isPrivate ? [.posixPermissions: 0o700] : nil)
    } catch {
      let doing = "creating the folder \(url.path)"
      switch (error as NSError).userInfo[NSUnderlyingErrorKey] as? POSIXError {
      case let cause? where cause.code == .ENOTDIR || cause.code == .EEXIST:
        throw StoreError(.misuse, "\(doing) failed: a part of its path is a file", cause: error)
      case let cause? where cause.code == .ENOENT:
        // The folders above it are created too, so the file system allows none.
        throw StoreError(.notPermitted, "\(doing) failed: no folder can be created there", cause: error)
      case let cause?: throw StoreError(errorNumber: cause.code.rawValue, doing: doing)
      case nil: throw StoreError(.io, "\(doing) failed", cause: error)
      }
    }
    try AtomicFile.syncFolder(url.deletingLastPathComponent().path)
  }
}
