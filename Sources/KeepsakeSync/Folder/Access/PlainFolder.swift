import Foundation
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore

/// A folder of plain files, as the system's calls show it.
struct PlainFolder: FolderAccess {
  func item(at path: String, known: FolderSignature?) throws(TransportFailure) -> FolderItem? {
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

  func names(in folder: String) throws(TransportFailure) -> [String]? {
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

  private func name(of entry: UnsafeMutablePointer<dirent>) -> String? {
    // Read in place: copying the entry out would read beyond one that is shorter than its type.
    guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return nil }
    let start = UnsafeRawPointer(entry) + offset
    return String(validatingCString: start.assumingMemoryBound(to: CChar.self))
  }

  func read(_ path: String, limit: Int, isPrefix: Bool) throws(TransportFailure) -> Data? {
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

  func makeFolder(_ path: String) throws {
    if mkdir(path, 0o777) == 0 { return try AtomicFile.syncFolder((path as NSString).deletingLastPathComponent) }
    let number = errno
    switch try item(at: path) {
    case .folder?: return
    case .file?, .arriving?, .unlisted?, .other?: throw TransportFailure.folderBlocked(path)
    case nil:
      throw TransportFailure(
        .server(retryAfterMilliseconds: nil),
        "the folder \(path) can't be created: \(TransportFailure.words(for: number))")
    }
  }

  func write(_ bytes: Data, to path: String) throws { try AtomicFile.write(bytes, to: URL(fileURLWithPath: path)) }

  /// Creates a file durably. Returns false, with nothing changed, if something has its name.
  func create(_ bytes: Data, at path: String) throws -> Bool {
    do {
      return try AtomicFile.create(bytes, at: URL(fileURLWithPath: path))
    } catch {
      // File systems without hard links report that in many ways. Checking first leaves a moment in which another
      // device may come between; the one that loses finds the other's file when it looks again.
      guard try item(at: path) == nil else { return false }
      try write(bytes, to: path)
      return true
    }
  }

  func remove(_ path: String) throws(TransportFailure) {
    guard unlink(path) == 0 || errno == ENOENT else {
      throw TransportFailure(
        .server(retryAfterMilliseconds: nil), "\(path) can't be removed: \(TransportFailure.words(for: errno))")
    }
  }

  func fetch(_ path: String) {}
}
