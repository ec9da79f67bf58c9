#if Cloud
import Foundation
import KeepsakeStore
#if canImport(Glibc)
import CDispatch  // The compiler may take this module for the one that defines Glibc's stat.
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// What a path names, told by its first bytes.
enum InputKind {
  case store(URL)
  /// Bytes that are no store; whether they are an archive shows when they are looked into.
  case archive(Data)

  /// The most bytes of an archive that are read into memory at once.
  static let maximumArchiveBytes = 1 << 30

  /// In place of a path: standard input, and of what writes, standard output.
  static let standard = "-"

  /// - Throws: `CommandFailure` if nothing is there or it is of no kind that is known.
  init(of path: String) throws {
    guard path != Self.standard else {
      self = .archive(try Self.all(of: .standardInput, named: "standard input"))
      return
    }
    if let store = try Self.store(at: path) {
      self = .store(store)
      return
    }
    let url = URL(fileURLWithPath: path)
    let file = try Self.plainFile(at: path)
    let start = try file.read(upToCount: Self.databaseMagic.count) ?? Data()
    if start == Self.databaseMagic {
      self = .store(url)
      return
    }
    try file.seek(toOffset: 0)
    self = .archive(try Self.all(of: file, named: path))
  }

  private static func all(of file: FileHandle, named name: String) throws -> Data {
    // One more than allowed tells whether there is more; what a file says of its size need not be so.
    let data = try file.read(upToCount: maximumArchiveBytes + 1) ?? Data()
    guard data.count <= maximumArchiveBytes else {
      throw CommandFailure(.data, "\(name) is too large; up to \(maximumArchiveBytes) bytes are taken")
    }
    return data
  }

  /// What a plain file begins with.
  static func beginning(of path: String) throws -> Data {
    try plainFile(at: path).read(upToCount: databaseMagic.count) ?? Data()
  }

  /// Opens a plain file: a device may give bytes without end, a pipe none.
  private static func plainFile(at path: String) throws -> FileHandle {
    // Without waiting, so that a pipe to which nobody writes can't hold the command before it is known for one.
    let number = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard number >= 0 else { throw CommandFailure(.noInput, "\(path) can't be opened: \(String(cString: strerror(errno)))") }
    let file = FileHandle(fileDescriptor: number, closeOnDealloc: true)
    var status = stat()
    guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw CommandFailure(.data, "\(path) is neither a plain file nor a folder", next: "name an archive, a store or a synced folder")
    }
    return file
  }

  /// The store that a folder is, or that a synced folder has; nil if `path` is a file.
  static func store(at path: String) throws -> URL? {
    var isFolder: ObjCBool = false
    let files = FileManager.default
    guard files.fileExists(atPath: path, isDirectory: &isFolder) else {
      throw CommandFailure(.noInput, "there is nothing at \(path)")
    }
    guard isFolder.boolValue else { return nil }
    let url = URL(fileURLWithPath: path, isDirectory: true)
    for candidate in [url, url.appendingPathComponent(SyncState.folderName, isDirectory: true)]
    where files.fileExists(atPath: candidate.appendingPathComponent(Store.databaseName).path) {
      return candidate
    }
    throw CommandFailure(.noInput, "the folder \(path) holds no store", next: "name a store's folder, or one that keepsake sync keeps")
  }

  static let databaseMagic = Data("SQLite format 3\0".utf8)
}
#endif
