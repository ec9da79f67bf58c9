import Foundation
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore

/// The version whose bytes are on the disk at a path.
struct PlacedEntry: Hashable, Sendable, Codable {
  /// The version; a tombstone's if the file is gone.
  var version: VersionID
  /// Every head at the time when this version was chosen: what the next change of the file covers.
  var shown: [VersionID]
  /// The hash of the bytes; nil for a tombstone.
  var hash: ContentHash?
  /// The file's signature when its bytes were last known to have this hash; nil until they were read after being
  /// placed.
  var signature: FileSignature?
  /// `shown` of the previous entry: what is covered by a change to the file that this one replaced.
  var before: [VersionID]

  /// What takes an entry's place if the file counts as never placed: an entry that shows nothing.
  var forgotten: PlacedEntry {
    PlacedEntry(version: version, shown: [], hash: nil, signature: nil, before: [])
  }
  var isForgotten: Bool { shown.isEmpty }
}

/// The table of what is placed where, kept as a log in which each line replaces the earlier ones of its path.
///
/// A line is written *before* the version that it names is committed, and counts only if the store knows that version;
/// so the table never falls behind the store. It is not synced to the disk: a line that is lost in a power cut is
/// replaced by comparing the file with the versions in the store.
struct PlacedTable: ~Copyable {
  /// Written in the first line. A table from a newer version is left alone.
  static let format = 1
  /// A larger log is not from this program.
  static let maximumBytes: Int64 = 1 << 30
  /// The number of lines beyond the number of paths, before the log is rewritten.
  static let slack = 4_000

  private struct Header: Codable { var placed: Int }

  let path: String
  private(set) var entries: [SavePath: PlacedEntry] = [:]
  /// Lines that could not be read.
  private(set) var damagedLines = 0
  private var file: Int32 = -1
  private var lines = 0
  /// Whether the last line may be torn: the next one must then not be appended to it.
  private var torn = false
  private let encoder = JSONEncoder()

  /// Opens the table in the folder `state`, taking for each path the newest line whose version is known.
  ///
  /// - Parameter known: Returns those of some versions that are known.
  /// - Throws: `MirrorError`, `StoreError`, and what `known` throws.
  init(state: String, known: (Set<VersionID>) throws -> Set<VersionID>) throws {
    path = state + "/placed.log"
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var whole = false
    if let data = try Self.load(path) { whole = try read(data, known: known) }
    if whole {
      try openForAppending()
    } else {
      try rewrite()
    }
  }

  deinit {
    if file >= 0 { close(file) }
  }

  subscript(path: SavePath) -> PlacedEntry? { entries[path] }

  /// All paths, sorted.
  var paths: [SavePath] { entries.keys.sorted() }

  mutating func record(_ entry: PlacedEntry, at path: SavePath) throws { try record([(path, entry)]) }

  /// Records entries with one write. All that one transaction commits is recorded at once: the table may be rewritten
  /// before, when no entry of a version may be in it that isn't committed yet.
  mutating func record(_ changed: [(path: SavePath, entry: PlacedEntry)]) throws {
    // Before the entries change: the versions that they name may not get committed, and then the former entries have to
    // be found.
    if changed.isEmpty { return }
    if torn || lines > entries.count + Self.slack { try rewrite() }
    var written = Data()
    for (path, entry) in changed {
      entries[path] = entry
      written.append(try PlacedLine(path: path.text, entry: entry).json(encoder))
      written.append(UInt8(ascii: "\n"))
    }
    try append(written)
    lines += changed.count
  }

  /// Undoes the recording of versions that could not be committed.
  mutating func restore(_ former: [(path: SavePath, entry: PlacedEntry?)]) throws {
    // All of them before the first is written, which may write the whole table.
    for (path, entry) in former { entries[path] = entry }
    try record(former.compactMap { path, entry in entry.map { (path, $0) } })
  }

  /// Takes files for ones that were never placed.
  mutating func forget(_ paths: [SavePath]) throws {
    try record(paths.compactMap { path in entries[path].map { (path, $0.forgotten) } })
    for path in paths { entries[path] = nil }
  }

  /// Returns whether the log can be appended to as it is.
  private mutating func read(_ data: Data, known: (Set<VersionID>) throws -> Set<VersionID>) throws -> Bool {
    let parts = data.split(separator: UInt8(ascii: "\n"))
    guard let first = parts.first else { return false }
    let decoder = JSONDecoder()
    let header: Header
    do {
      header = try decoder.decode(Header.self, from: first)
    } catch {
      damagedLines = parts.count
      return false
    }
    guard header.placed <= Self.format else {
      throw MirrorError(.newer, "this folder was synced by a newer version of keepsake; use that version", path: path)
    }
    var said: [SavePath: [PlacedEntry]] = [:]
    for part in parts.dropFirst() {
      let line: PlacedLine
      let path: SavePath
      do {
        line = try PlacedLine(part, decoder)
        path = try SavePath(line.path)
      } catch {
        damagedLines += 1
        continue
      }
      lines += 1
      said[path, default: []].append(line.entry)
    }
    let known = try known(Set(said.values.joined().map(\.version)))
    for (path, lines) in said {
      guard let entry = lines.last(where: { known.contains($0.version) }), !entry.isForgotten else { continue }
      entries[path] = entry
    }
    return damagedLines == 0 && data.last == UInt8(ascii: "\n")
  }

  private mutating func rewrite() throws {
    var data = try encoder.encode(Header(placed: Self.format))
    data.append(UInt8(ascii: "\n"))
    for path in paths {
      guard let entry = entries[path] else { continue }
      data.append(try PlacedLine(path: path.text, entry: entry).json(encoder))
      data.append(UInt8(ascii: "\n"))
    }
    try AtomicFile.write(data, to: URL(fileURLWithPath: path))
    lines = entries.count
    torn = false
    try openForAppending()
  }

  private mutating func openForAppending() throws(MirrorError) {
    if file >= 0 { close(file) }
    file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
    guard file >= 0 else { throw .system("open the table of written files", errno, path: path) }
  }

  private mutating func append(_ lines: Data) throws(MirrorError) {
    // In one call. A full disk, or the end of this process in the middle of it, may leave a part of the lines, which
    // the next reading treats as damage of the last line alone: nothing of them is committed yet.
    let file = file
    let count = lines.withUnsafeBytes { SystemCall.write(file, $0.baseAddress, $0.count) }
    guard count == lines.count else {
      torn = true
      throw .system("record a written file", count < 0 ? errno : ENOSPC, path: path)
    }
  }

  private static func load(_ path: String) throws -> Data? {
    var status = stat()
    guard stat(path, &status) == 0 else {
      guard errno == ENOENT else { throw MirrorError.system("examine the table of written files", errno, path: path) }
      return nil
    }
    guard Int64(status.st_size) <= maximumBytes else {
      throw MirrorError(.tooLarge, "this can't be the table of written files: it is too large", path: path)
    }
    return try Data(contentsOf: URL(fileURLWithPath: path))
  }
}
