#if Cloud
import Foundation
import KeepsakePlatform

/// Small files that only their owner may read, written so that a crash leaves the old one or the new one; and the
/// waiting for the disk that larger files need.
enum PrivateFile {
  /// Returns the bytes, or nil if there is no such file.
  static func read(_ url: URL) throws -> Data? {
    guard FileManager.default.fileExists(atPath: url.path) else { return nil }
    do {
      return try Data(contentsOf: url)
    } catch {
      throw ServerError(.inputOutput, "\(url.path) can't be read.", cause: error)
    }
  }

  /// Writes a file beside `url`, waits for the disk, renames it to `url`, and waits again.
  static func write(_ bytes: Data, to url: URL) throws {
    let beside = url.appendingPathExtension("new")
    let descriptor = open(beside.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("\(beside.path) can't be written.") }
    do {
      defer { close(descriptor) }
      try giveToOwner(of: url.deletingLastPathComponent(), descriptor)
      var rest = bytes[...]
      while !rest.isEmpty {
        let written = rest.withUnsafeBytes { SystemCall.write(descriptor, $0.baseAddress, $0.count) }
        if written < 0, errno == EINTR { continue }
        guard written > 0 else { throw failure("\(beside.path) can't be written.") }
        rest = rest.dropFirst(written)
      }
      try flush(descriptor, beside)
    }
    try move(beside, to: url)
  }

  /// Creates an empty file that only its owner may read, unless there is one.
  static func create(_ url: URL) throws {
    let descriptor = open(url.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("\(url.path) can't be written.") }
    close(descriptor)
  }

  /// Takes every right to a file or folder from all but its owner. Does nothing if there is none.
  ///
  /// - Throws: A `ServerError` if others keep a right, because the file belongs to another user.
  static func restrict(_ url: URL, isFolder: Bool = false) throws {
    var status = stat()
    guard stat(url.path, &status) == 0 else {
      if errno == ENOENT { return }
      throw failure("\(url.path) can't be examined.")
    }
    guard status.st_mode & 0o077 != 0 else { return }
    guard chmod(url.path, isFolder ? 0o700 : 0o600) == 0 else {
      throw ServerError(
        .inputOutput,
        """
        \(url.path) can be read by other users, and belongs to another one: change its owner to the user that runs the \
        server.
        """, cause: systemError())
    }
  }

  /// Gives a file to the owner of its folder, if this is the superuser: what an administrator's command writes, the
  /// server's own user has to be able to read.
  private static func giveToOwner(of folder: URL, _ descriptor: Int32) throws {
    guard geteuid() == 0 else { return }
    var status = stat()
    guard stat(folder.path, &status) == 0, status.st_uid != 0 else { return }
    guard fchown(descriptor, status.st_uid, status.st_gid) == 0 else {
      throw failure("A file in \(folder.path) can't be given to the folder's owner.")
    }
  }

  /// Runs `body` while no other process or thread does so for the same file, which it may read, change and write.
  static func locking<Result>(_ url: URL, _ body: () throws -> Result) throws -> Result {
    // Beside it, because writing replaces the file itself.
    let lock = url.appendingPathExtension("lock")
    let descriptor = open(lock.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("\(lock.path) can't be written.") }
    defer { close(descriptor) }
    try giveToOwner(of: url.deletingLastPathComponent(), descriptor)
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw failure("\(lock.path) can't be locked.") }
    }
    return try body()
  }

  /// Renames a file, and waits until the new name is on the disk. The file's bytes must be on the disk already.
  static func move(_ old: URL, to new: URL) throws {
    guard rename(old.path, new.path) == 0 else { throw failure("\(old.path) can't be renamed to \(new.path).") }
    try sync(new.deletingLastPathComponent(), isFolder: true)
  }

  /// Waits until what was written to `url` is on the disk.
  static func sync(_ url: URL, isFolder: Bool = false) throws {
    let descriptor = open(url.path, (isFolder ? O_RDONLY | O_DIRECTORY : O_RDWR) | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("\(url.path) can't be opened.") }
    defer { close(descriptor) }
    try flush(descriptor, url)
  }

  private static func flush(_ descriptor: Int32, _ url: URL) throws {
    guard FullSync.flush(descriptor) == 0 else { throw failure("\(url.path) can't be written to the disk.") }
  }

  static func systemError() -> POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }

  private static func failure(_ message: String) -> ServerError {
    ServerError(.inputOutput, message, cause: systemError())
  }
}
#endif
