import Crypto
import Foundation
import KeepsakePlatform
import KeepsakeReplication

/// The folder of a game's assets, walked part by part from one open descriptor: no path leads out of it, and no
/// symbolic link in it is followed, whatever is on the disk and however it changes meanwhile.
final class AssetFolder: Sendable {
  /// The number of bytes read, hashed and reported as progress at a time: they stay in the processor's cache between
  /// reading and hashing.
  static let chunkBytes = 256 << 10

  let url: URL
  private let root: Int32

  /// Opens the folder. Links on the way to the folder itself are followed, because the game names it.
  init(at url: URL) throws(AssetError) {
    self.url = url
    root = SystemCall.openFile(url.path, .folder)
    guard root >= 0 else {
      let number = errno
      throw AssetError(
        number == ENOENT || number == ENOTDIR ? .missing : .unreadable,
        "the folder of the assets \(url.path) can't be opened: \(String(cString: strerror(number)))")
    }
  }

  deinit {
    // Negative if opening it failed.
    if root >= 0 { SystemCall.closeFile(root) }
  }

  /// A file that is open for reading, with its status.
  struct OpenFile: ~Copyable {
    let number: Int32
    let status: AssetStatus

    fileprivate init(number: Int32, status: AssetStatus) {
      self.number = number
      self.status = status
    }

    deinit { SystemCall.closeFile(number) }
  }

  /// Opens the folder at `parts`; the assets' folder itself if there are none.
  func descriptor(of parts: some Collection<String>, path: String) throws(AssetError) -> Int32 {
    var current = SystemCall.openFile(".", in: root, .folder)
    guard current >= 0 else { throw Self.refused(errno, path) }
    for part in parts {
      let next = SystemCall.openFile(part, in: current, .plainFolder)
      let number = errno
      SystemCall.closeFile(current)
      guard next >= 0 else { throw Self.refused(number, path) }
      current = next
    }
    return current
  }

  /// Opens an asset's file.
  ///
  /// Throws `missing`, or `unreadable` if it isn't a regular file in ordinary folders.
  func file(at path: AssetPath) throws(AssetError) -> OpenFile {
    let parts = path.parts
    let parent = try descriptor(of: parts.dropLast(), path: path.text)
    defer { SystemCall.closeFile(parent) }
    let number = SystemCall.openFile(parts.last ?? "", in: parent, .readingPlain)
    guard number >= 0 else { throw Self.refused(errno, path.text) }
    guard let status = FileStatus(of: number) else {
      let error = errno
      SystemCall.closeFile(number)
      throw Self.refused(error, path.text)
    }
    guard status.kind == .file else {
      SystemCall.closeFile(number)
      throw AssetError(.unreadable, "the asset \(AssetPath.shown(path.text)) isn't a plain file", path: path.text)
    }
    return OpenFile(number: number, status: AssetStatus(status))
  }

  /// Reads a file into newly allocated memory, in chunks, and hashes it on the way.
  ///
  /// Calls `onProgress` with the number of bytes read so far. Returns nil if the file is shorter or longer than its
  /// status says: it changed meanwhile.
  func read(_ file: borrowing OpenFile, path: String, onProgress: (Int) -> Void) throws(AssetError) -> (
    bytes: Data, hash: ContentHash
  )? {
    let size = file.status.size
    // Not through `Data`'s own memory, which would be filled with zeros first.
    guard let memory = malloc(max(size, 1)) else {
      throw AssetError(.tooLarge, "there is no memory for the \(size) bytes of \(AssetPath.shown(path))", path: path)
    }
    var isTaken = false
    defer { if !isTaken { free(memory) } }
    var hash = SHA256()
    var done = 0
    while done < size {
      let count = try Self.readSome(file.number, memory + done, min(size - done, Self.chunkBytes), at: done, path: path)
      guard count > 0 else { return nil }
      hash.update(bufferPointer: UnsafeRawBufferPointer(start: memory + done, count: count))
      done += count
      onProgress(done)
    }
    var more: UInt8 = 0
    guard try Self.readSome(file.number, &more, 1, at: size, path: path) == 0 else { return nil }
    isTaken = true
    // Last: for a few bytes, `Data` makes a copy and frees the memory immediately.
    return (Data(bytesNoCopy: memory, count: size, deallocator: .free), ContentHash(digest: hash.finalize()))
  }

  /// Hashes a file without keeping more than one chunk of it. Returns nil if the file changed meanwhile.
  func hash(_ file: borrowing OpenFile, path: String, onProgress: (Int) -> Void) throws(AssetError) -> ContentHash? {
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkBytes, alignment: 16)
    defer { piece.deallocate() }
    guard let start = piece.baseAddress else { return nil }
    var hash = SHA256()
    var done = 0
    while true {
      let count = try Self.readSome(file.number, start, piece.count, at: done, path: path)
      guard count > 0 else { break }
      hash.update(bufferPointer: UnsafeRawBufferPointer(start: start, count: count))
      done += count
      // The file grows faster than it is read, or was replaced.
      guard done <= file.status.size else { return nil }
      onProgress(done)
    }
    return done == file.status.size ? ContentHash(digest: hash.finalize()) : nil
  }

  /// Maps a file. Not for empty files, which the system can't map.
  func map(_ file: borrowing OpenFile, path: String) throws(AssetError) -> Data {
    guard let bytes = SystemCall.mapFile(file.number, size: file.status.size) else { throw Self.refused(errno, path) }
    return bytes
  }

  private static func readSome(
    _ file: Int32, _ target: UnsafeMutableRawPointer, _ count: Int, at offset: Int, path: String
  ) throws(AssetError) -> Int {
    while true {
      let result = SystemCall.readFile(file, target, count, at: offset)
      if result >= 0 { return result }
      if errno != EINTR { throw refused(errno, path) }
    }
  }

  /// Returns the error for a failed system call.
  static func refused(_ number: Int32, _ path: String) -> AssetError {
    let shown = AssetPath.shown(path)
    return switch number {
    case ENOENT: AssetError(.missing, "the asset \(shown) is missing: install the game again", path: path)
    case ELOOP, ENOTDIR, ENXIO:
      AssetError(
        .unreadable,
        """
        the asset \(shown) isn't a plain file in plain folders: symbolic links aren't followed, put the file itself \
        there
        """,
        path: path)
    default:
      AssetError(.unreadable, "the asset \(shown) can't be read: \(String(cString: strerror(number)))", path: path)
    }
  }
}

/// A file's size and date, as the system reports them.
struct AssetStatus: Hashable, Sendable {
  let size: Int
  let modifiedNanoseconds: Int64

  init(_ status: FileStatus) {
    // A size that this platform's `Int` can't hold exceeds every limit as well.
    size = Int(clamping: status.size)
    let time = status.modified
    // Years after 2262 don't fit; they count as later than everything else.
    let (seconds, overflow) = time.seconds.multipliedReportingOverflow(by: 1_000_000_000)
    modifiedNanoseconds =
      overflow ? (time.seconds < 0 ? .min : .max) : seconds.addingReportingOverflow(time.fraction).partialValue
  }

  /// Returns when a file was last modified; nil if the system doesn't report it.
  static func modifiedNanoseconds(of url: URL) -> Int64? {
    FileStatus(at: url.path).map { AssetStatus($0).modifiedNanoseconds }
  }
}
