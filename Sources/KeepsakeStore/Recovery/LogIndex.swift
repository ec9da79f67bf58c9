package import Foundation

/// SQLite's index beside a write-ahead log, as far as it says what has been committed.
///
/// The file begins with two copies of a header of 48 bytes in the machine's byte order
/// (https://sqlite.org/walformat.html#the_wal_index_file_format): 12 whether it was ever used, 16 the number of frames
/// up to the last commit, 32 the salts of the log, 40 a checksum of what precedes it.
package struct LogIndex: Equatable, Sendable {
  package enum Reading: Equatable, Sendable {
    /// There is no index, none that was ever used, or a damaged one.
    case none
    /// The two copies of the header differ, as they do while a commit writes them.
    case changing
    case found(LogIndex)

    package var usable: LogIndex? { if case .found(let index) = self { index } else { nil } }
  }

  private static let headerSize = 48
  /// SQLite's largest page.
  private static let maximumPageSize = 65_536

  /// The number of frames up to the last commit that succeeded.
  package let committedFrames: Int
  /// The log's generation, 8 bytes as in its own header; new ones from when it is restarted.
  package let salts: [UInt8]

  /// Reads the index of a log.
  ///
  /// - Parameter log: The log, named as SQLite names it.
  /// - Throws: `StoreError` if the index can't be opened.
  package static func read(beside log: URL) throws -> Reading {
    let path = log.path.replacingOccurrences(of: "-wal", with: "-shm", options: [.backwards, .anchored])
    guard let file = try RawFile(URL(fileURLWithPath: path)), let bytes = file.bytes(at: 0, count: 2 * headerSize)
    else { return .none }
    guard bytes[..<headerSize] == bytes[headerSize...] else { return .changing }
    func number(_ offset: Int) -> UInt32 {
      bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    }
    var sum = LogChecksum(isBigEndian: UInt32(1).bigEndian == 1)
    sum.add(bytes[..<40])
    guard bytes[12] != 0, number(40) == sum.first, number(44) == sum.second else { return .none }
    return .found(LogIndex(committedFrames: Int(number(16)), salts: Array(bytes[32..<40])))
  }

  /// Returns the length of the log up to its last commit.
  ///
  /// - Parameter header: The log's own header of 32 bytes.
  /// - Returns: 0 if the index counts nothing; nil if the header states no possible page size.
  package func committedLength(header: some Collection<UInt8>) -> Int? {
    guard committedFrames > 0 else { return 0 }
    guard header.count == 32 else { return nil }
    let pageSize = header.dropFirst(8).prefix(4).reduce(0) { $0 << 8 | Int($1) }
    guard pageSize <= Self.maximumPageSize else { return nil }
    return 32 + committedFrames * (24 + pageSize)
  }
}
