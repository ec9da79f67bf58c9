#if Cloud
import Foundation
import KeepsakePlatform
import KeepsakeReplication
import KeepsakeStore
/// A file or folder that is left out because it can't be read.
struct SkippedEntry: Encodable {
  var path: String
  var failure: CommandFailure

  private enum CodingKeys: CodingKey {
    case path, error
  }

  init(_ url: URL, _ error: any Error) {
    path = url.relativePath
    failure = CommandFailure(error)
    // The path is there already.
    for start in [path + ": ", url.path + ": "] where failure.message.hasPrefix(start) {
      failure.message.removeFirst(start.count)
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(path, forKey: .path)
    try container.encode(ErrorReport.Body(failure), forKey: .error)
  }

  var line: String { "skipped \(Printable.text(path)): \(Printable.text(failure.message))" }
}

/// Files that are versions of one save, oldest first.
struct SaveSeries {
  /// The folder, or the first of the files, as it was named.
  var path: String
  var name: String
  var files: [URL]

  /// What was found in folders.
  struct Found {
    var series: [SaveSeries] = []
    /// What can't be read.
    var skipped: [SkippedEntry] = []
  }

  /// Returns the series among the paths of the command line.
  ///
  /// - Throws: `CommandFailure` if there is none, or for a path that can't be read.
  static func find(_ paths: [String]) throws -> Found {
    var named: [(path: String, url: URL)] = []
    var found = Found()
    for path in paths {
      let url = URL(fileURLWithPath: path)
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
        throw CommandFailure.nothing(at: path)
      }
      if isFolder.boolValue {
        try find(in: url, path, &found)
      } else {
        try check(url)
        named.append((path, url))
      }
    }
    if let first = named.first {
      let series = SaveSeries(path: first.path, name: first.url.lastPathComponent, files: named.map(\.url))
      found.series.insert(series, at: 0)
    }
    guard !found.series.isEmpty else {
      if let worst = found.skipped.max(by: { $0.failure.kind.rawValue < $1.failure.kind.rawValue }) {
        var failure = worst.failure
        failure.message = "\(worst.path): \(failure.message)"
        throw failure
      }
      throw CommandFailure(
        .noInput, "no file was found in what was named, apart from Keepsake's own",
        next: "name the versions of a save, or their folder")
    }
    return found
  }

  /// Adds the series in a folder and everything below it: one for all names that differ only in their last number.
  /// Folders of Keepsake's own are left out. What can't be read is skipped, except for the folder itself.
  private static func find(in folder: URL, _ path: String, _ found: inout Found) throws {
    var groups: [String: [(number: String, url: URL)]] = [:]
    var open = [""]
    while let place = open.popLast() {
      let url = place.isEmpty ? folder : folder.appendingPathComponent(place)
      guard !FileManager.default.fileExists(atPath: url.path + "/" + Store.databaseName) else { continue }
      let names: [String]
      do {
        names = try FileManager.default.contentsOfDirectory(atPath: url.path)
      } catch {
        guard !place.isEmpty else { throw error }
        found.skipped.append(SkippedEntry(url, error))
        continue
      }
      for name in names where name != SyncState.folderName {
        let inner = place.isEmpty ? name : place + "/" + name
        // It looks whether it is a folder, unless it is told.
        let url = folder.appendingPathComponent(inner, isDirectory: false)
        do {
          // Foundation can't name such a file again.
          guard !name.contains("\u{FFFD}") else { throw CommandFailure.undecodableName }
          var status = stat()
          guard lstat(url.path, &status) == 0 else {
            let number = errno
            throw CommandFailure(system: number, "\(url.path): \(String(cString: strerror(number)))")
          }
          if status.st_mode & S_IFMT == S_IFDIR { open.append(inner) }
          guard status.st_mode & S_IFMT == S_IFREG else { continue }
          try check(url)
          let (group, number) = split(inner)
          groups[group, default: []].append((number, url))
        } catch {
          found.skipped.append(SkippedEntry(url, error))
        }
      }
    }
    found.skipped.sort { $0.path < $1.path }
    found.series += groups.sorted { $0.key < $1.key }.map { name, files in
      SaveSeries(path: path, name: name, files: files.sorted { isBefore($0.number, $1.number) }.map(\.url))
    }
  }

  /// Ensures that a file can be a version of a save.
  private static func check(_ url: URL) throws {
    // Without blocking, so that a pipe without a writer doesn't hold up the command.
    let file = open(url.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else {
      let number = errno
      let reason = String(cString: strerror(number))
      throw CommandFailure(system: number, "\(url.relativePath): it can't be opened: \(reason)")
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw CommandFailure(
        .data, "\(url.relativePath): it is neither a regular file nor a folder", next: "name the versions of a save")
    }
    guard status.st_size <= EncodedContent.maximumContentBytes else {
      let limit = Printable.size(Int64(EncodedContent.maximumContentBytes))
      throw CommandFailure(
        .data, "\(url.relativePath): it has \(Printable.size(Int64(status.st_size))); a save has at most \(limit)")
    }
  }

  /// Returns a name without its last number, and the number.
  private static func split(_ name: String) -> (String, String) {
    guard let end = name.lastIndex(where: \.isASCIIDigit) else { return (name, "") }
    let start = name[...end].lastIndex { !$0.isASCIIDigit }.map { name.index(after: $0) } ?? name.startIndex
    return (name[..<start] + "#" + name[name.index(after: end)...], String(name[start...end]))
  }

  /// Compares them as numbers, however long they are.
  private static func isBefore(_ one: String, _ other: String) -> Bool {
    let (left, right) = (one.drop { $0 == "0" }, other.drop { $0 == "0" })
    return left.count == right.count ? left < right : left.count < right.count
  }
}

extension Character {
  fileprivate var isASCIIDigit: Bool { isASCII && isWholeNumber }
}
#endif
