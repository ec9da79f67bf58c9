#if Cloud
import Foundation
import KeepsakeInterchange

/// Property lists in the text format of OpenStep, read by Foundation: texts, data, lists and dictionaries.
enum OpenStepFile {
  static let words = "OpenStep property list"
  /// Foundation takes several times the bytes of the file.
  private static let maximumBytes = 64 << 20

  /// Whether a file begins like one, and not like JSON: with a list in parentheses, or a comment.
  static func begins(_ data: Data) -> Bool {
    let text = data.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    return ["(", "/*", "//"].contains { text.starts(with: $0.utf8) }
  }

  /// Returns the list or dictionary in a file, with keys in alphabetical order; nil for any other file. Of a key that
  /// occurs twice, the last value counts.
  static func read(_ data: Data) -> PropertyList? {
    // Foundation writes to standard error where a semicolon is missing. A dictionary without any isn't one.
    guard data.count <= maximumBytes, begins(data) || data.contains(UInt8(ascii: ";")) else { return nil }
    do {
      var format = PropertyListSerialization.PropertyListFormat.openStep
      let value = try PropertyListSerialization.propertyList(from: data, options: [], format: &format)
      guard format == .openStep, let list = list(value) else { return nil }
      switch list {
      case .array: return list
      // A comment alone would be an empty dictionary.
      case .dictionary(let entries): return entries.isEmpty ? nil : list
      default: return nil
      }
    } catch {
      return nil  // The only question is whether.
    }
  }

  /// Recurses once per level; Foundation allows 512.
  private static func list(_ value: Any) -> PropertyList? {
    switch value {
    case let text as String: return .string(text)
    case let data as Data: return .data(data)
    case let elements as [Any]:
      let lists = elements.compactMap(list)
      return lists.count == elements.count ? .array(lists) : nil
    case let members as [String: Any]:
      let entries = members.sorted { $0.key < $1.key }
        .compactMap { key, value in list(value).map { PropertyList.Entry(key, $0) } }
      return entries.count == members.count ? .dictionary(entries) : nil
    default: return nil
    }
  }
}
#endif
