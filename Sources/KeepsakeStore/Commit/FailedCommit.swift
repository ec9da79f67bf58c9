import Foundation

/// Handles what a commit leaves in the write-ahead log when its sync fails: frames that look committed, but were never
/// confirmed to be on the disk.
enum FailedCommit {
  /// Returns SQLite's index beside the log, which counts only commits that succeeded; nil if there is no usable one.
  ///
  /// Call this before the connections close, because the last one to close may delete the index.
  static func index(of log: URL) throws -> LogIndex? { try LogIndex.read(beside: log).usable }

  /// Cuts off everything after the frames of commits that succeeded.
  static func trimLog(_ log: URL, to index: LogIndex?) throws {
    guard let index, let raw = try RawFile(log), raw.size > 32, let header = raw.bytes(at: 0, count: 32),
      let length = index.committedLength(header: header).map({ max($0, 32) }), length < raw.size
    else { return }
    do {
      let handle = try FileHandle(forWritingTo: log)
      try handle.truncate(atOffset: UInt64(length))
      try handle.synchronize()
      try handle.close()
    } catch {
      throw StoreError(.io, "the remains of a failed save can't be removed from the write-ahead log", cause: error)
    }
  }
}
