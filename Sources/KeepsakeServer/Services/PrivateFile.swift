#if Cloud
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

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
      var rest = bytes[...]
      while !rest.isEmpty {
        let written = rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
        if written < 0, errno == EINTR { continue }
        guard written > 0 else { throw failure("\(beside.path) can't be written.") }
        rest = rest.dropFirst(written)
      }
      try flush(descriptor, beside)
    }
    try move(beside, to: url)
  }

  /// Runs `body` while no other process or thread does so for the same file, which it may read, change and write.
  static func locking<Result>(_ url: URL, _ body: () throws -> Result) throws -> Result {
    // Beside it, because writing replaces the file itself.
    let lock = url.appendingPathExtension("lock")
    let descriptor = open(lock.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("\(lock.path) can't be written.") }
    defer { close(descriptor) }
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
    #if canImport(Darwin)
    // On Apple's systems, fsync stops at the drive's cache. Where F_FULLFSYNC isn't supported, fsync is all there is.
    if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
    #endif
    guard fsync(descriptor) == 0 else { throw failure("\(url.path) can't be written to the disk.") }
  }

  static func systemError() -> POSIXError { POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }

  private static func failure(_ message: String) -> ServerError {
    ServerError(.inputOutput, message, cause: systemError())
  }

  private static func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    #if canImport(Glibc)
    Glibc.write(descriptor, bytes, count)
    #elseif canImport(Musl)
    Musl.write(descriptor, bytes, count)
    #else
    Darwin.write(descriptor, bytes, count)
    #endif
  }
}
#endif
