#if Cloud
import Foundation
import KeepsakeInterchange
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore
/// What a path names, recognized by its first bytes.
enum InputKind {
  case store(URL)
  /// Bytes that aren't a store. Whether they are an archive is known only once they are read.
  case archive(Data)

  /// The size of the largest property list or JSON file that is read into memory. A save that is written out takes
  /// several times its own bytes there.
  static let maximumForeignBytes = 4 * EncodedContent.maximumContentBytes

  /// Given in place of a path: standard input or, for a command that writes, standard output.
  static let standard = "-"

  /// - Throws: `CommandFailure` if nothing is there, or it is of no known kind.
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
      guard try !Self.isOtherDatabase(file, at: path) else { throw KnownFile.database.failure(at: path) }
      self = .store(url)
      return
    }
    try file.seek(toOffset: 0)
    self = .archive(try Self.all(of: file, named: path))
  }

  /// Whether a database is marked as another program's, or as nobody's. While it has a log, its first page may still be
  /// there. One wrong byte in the mark is damage.
  private static func isOtherDatabase(_ file: FileHandle, at path: String) throws -> Bool {
    try file.seek(toOffset: applicationOffset)
    let mark = try file.read(upToCount: applicationMark.count) ?? Data()
    let differing = zip(mark, applicationMark).count { $0 != $1 } + applicationMark.count - mark.count
    return differing > 1 && !FileManager.default.fileExists(atPath: path + "-wal")
  }

  /// Returns the bytes of a file. A large file may consist of holes, which take no room on the disk. They are not read
  /// into memory.
  private static func all(of file: FileHandle, named name: String) throws -> Data {
    var data = try file.read(upToCount: chunkBytes) ?? Data()
    let start = data.prefix(databaseMagic.count)
    let isForeign = SavedFile.isForeign(start, named: name)
    let isBinary = SavedFile.isBinaryPropertyList(start)
    let limit = isForeign ? maximumForeignBytes : EncodedContent.maximumContentBytes
    func tooLarge(_ what: String) -> CommandFailure {
      CommandFailure(
        .data, "\(name) \(what); at most \(Printable.size(Int64(limit))) can be read",
        next: "name a smaller file, or the store that it is in")
    }
    // The stated size first, so that little is read of a file that is too large. It need not be true: reading one byte
    // more than allowed shows whether there are more.
    var status = stat()
    if fstat(file.fileDescriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > data.count {
      guard status.st_size <= limit else { throw tooLarge("has \(Printable.size(Int64(status.st_size)))") }
      if isBinary {
        do {
          try checkEnd(of: file, Int(status.st_size))
        } catch let error as PropertyListError {
          throw CommandFailure(.data, "\(name): \(error)")
        }
      }
      data.reserveCapacity(Int(status.st_size) + 1)
    }
    // No text has zeros: whatever reads it fails there, with or without the rest.
    while data.count <= limit, !isForeign || isBinary || !hasZeros(data.suffix(chunkBytes)) {
      guard let chunk = try file.read(upToCount: min(limit + 1 - data.count, chunkBytes)), !chunk.isEmpty else { break }
      data.append(chunk)
    }
    guard data.count <= limit else { throw tooLarge("is too large") }
    return data
  }

  private static func checkEnd(of file: FileHandle, _ bytes: Int) throws {
    let offset = bytes - PropertyList.trailerBytes
    var trailer = Data(count: PropertyList.trailerBytes)
    let count = trailer.withUnsafeMutableBytes { pread(file.fileDescriptor, $0.baseAddress, $0.count, off_t(offset)) }
    guard count >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    try PropertyList.check(trailer: trailer.prefix(count), at: offset)
  }

  /// Whether there are enough zeros for a character of zero, in UTF-8 or in UTF-16.
  private static func hasZeros(_ text: Data) -> Bool {
    text.withUnsafeBytes { bytes in
      stride(from: 0, to: bytes.count & ~7, by: 8).contains {
        bytes.loadUnaligned(fromByteOffset: $0, as: UInt64.self) == 0
      }
    }
  }

  /// Returns the first bytes of a regular file.
  static func beginning(of path: String) throws -> Data {
    try plainFile(at: path).read(upToCount: databaseMagic.count) ?? Data()
  }

  /// Opens a regular file, and nothing else: a device may deliver endless bytes, a pipe none.
  private static func plainFile(at path: String) throws -> FileHandle {
    // Without blocking, so that a pipe without a writer can't hold up the command before it is recognized as one.
    let number = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard number >= 0 else {
      let number = errno
      throw CommandFailure(
        CommandFailure.Kind(errno: number), "\(path) can't be opened: \(String(cString: strerror(number)))")
    }
    let file = FileHandle(fileDescriptor: number, closeOnDealloc: true)
    var status = stat()
    guard fstat(number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw CommandFailure(
        .data, "\(path) is neither a regular file nor a folder", next: "name an archive, a store or a synced folder")
    }
    return file
  }

  /// Returns the store that a folder is, or that a synced folder contains; nil if `path` is a file.
  static func store(at path: String) throws -> URL? {
    var isFolder: ObjCBool = false
    let files = FileManager.default
    guard files.fileExists(atPath: path, isDirectory: &isFolder) else {
      throw CommandFailure.nothing(at: path)
    }
    guard isFolder.boolValue else { return nil }
    let url = URL(fileURLWithPath: path, isDirectory: true)
    for candidate in [url, url.appendingPathComponent(SyncState.folderName, isDirectory: true)] {
      let database = candidate.appendingPathComponent(Store.databaseName).path
      if files.fileExists(atPath: database) { return candidate }
      // A store that may not be looked at is none that isn't there.
      if let denied = CommandFailure.denied(at: database) { throw denied }
    }
    throw CommandFailure(
      .noInput, "the folder \(path) contains no store",
      next: "name a store's folder, or a folder that keepsake sync syncs")
  }

  private static let chunkBytes = 16 << 20
  static let databaseMagic = Data("SQLite format 3\0".utf8)
  /// Where a database names its program, and how Keepsake's do.
  private static let applicationOffset: UInt64 = 68
  private static let applicationMark = Data("KEEP".utf8)
}
#endif
