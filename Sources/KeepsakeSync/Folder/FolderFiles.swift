import Foundation
import KeepsakePlatform
import KeepsakeReplication

/// Distinguishes a changed file from an unchanged one without opening it. No program can set the time of the inode's
/// last change.
struct FolderSignature: Hashable, Sendable {
  var size: Int64
  var modifiedMilliseconds: Int64
  var changedNanoseconds: Int64
  var inode: UInt64

  fileprivate init(_ status: borrowing stat) {
    size = Int64(status.st_size)
    let modified = FileTime.modified(status)
    // Wraps for times some centuries away, because these numbers only have to differ.
    modifiedMilliseconds = modified.seconds &* 1000 &+ modified.fraction / 1_000_000
    changedNanoseconds = FileTime.changed(status).nanoseconds
    inode = UInt64(truncatingIfNeeded: status.st_ino)
  }
}

/// Reads files in a folder into which anybody may put anything: only plain files are opened, links aren't followed, and
/// no more is read than allowed.
enum FolderFiles {
  enum Kind {
    case file(FolderSignature)
    case folder
    /// A link, a pipe, a device.
    case other
  }

  /// Returns what is at a path; nil if there is nothing.
  static func kind(of path: String) throws(TransportFailure) -> Kind? {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw .looking(at: path, errno)
    }
    return switch status.st_mode & S_IFMT {
    case S_IFREG: .file(FolderSignature(status))
    case S_IFDIR: .folder
    default: .other
    }
  }

  static func signature(of path: String) throws(TransportFailure) -> FolderSignature? {
    if case .file(let signature)? = try kind(of: path) { signature } else { nil }
  }

  /// Returns the names in a folder, sorted, without those that aren't UTF-8, because ours always are. Nil if there is
  /// no folder.
  static func names(in folder: String) throws(TransportFailure) -> [String]? {
    guard let stream = opendir(folder) else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw .looking(at: folder, errno)
    }
    defer { closedir(stream) }
    var names: [String] = []
    errno = 0
    while let entry = readdir(stream) {
      if let name = name(of: entry), name != ".", name != ".." { names.append(name) }
      guard names.count <= FolderLimits.entries else { throw .tooManyEntries(folder) }
      errno = 0
    }
    guard errno == 0 else { throw .looking(at: folder, errno) }
    return names.sorted()
  }

  private static func name(of entry: UnsafeMutablePointer<dirent>) -> String? {
    // Read in place: copying the entry out would read beyond one that is shorter than its type.
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return nil }
    let start = UnsafeRawPointer(entry) + offset
    return String(validatingCString: start.assumingMemoryBound(to: CChar.self))
  }

  /// Returns the bytes of a plain file, or the first `limit` of them if `isPrefix`; nil if there is none, or if it is
  /// larger than allowed.
  static func read(_ path: String, limit: Int, isPrefix: Bool = false) throws(TransportFailure) -> Data? {
    // Opening a pipe must not block.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else {
      if [ENOENT, ENOTDIR, ELOOP, ENXIO].contains(errno) { return nil }
      throw .looking(at: path, errno)
    }
    let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .looking(at: path, errno) }
    guard status.st_mode & S_IFMT == S_IFREG, isPrefix || Int64(status.st_size) <= Int64(limit) else { return nil }
    do {
      // A file may grow while it is read.
      let bytes = try handle.read(upToCount: isPrefix ? limit : limit &+ 1) ?? Data()
      return bytes.count <= limit ? bytes : nil
    } catch {
      throw TransportFailure(.server(retryAfterMilliseconds: nil), "\(path) can't be read: \(ErrorReason.text(error))")
    }
  }

  /// Creates a folder whose parent exists; it may exist already. Returns whether it is new.
  static func makeFolder(_ path: String) throws -> Bool {
    if mkdir(path, 0o777) == 0 { return true }
    let number = errno
    switch try kind(of: path) {
    case .folder?: return false
    case .file?, .other?: throw TransportFailure.folderBlocked(path)
    case nil:
      throw TransportFailure(
        .server(retryAfterMilliseconds: nil), "the folder \(path) can't be created: \(words(for: number))")
    }
  }

  /// Removes a file. One that is gone already is fine.
  static func remove(_ path: String) throws(TransportFailure) {
    guard unlink(path) == 0 || errno == ENOENT else {
      throw TransportFailure(.server(retryAfterMilliseconds: nil), "\(path) can't be removed: \(words(for: errno))")
    }
  }

  /// Renames a file to a name that nothing has; returns false if something has it.
  static func rename(_ path: String, toFree name: String) throws(TransportFailure) -> Bool {
    if link(path, name) == 0 {
      try remove(path)
      return true
    }
    if errno == EEXIST {
      try remove(path)
      return false
    }
    // File systems of memory sticks have no hard links. Checking first leaves a moment in which another device may come
    // between; the one that loses finds the other's file when it looks again.
    guard try kind(of: name) == nil else {
      try remove(path)
      return false
    }
    guard moveFile(path, name) == 0 else {
      let number = errno
      try remove(path)
      throw TransportFailure(.server(retryAfterMilliseconds: nil), "\(name) can't be written: \(words(for: number))")
    }
    return true
  }

  static func words(for number: Int32) -> String { String(cString: strerror(number)) }
}

/// Outside the type, whose own `rename` would hide the system's.
private func moveFile(_ from: String, _ to: String) -> Int32 { rename(from, to) }
