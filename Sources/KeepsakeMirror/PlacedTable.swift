import Foundation
import KeepsakeReplication
import KeepsakeStore

#if canImport(Glibc)
import CDispatch  // The compiler may take this module for the one that defines Glibc's stat.
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

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
  private struct Line: Codable {
    var path: String
    var entry: PlacedEntry
  }

  let path: String
  private(set) var entries: [SavePath: PlacedEntry] = [:]
  /// Lines that could not be read.
  private(set) var damagedLines = 0
  private var file: Int32 = -1
  private var lines = 0
  /// Whether the last line may be torn: the next one must then not be appended to it.
  private var torn = false

  /// Opens the table in the folder `state`, taking for each path the newest line whose version `isKnown`.
  ///
  /// - Throws: `MirrorError`, `StoreError`, and what `isKnown` throws.
  init(state: String, isKnown: (VersionID) throws -> Bool) throws {
    path = state + "/placed.log"
    var whole = false
    if let data = try Self.load(path) { whole = try read(data, isKnown: isKnown) }
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

  mutating func record(_ entry: PlacedEntry, at path: SavePath) throws {
    // Before the entry changes: the version that it names may not get committed, and then the former entry has to be
    // found.
    if torn || lines > entries.count + Self.slack { try rewrite() }
    entries[path] = entry
    var line = try Self.encoder.encode(Line(path: path.text, entry: entry))
    line.append(UInt8(ascii: "\n"))
    try append(line)
    lines += 1
  }

  /// Undoes the recording of a version that could not be committed.
  mutating func restore(_ former: PlacedEntry?, at path: SavePath) throws {
    entries[path] = former
    if let former { try record(former, at: path) }
  }

  /// Returns whether the log can be appended to as it is.
  private mutating func read(_ data: Data, isKnown: (VersionID) throws -> Bool) throws -> Bool {
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
      let line: Line
      let path: SavePath
      do {
        line = try decoder.decode(Line.self, from: part)
        path = try SavePath(line.path)
      } catch {
        damagedLines += 1
        continue
      }
      lines += 1
      said[path, default: []].append(line.entry)
    }
    for (path, lines) in said {
      entries[path] = try lines.last { try isKnown($0.version) }
    }
    return damagedLines == 0 && data.last == UInt8(ascii: "\n")
  }

  private mutating func rewrite() throws {
    var data = try Self.encoder.encode(Header(placed: Self.format))
    data.append(UInt8(ascii: "\n"))
    for path in paths {
      guard let entry = entries[path] else { continue }
      data.append(try Self.encoder.encode(Line(path: path.text, entry: entry)))
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

  private mutating func append(_ line: Data) throws(MirrorError) {
    // In one call: a crash of this process leaves the line whole or absent. A full disk may leave a part of it, which
    // the next reading treats as damage of that line alone.
    let file = file
    let count = line.withUnsafeBytes { buffer in
      #if canImport(Glibc)
      Glibc.write(file, buffer.baseAddress, buffer.count)
      #elseif canImport(Musl)
      Musl.write(file, buffer.baseAddress, buffer.count)
      #else
      Darwin.write(file, buffer.baseAddress, buffer.count)
      #endif
    }
    guard count == line.count else {
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

  private static var encoder: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}
