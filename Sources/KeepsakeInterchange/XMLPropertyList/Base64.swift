import Foundation

/// Data in XML: base64, with white space anywhere.
enum Base64 {
  /// Returns nil if there are any other characters.
  static func data(_ text: String) -> Data? {
    let letters = text.utf8.filter { !XMLText.isSpace($0) }
    return Data(base64Encoded: Data(letters))
  }

  /// Returns base64 in lines, as Apple's writers do.
  static func lines(_ data: Data) -> [Substring] {
    let text = data.base64EncodedString()
    var lines: [Substring] = []
    var rest = text[...]
    while !rest.isEmpty {
      lines.append(rest.prefix(lineLength))
      rest = rest.dropFirst(lineLength)
    }
    return lines
  }

  private static let lineLength = 76
}
