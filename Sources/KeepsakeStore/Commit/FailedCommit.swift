import Foundation

/// What a commit whose sync failed leaves in a write-ahead log: frames that look committed, but were never known to be on the disk.
enum FailedCommit {
  /// How many frames of the log belong to commits that succeeded, as SQLite's index beside the log says; nil if there is none.
  ///
  /// To be asked before the connections close, because the last one to close may take the index away.
  static func committedFrames(of database: URL) throws -> Int? {
    // Two copies of the header, 48 bytes each, in the machine's own byte order; the frame count stands at 16.
    guard let bytes = try RawFile(URL(fileURLWithPath: database.path + "-shm"))?.bytes(at: 0, count: 96), bytes[..<48] == bytes[48...],
      bytes[12] != 0
    else { return nil }
    return bytes.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: 16, as: UInt32.self)) }
  }

  /// Cuts off what follows on the frames of commits that succeeded.
  static func trimLog(_ log: URL, to committed: Int?) throws {
    guard let committed, StoreFiles.exists(log), let raw = try RawFile(log), raw.size > 32 else { return }
    guard let header = raw.bytes(at: 0, count: 32) else { return }
    let pageSize = Int(header.word(at: 8))
    // Neither number is to be believed before it is known to be possible.
    guard pageSize <= 65_536, committed < raw.size else { return }
    let length = UInt64(32 + committed * (24 + pageSize))
    guard length < raw.size else { return }
    do {
      let handle = try FileHandle(forWritingTo: log)
      try handle.truncate(atOffset: length)
      try handle.synchronize()
      try handle.close()
    } catch {
      throw StoreError(.io, "what a failed save left in the write-ahead log can't be removed", cause: error)
    }
  }
}
