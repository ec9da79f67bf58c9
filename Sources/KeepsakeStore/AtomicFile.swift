package import Foundation
import KeepsakePlatform

/// Writes a file so that, whatever happens meanwhile, its name refers to either all of the old bytes or all of the new
/// ones.
package enum AtomicFile {
  /// Who may read the file.
  package enum Access: Sendable {
    /// Whatever the process's umask permits.
    case usual
    /// Only the user: for keys and tokens. On Windows, the folder's rules apply, which in a user's own folders permit
    /// only the user.
    case ownerOnly
    /// The permissions of another file, as far as the umask permits.
    case permissions(UInt16)

    var mode: UInt16 {
      switch self {
      case .usual: 0o666
      case .ownerOnly: 0o600
      case .permissions(let bits): bits & 0o777
      }
    }
  }

  /// Replaces the file at `url` with `data`, durably: after this returns, a power cut doesn't lose it. Costs three
  /// waits for the disk. A symbolic link of that name is replaced, not followed.
  ///
  /// - Parameter staging: The folder in which the bytes are first written, on the same file system; nil for the file's
  ///   own.
  /// - Throws: `StoreError`, with the file unchanged, or replaced if only syncing the folder failed.
  package static func write(
    _ data: Data, to url: URL, access: Access = .usual, through staging: URL? = nil
  ) throws {
    _ = try put(data, at: url, access, through: staging) { temporary, path in
      guard SystemCall.renameFile(temporary, path) == 0 else {
        throw StoreError(errorNumber: errno, doing: "renaming to \(path)")
      }
      return true
    }
  }

  /// Creates the file at `url`. Returns false, with nothing changed, if there already is one, even if it was created
  /// concurrently.
  package static func create(_ data: Data, at url: URL) throws -> Bool {
    try put(data, at: url, .usual) { temporary, path in
      // A second link can only be made if the name is free; then the first is removed.
      if SystemCall.nameFile(temporary, path) == 0 {
        SystemCall.removeFile(temporary)
        return true
      }
      let number = errno
      if number == EEXIST || isThere(path) { return false }
      // File systems of memory sticks allow one link per file, and Android's rules forbid a second. That leaves a
      // moment in which another program may create a file of that name.
      guard [EPERM, EACCES, ENOTSUP, EOPNOTSUPP, ENOSYS, EMLINK].contains(number),
        SystemCall.renameFile(temporary, path) == 0
      else {
        throw StoreError(errorNumber: number, doing: "creating a file at \(path)")
      }
      return true
    }
  }

  private static func isThere(_ path: String) -> Bool {
    // A symbolic link that leads nowhere exists, too.
    FileStatus(at: path, followsLinks: false) != nil
  }

  /// - Parameter name: Gives the file its name; returns false if the name isn't available.
  private static func put(
    _ data: Data, at url: URL, _ access: Access, through staging: URL? = nil,
    name: (_ temporary: String, _ path: String) throws -> Bool
  ) throws
    -> Bool
  {
    let path = url.path
    let folder = url.deletingLastPathComponent().path
    // Beside the file, since a rename is atomic only within one file system. The name shows which file it belongs to,
    // so that a file left behind by a crash is recognized. A process writes each name from one thread at a time, or the
    // later rename wins.
    let temporary =
      (staging?.path ?? folder) + "/." + String(decoding: url.lastPathComponent.utf8.prefix(180), as: UTF8.self)
      + ".\(SystemCall.processNumber).\(uniqueNumber()).partial"
    let file = SystemCall.openFile(temporary, .creating, mode: access.mode)
    guard file >= 0 else { throw StoreError(errorNumber: errno, doing: "creating a file beside \(path)") }
    do {
      defer { SystemCall.closeFile(file) }
      try writeAll(data, to: file, path: path)
      try sync(file, path: path)
    } catch {
      SystemCall.removeFile(temporary)
      throw error
    }
    do {
      guard try name(temporary, path) else {
        SystemCall.removeFile(temporary)
        return false
      }
    } catch {
      SystemCall.removeFile(temporary)
      throw error
    }
    try syncFolder(folder)
    return true
  }

  /// Returns the bytes of the file at `url`, nil if there is none. Throws `tooLarge` before reading more than allowed.
  ///
  /// - Parameters:
  ///   - acceptsPipes: Whether a pipe or a device is read, too, and waited for; otherwise it is refused.
  ///   - followsLinks: Whether a symbolic link at the end of the path is followed; otherwise it is refused.
  package static func read(
    _ url: URL, maximumBytes: Int, acceptsPipes: Bool = false, followsLinks: Bool = true
  ) throws -> Data? {
    // Opening a pipe waits for its writer, unless that is done without blocking.
    let file = SystemCall.openFile(
      url.path, acceptsPipes ? .reading : followsLinks ? .readingAtOnce : .readingPlain)
    guard file >= 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw StoreError(errorNumber: errno, doing: "opening \(url.path)")
    }
    // Before the handle, which may give the file another number.
    let status = FileStatus(of: file)
    let number = errno
    let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    guard let status else { throw StoreError(errorNumber: number, doing: "examining \(url.path)") }
    guard acceptsPipes || status.kind == .file else {
      throw StoreError(.io, "\(url.path) is not a regular file")
    }
    let tooLarge = StoreError(.tooLarge, "\(url.path) is larger than \(maximumBytes) bytes")
    guard status.kind != .file || status.size <= maximumBytes else { throw tooLarge }
    let bytes: Data
    do {
      // One byte more than allowed shows whether there is more; a file may grow while it is read.
      bytes = try handle.read(upToCount: maximumBytes &+ 1) ?? Data()
    } catch {
      throw StoreError(.io, "reading \(url.path) failed", cause: error)
    }
    guard bytes.count <= maximumBytes else { throw tooLarge }
    return bytes
  }

  /// Makes the names in a folder durable.
  package static func syncFolder(_ path: String) throws {
    let folder = SystemCall.openFile(path, .reading)
    guard folder >= 0 else { throw StoreError(errorNumber: errno, doing: "opening the folder \(path)") }
    defer { SystemCall.closeFile(folder) }
    // Some network file systems can't sync a folder and report that; the rename itself has happened.
    guard FullSync.flushFolder(folder) == 0 || errno == EINVAL || errno == ENOTSUP else {
      throw StoreError(errorNumber: errno, doing: "syncing the folder \(path)")
    }
  }

  private static func writeAll(_ data: Data, to file: Int32, path: String) throws {
    try data.withUnsafeBytes { bytes in
      var rest = UnsafeRawBufferPointer(rebasing: bytes[...])
      while !rest.isEmpty {
        let count = SystemCall.write(file, rest.baseAddress, rest.count)
        if count < 0 {
          if errno == EINTR { continue }
          throw StoreError(errorNumber: errno, doing: "writing \(path)")
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
    }
  }

  /// Waits until what was written to an open file is on the disk.
  static func sync(_ file: Int32, path: String) throws {
    guard FullSync.flush(file) == 0 else { throw StoreError(errorNumber: errno, doing: "syncing \(path)") }
  }

  private static func uniqueNumber() -> String {
    String(UInt64.random(in: 0...UInt64.max), radix: 36)
  }
}
