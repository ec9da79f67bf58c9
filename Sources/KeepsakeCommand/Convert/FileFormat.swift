#if Cloud
import ArgumentParser
import Foundation

/// A format that `keepsake convert` writes.
enum FileFormat: String, CaseIterable, ExpressibleByArgument, Codable, Sendable {
  /// Keepsake's own format.
  case archive
  case json
  /// An XML property list.
  case xml
  /// A binary property list.
  case binary
  /// A binary property list of objects, as NSKeyedArchiver writes.
  case keyed

  /// Creates the format of a file's extension; nil if the extension is unknown.
  init?(path: String) {
    switch URL(fileURLWithPath: path).pathExtension.lowercased() {
    case "keepsake": self = .archive
    case "json": self = .json
    case "plist", "xml": self = .xml
    case "bplist": self = .binary
    case "archive", "keyedarchive": self = .keyed
    default: return nil
    }
  }

  /// What the names of files in this format end with, after the dot.
  var fileExtension: String {
    switch self {
    case .archive: "keepsake"
    case .json: "json"
    case .xml: "plist"
    case .binary: "bplist"
    case .keyed: "archive"
    }
  }

  var words: String {
    switch self {
    case .archive: "archive"
    case .json: "JSON"
    case .xml: "XML property list"
    case .binary: "binary property list"
    case .keyed: "keyed archive"
    }
  }

  /// Whether it holds only values, lists and dictionaries, and neither types nor objects.
  var isPlain: Bool { self == .json || self == .xml || self == .binary }
}
#endif
