import Foundation
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore

/// A folder of plain files, as the system's calls show it.
struct PlainFolder: FolderAccess {
  func item(at path: String, known: FolderSignature?) throws(TransportFailure) -> FolderItem? {
    guard let status = FileStatus(at: path, followsLinks: false) else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw .looking(at: path, errno)
    }
    return switch status.kind {
    case .file: .file(FolderSignature(status))
    case .folder: .folder
    case .link, .other: .other
    }
  }

  func names(in folder: String) throws(TransportFailure) -> [String]? {
    let file = SystemCall.openFile(folder, .folder)
    guard file >= 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw .looking(at: folder, errno)
    }
    var names: [String] = []
    let number = try SystemCall.forEachName(in: file) { name throws(TransportFailure) in
      if let name = String(validating: name, as: UTF8.self) { names.append(name) }
      guard names.count <= FolderLimits.entries else { throw .tooManyEntries(folder) }
    }
    guard number == 0 else { throw .looking(at: folder, number) }
    return names.sorted()
  }

  func read(_ path: String, limit: Int, isPrefix: Bool) throws(TransportFailure) -> Data? {
    let file = SystemCall.openFile(path, .readingPlain)
    guard file >= 0 else {
      if [ENOENT, ENOTDIR, ELOOP, ENXIO].contains(errno) { return nil }
      throw .looking(at: path, errno)
    }
    // Before the handle, which may give the file another number.
    let status = FileStatus(of: file)
    let number = errno
    let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    guard let status else { throw .looking(at: path, number) }
    guard status.kind == .file, isPrefix || status.size <= Int64(limit) else { return nil }
    do {
      // A file may grow while it is read.
      let bytes = try handle.read(upToCount: isPrefix ? limit : limit &+ 1) ?? Data()
      return bytes.count <= limit ? bytes : nil
    } catch {
      throw TransportFailure(.server(retryAfterMilliseconds: nil), "\(path) can't be read: \(ErrorReason.text(error))")
    }
  }

  func makeFolder(_ path: String) throws {
    if SystemCall.makeFolder(path) == 0 {
      return try AtomicFile.syncFolder((path as NSString).deletingLastPathComponent)
    }
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
    guard SystemCall.removeFile(path) == 0 || errno == ENOENT else {
      throw TransportFailure(
        .server(retryAfterMilliseconds: nil), "\(path) can't be removed: \(TransportFailure.words(for: errno))")
    }
  }

  func fetch(_ path: String) {}
}
