#if Cloud
import Crypto
import Foundation
import KeepsakeReplication

/// Receives the files of a backup while it is read. What it throws ends the reading.
protocol BackupSink {
  mutating func begin(_ path: String, size: Int64) throws
  mutating func write(_ piece: Data) throws
  mutating func end() throws
}

/// Ignores the files: a backup is only verified.
struct NoSink: BackupSink {
  func begin(_ path: String, size: Int64) {}
  func write(_ piece: Data) {}
  func end() {}
}

/// Reads the file of a backup, and verifies all of it: every byte is either what the writer makes of the files' paths
/// and sizes, or in a file whose SHA-256 is listed.
final class BackupReader<Sink: BackupSink> {
  /// The list of hashes of a million contents takes some 200 MB; nothing smaller is a limit.
  private static var maximumSumBytes: Int64 { 1 << 30 }
  private static var maximumAboutBytes: Int64 { 64 << 10 }

  private let handle: FileHandle
  private let path: String
  private let progress: (Int64) throws -> Void
  private var offset: Int64 = 0
  private var expected = Data()
  private var paths: Set<String> = []
  var sink: Sink
  private(set) var summary = BackupSummary(madeAtMilliseconds: 0)
  /// The hash of the list of all hashes.
  private(set) var sums: ContentHash?

  /// - Parameter progress: Receives the number of bytes that were read, after each piece.
  init(_ handle: FileHandle, path: String, sink: Sink, progress: @escaping (Int64) throws -> Void) {
    (self.handle, self.path, self.sink, self.progress) = (handle, path, sink, progress)
  }

  /// Reads everything from the beginning.
  ///
  /// - Throws: `notBackup`, `damaged` or `newerFormat` for a file that isn't a whole backup of this version;
  ///   `inputOutput`; what the sink and the progress throw.
  func read() throws {
    do {
      try handle.seek(toOffset: 0)
    } catch {
      throw unreadable(error)
    }
    try readAbout()
    while true {
      let entry = try nextEntry()
      if entry.path == BackupLayout.sums {
        try readSums(entry)
        return
      }
      guard BackupLayout.allows(entry.path), paths.insert(entry.path).inserted else {
        throw damaged("it has a file that no backup has")
      }
      summary.count(entry.path, entry.size)
      try sink.begin(entry.path, size: entry.size)
      var hasher = SHA256()
      try bytes(of: entry) { piece in
        hasher.update(data: piece)
        try sink.write(piece)
      }
      try sink.end()
      note(entry.path, hasher.finalize())
    }
  }

  private func readAbout() throws {
    let wrong = BackupError(.notBackup, "\(path) isn't a backup of a cloud.")
    guard let header = try take(TarEntry.headerBytes), let entry = TarEntry(header: header),
      entry.path == BackupLayout.about, entry.size <= Self.maximumAboutBytes
    else { throw wrong }
    let bytes = try all(of: entry)
    let about: BackupLayout.About
    do {
      about = try JSONDecoder().decode(BackupLayout.About.self, from: bytes)
    } catch {
      throw damaged("its description can't be read")
    }
    guard about.keepsake == BackupLayout.About.kind else { throw wrong }
    guard about.format == BackupLayout.format else {
      throw BackupError(
        .newerFormat, "\(path) has the format \(about.format); this version reads the format \(BackupLayout.format).")
    }
    summary.madeAtMilliseconds = about.madeAtMilliseconds
    note(entry.path, SHA256.hash(data: bytes))
  }

  private func readSums(_ entry: TarEntry) throws {
    guard entry.size == Int64(expected.count), entry.size <= Self.maximumSumBytes,
      try all(of: entry) == expected
    else { throw damaged("a file in it isn't what was written") }
    guard let end = try take(TarEntry.end.count), end == TarEntry.end, try take(1) == nil else {
      throw damaged("its end isn't what was written")
    }
    for name in [DataFolder.databaseName, DataFolder.secretName] where !paths.contains(name) {
      throw damaged("it has no \(name)")
    }
    sums = ContentHash(of: expected)
    summary.fileBytes = offset
  }

  private func note(_ path: String, _ digest: SHA256.Digest) {
    expected.append(Data("\(ContentHash(digest: digest))  \(path)\n".utf8))
  }

  // MARK: Bytes

  private func nextEntry() throws -> TarEntry {
    let place = offset
    guard let header = try take(TarEntry.headerBytes) else { throw ended() }
    guard let entry = TarEntry(header: header) else { throw damaged("at the byte \(place)") }
    return entry
  }

  private func all(of entry: TarEntry) throws -> Data {
    var bytes = Data()
    try self.bytes(of: entry) { bytes.append($0) }
    return bytes
  }

  private func bytes(of entry: TarEntry, _ body: (Data) throws -> Void) throws {
    var left = entry.size
    while left > 0 {
      guard let piece = try take(Int(min(left, Int64(BackupWriter.bytesAtOnce)))) else { throw ended() }
      try body(piece)
      left -= Int64(piece.count)
    }
    guard entry.padding > 0 else { return }
    let place = offset
    guard let padding = try take(entry.padding) else { throw ended() }
    guard padding == Data(count: entry.padding) else { throw damaged("at the byte \(place)") }
  }

  /// Returns this many bytes; nil if the file ends before.
  private func take(_ count: Int) throws -> Data? {
    var bytes = Data()
    while bytes.count < count {
      let piece: Data
      do {
        piece = try handle.read(upToCount: count - bytes.count) ?? Data()
      } catch {
        throw unreadable(error)
      }
      guard !piece.isEmpty else { return nil }
      if bytes.isEmpty { bytes = piece } else { bytes.append(piece) }
    }
    offset += Int64(count)
    try progress(offset)
    return bytes
  }

  private func ended() -> BackupError { damaged("it ends early") }

  private func damaged(_ what: String) -> BackupError {
    BackupError(.damaged, "The backup \(path) is damaged: \(what).")
  }

  private func unreadable(_ error: any Error) -> BackupError {
    BackupError(.inputOutput, "The backup \(path) can't be read.", cause: error)
  }
}
#endif
