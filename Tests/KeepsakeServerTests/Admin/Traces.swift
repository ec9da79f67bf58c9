import Foundation
import TestSupport

/// Searches a folder's files for bytes.
enum Traces {
  /// Returns the names of the files below `folder` that have any of these, in their bytes or in their names, with
  /// which.
  static func files(of folder: URL, having marks: [Data]) throws -> [String] {
    var found: [String] = []
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
    for name in names {
      let url = folder.appendingPathComponent(name)
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else { continue }
      let bytes = Data(name.utf8) + (isFolder.boolValue ? Data() : try Data(contentsOf: url))
      for (index, mark) in marks.enumerated() where bytes.range(of: mark) != nil { found.append("\(name) \(index)") }
    }
    return found
  }
}

extension Traces {
  /// Returns how often `mark` is in the files below `folder`.
  static func count(_ mark: Data, in folder: URL) throws -> Int {
    var count = 0
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
      let url = folder.appendingPathComponent(name)
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder), !isFolder.boolValue else {
        continue
      }
      var rest = try Data(contentsOf: url)[...]
      while let found = rest.range(of: mark) {
        count += 1
        rest = rest[found.upperBound...]
      }
    }
    return count
  }
}
