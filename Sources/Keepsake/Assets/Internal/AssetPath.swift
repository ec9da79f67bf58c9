import Foundation
import KeepsakeReplication

/// The path of an asset in its folder: plain names joined by `/`, the same file on every platform.
///
/// A value of this type is safe to follow from the folder, even if it comes from a hostile manifest: it is relative,
/// has no empty part, no `.` or `..`, nothing that Windows takes for a drive, a device or a separator, no control
/// character, and its length is limited.
struct AssetPath: Hashable, Sendable {
  /// Longer than any game needs, and short enough that most systems accept a whole path of this length.
  static let maximumBytes = 1_024
  /// File systems allow 255; the rest is left for tools that pack the files under longer names.
  static let maximumPartBytes = 240
  /// Deep enough for any game, shallow enough that a walk can't run out of descriptors.
  static let maximumParts = 32

  /// In Unicode's form NFC.
  let text: String

  /// Split by bytes: as characters, a separator followed by a combining mark is another character.
  var parts: [String] { text.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) } }

  /// A form that is equal for names that are the same on systems that ignore case.
  var folded: String { Self.folded(text) }

  static func folded(_ text: String) -> String { text.lowercased().canonical }

  /// Makes a path that the game supplies. It may be in another of Unicode's normalization forms.
  init(_ text: String) throws(AssetError) {
    if let reason = Self.reason(against: text) ?? Self.reason(against: text.canonical) {
      throw AssetError(.refusedPath, "\(Self.shown(text)) can't be an asset's path: \(reason)", path: text)
    }
    self.text = text.canonical
  }

  /// Makes a path from a manifest or the disk, where only one spelling is allowed. Returns nil and a reason for any
  /// other.
  static func exact(_ text: String) -> (path: AssetPath?, reason: String) {
    if let reason = reason(against: text) { return (nil, reason) }
    guard text.utf8.elementsEqual(text.canonical.utf8) else {
      return (nil, "it isn't in Unicode's normalization form NFC; rename it, typing the name again")
    }
    return (AssetPath(checked: text), "")
  }

  private init(checked text: String) { self.text = text }

  /// Why `text` can't be a path; nil if it can.
  private static func reason(against text: String) -> String? {
    guard !text.isEmpty else { return "it is empty" }
    guard text.utf8.count <= maximumBytes else {
      return "it has \(text.utf8.count) bytes; at most \(maximumBytes) are allowed"
    }
    guard text.utf8.first != UInt8(ascii: "/") else {
      return "it begins at the root; paths begin in the folder of the assets"
    }
    for scalar in text.unicodeScalars {
      if let reason = reason(against: scalar) { return reason }
    }
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count <= maximumParts else { return "it has \(parts.count) parts; at most \(maximumParts) are allowed" }
    for part in parts {
      if let reason = reason(againstPart: part) { return reason }
    }
    return nil
  }

  private static func reason(against scalar: Unicode.Scalar) -> String? {
    switch scalar {
    case "\\": return "it has a backslash; parts are separated by /"
    case ":": return "it has a colon, which marks a drive or a stream on Windows"
    case "\0": return "it has a NUL"
    case "/": break
    default:
      if WindowsName.reservedCharacters.contains(scalar) { return "Windows doesn't allow \(scalar) in names" }
    }
    if scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) { return "it has a control character" }
    // Two paths could look alike and differ, or be displayed in another order.
    let category = scalar.properties.generalCategory
    if category == .lineSeparator || category == .paragraphSeparator { return "it has a line separator" }
    if scalar.properties.isBidiControl { return "it has a character that changes the direction of writing" }
    return nil
  }

  private static func reason(againstPart part: Substring.UTF8View) -> String? {
    guard let first = part.first, let last = part.last else { return "a part of it is empty" }
    let name = String(Substring(part))
    if name == "." || name == ".." { return "it has a part \"\(name)\", which would lead out of the folder" }
    if first == UInt8(ascii: ".") { return "a name that begins with a dot is hidden, and can't be an asset" }
    if last == UInt8(ascii: ".") || last == UInt8(ascii: " ") {
      return "Windows doesn't allow a name that ends with a dot or a space"
    }
    if part.count > maximumPartBytes {
      return "a part of it has \(part.count) bytes; at most \(maximumPartBytes) are allowed"
    }
    if WindowsName.isDevice(name) { return "\"\(name)\" is a device on Windows" }
    return nil
  }

  /// Longer names are truncated in messages.
  private static let shownScalars = 160

  /// Returns text that is safe for a terminal and short enough for one line: control characters and direction marks are
  /// escaped.
  static func shown(_ text: String) -> String {
    var result = ""
    for (count, scalar) in text.unicodeScalars.enumerated() {
      guard count < shownScalars else { return "\"\(result)...\"" }
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate:
        result += "\\u{\(String(scalar.value, radix: 16))}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return "\"\(result)\""
  }
}
