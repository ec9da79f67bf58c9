#if Cloud
import Crypto
import Foundation
import KeepsakeReplication

/// Writes the file of a backup, from its first byte to its last.
final class BackupWriter {
  static let bytesAtOnce = 1 << 20

  private let handle: FileHandle
  private let path: String
  private let modified: Int64
  private var sums = Data()
  private(set) var summary: BackupSummary

  /// - Parameter handle: An empty file, which stays open.
  init(_ handle: FileHandle, path: String, madeAtMilliseconds: Int64) throws {
    (self.handle, self.path) = (handle, path)
    modified = madeAtMilliseconds / 1_000
    summary = BackupSummary(madeAtMilliseconds: madeAtMilliseconds)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    let about = BackupLayout.About(madeAtMilliseconds: madeAtMilliseconds)
    try append(BackupLayout.about, try encoder.encode(about) + Data("\n".utf8))
  }

  /// Appends a small file.
  func append(_ path: String, _ bytes: Data) throws {
    try write(TarEntry(path: path, size: Int64(bytes.count), modified: modified).header)
    try write(bytes)
    try end(path, SHA256.hash(data: bytes), Int64(bytes.count))
  }

  /// Appends a file that doesn't change, and is removed at most.
  ///
  /// - Parameter receive: Called with the number of bytes after each piece.
  /// - Returns: False, and nothing is written, if there is no such file.
  func append(_ path: String, file: URL, receive: (Int64) throws -> Void) throws -> Bool {
    let source: FileHandle
    do {
      source = try FileHandle(forReadingFrom: file)
    } catch {
      if ErrorReason.systemNumber(of: error) == ENOENT || (error as? CocoaError)?.code == .fileReadNoSuchFile
        || (error as? CocoaError)?.code == .fileNoSuchFile
      {
        return false
      }
      throw Self.unreadable(file, error)
    }
    var hasher = SHA256()
    var left: Int64
    do {
      left = Int64(try source.seekToEnd())
      try source.seek(toOffset: 0)
    } catch {
      throw Self.unreadable(file, error)
    }
    let size = left
    try write(TarEntry(path: path, size: size, modified: modified).header)
    while left > 0 {
      let piece: Data
      do {
        piece = try source.read(upToCount: min(Self.bytesAtOnce, Int(left))) ?? Data()
      } catch {
        throw Self.unreadable(file, error)
      }
      guard !piece.isEmpty else {
        throw BackupError(.inputOutput, "The file \(file.path) became shorter while it was copied.")
      }
      hasher.update(data: piece)
      try write(piece)
      left -= Int64(piece.count)
      try receive(Int64(piece.count))
    }
    try end(path, hasher.finalize(), size)
    return true
  }

  /// Notes how many contents the database needs that nobody has.
  func lost(_ count: Int) { summary.lostContents = count }

  /// Ends the archive. When this returns, it is on the disk.
  ///
  /// - Returns: The hash of the list of all hashes.
  func finish() throws -> ContentHash {
    let list = sums
    try append(BackupLayout.sums, list)
    try write(TarEntry.end)
    do {
      try handle.synchronize()
    } catch {
      throw BackupError(.inputOutput, "\(path) can't be written to the disk.", cause: error)
    }
    return ContentHash(of: list)
  }

  private func end(_ path: String, _ digest: SHA256.Digest, _ size: Int64) throws {
    try write(Data(count: TarEntry(path: path, size: size, modified: modified).padding))
    sums.append(Data("\(ContentHash(digest: digest))  \(path)\n".utf8))
    summary.count(path, size)
  }

  private func write(_ bytes: Data) throws {
    guard !bytes.isEmpty else { return }
    do {
      try handle.write(contentsOf: bytes)
    } catch {
      throw BackupError(.inputOutput, "\(path) can't be written.", cause: error)
    }
    summary.fileBytes += Int64(bytes.count)
  }

  private static func unreadable(_ file: URL, _ error: any Error) -> BackupError {
    BackupError(.inputOutput, "The file \(file.path) can't be read.", cause: error)
  }
}

extension BackupSummary {
  mutating func count(_ path: String, _ size: Int64) {
    if path == DataFolder.databaseName { databaseBytes = size }
    if path.hasPrefix(BackupLayout.contentsPrefix) { (contents, contentBytes) = (contents + 1, contentBytes + size) }
  }
}
#endif
