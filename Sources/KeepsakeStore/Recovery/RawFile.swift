import Foundation
import KeepsakePlatform

/// A file read at arbitrary offsets, without SQLite, to examine what SQLite can't read.
///
/// Don't use it on a database that this process has open: closing the file would release SQLite's locks on it.
final class RawFile {
  let size: Int
  private let descriptor: Int32

  /// Opens the file; nil if it doesn't exist. Throws `misuse` for a folder, a pipe or a device: their size is
  /// meaningless, and reading may never end.
  init?(_ url: URL) throws {
    descriptor = SystemCall.openFile(url.path, .readingAtOnce)
    guard descriptor >= 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw StoreError(errorNumber: errno, doing: "opening \(url.path)")
    }
    guard let status = FileStatus(of: descriptor) else {
      let number = errno
      SystemCall.closeFile(descriptor)
      throw StoreError(errorNumber: number, doing: "reading \(url.path)")
    }
    guard status.kind == .file else {
      SystemCall.closeFile(descriptor)
      throw StoreError(
        .misuse,
        "\(url.path) is a folder, a pipe or a device instead of a file: move it away, and open the game's data again")
    }
    size = Int(status.size)
  }

  deinit { SystemCall.closeFile(descriptor) }

  /// Returns exactly `count` bytes; nil if the file is shorter, or if the disk can't read them: a bad sector is damage
  /// like any other.
  func bytes(at offset: Int, count: Int) -> [UInt8]? {
    guard offset >= 0, count >= 0, count <= size, offset <= size - count else { return nil }
    var failed = false
    let result = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = 0
      while filled < count {
        let read = SystemCall.readFile(
          descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, at: offset + filled)
        if read < 0, errno == EINTR { continue }
        guard read > 0 else {
          failed = true
          return
        }
        filled += read
      }
    }
    return failed ? nil : result
  }
}

extension [UInt8] {
  /// Returns the big-endian number in four bytes. The caller must check that they exist.
  func word(at offset: Int) -> UInt32 {
    UInt32(self[offset]) << 24 | UInt32(self[offset + 1]) << 16 | UInt32(self[offset + 2]) << 8
      | UInt32(self[offset + 3])
  }

  func half(at offset: Int) -> Int { Int(self[offset]) << 8 | Int(self[offset + 1]) }
}
