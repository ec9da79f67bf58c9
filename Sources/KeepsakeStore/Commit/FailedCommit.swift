import Foundation

/// Handles what a commit leaves in the write-ahead log when its sync fails: frames that look committed, but were never
/// confirmed to be on the disk.
enum FailedCommit {
  /// Returns how many frames of the log belong to commits that succeeded, according to SQLite's index beside the log;
  /// nil if there is no usable index.
  ///
  /// Call this before the connections close, because the last one to close may delete the index.
  static func committedFrames(of database: URL) throws -> Int? {
    // Two copies of the header, 48 bytes each, in the machine's own byte order; the frame count is at offset 16.
    guard let bytes = try RawFile(URL(fileURLWithPath: database.path + "-shm"))?.bytes(at: 0, count: 96),
      bytes[..<48] == bytes[48...],
      bytes[12] != 0
    else { return nil }
    return bytes.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: 16, as: UInt32.self)) }
  }

  /// Cuts off everything after the frames of commits that succeeded.
  static func trimLog(_ log: URL, to committed: Int?) throws {
    guard let committed, StoreFiles.exists(log), let raw = try RawFile(log), raw.size > 32 else { return }
    guard let header = raw.bytes(at: 0, count: 32) else { return }
    let pageSize = Int(header.word(at: 8))
    // Validate both numbers before using them.
    guard pageSize <= 65_536, committed < raw.size else { return }
    let length = UInt64(32 + committed * (24 + pageSize))
    guard length < raw.size else { return }
    do {
      let handle = try FileHandle(forWritingTo: log)
      try handle.truncate(atOffset: length)
      try handle.synchronize()
      try handle.close()
    } catch {
      throw StoreError(.io, "the remains of a failed save can't be removed from the write-ahead log", cause: error)
    }
  }
}
