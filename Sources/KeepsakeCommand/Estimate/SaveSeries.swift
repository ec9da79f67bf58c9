#if Cloud
import Foundation

/// Files that are versions of one save, oldest first.
struct SaveSeries {
  var name: String
  var files: [URL]

  /// Returns the series among the paths of the command line. Throws `CommandFailure` if there is none.
  static func find(_ paths: [String]) throws -> [SaveSeries] {
    var named: [URL] = []
    var series: [SaveSeries] = []
    for path in paths {
      let url = URL(fileURLWithPath: path)
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
        throw CommandFailure.nothing(at: path)
      }
      if isFolder.boolValue { series += try find(in: url) } else { named.append(url) }
    }
    if let first = named.first { series.insert(SaveSeries(name: first.lastPathComponent, files: named), at: 0) }
    guard !series.isEmpty else {
      throw CommandFailure(
        .noInput, "the named folders contain no files", next: "name the versions of a save, or their folder")
    }
    return series
  }

  /// Returns the series in a folder and everything below it: one for all names that differ only in their last number.
  private static func find(in folder: URL) throws -> [SaveSeries] {
    // An enumerator leaves out silently what it may not list.
    _ = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    guard let names = FileManager.default.enumerator(atPath: folder.path)?.allObjects as? [String] else {
      throw CommandFailure(.io, "the folder \(folder.path) can't be listed", next: "check the disk, then try again")
    }
    var groups: [String: [(number: String, url: URL)]] = [:]
    for name in names {
      let url = folder.appendingPathComponent(name)
      // Foundation can't name such a file again.
      guard !name.contains("\u{FFFD}") else {
        var failure = CommandFailure.undecodableName
        failure.message = "\(Printable.text(url.path)): \(failure.message)"
        throw failure
      }
      let values = try url.resourceValues(forKeys: [.isRegularFileKey])
      guard values.isRegularFile == true else { continue }
      let (group, number) = split(name)
      groups[group, default: []].append((number, url))
    }
    return groups.sorted { $0.key < $1.key }.map { name, files in
      SaveSeries(name: name, files: files.sorted { isBefore($0.number, $1.number) }.map(\.url))
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
