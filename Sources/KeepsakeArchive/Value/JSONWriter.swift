package import Foundation

/// Writes JSON, indented and with one value per line, or all of it on one line, without recursion: the encoders of
/// Foundation recurse for each level, and archives may be deeply nested. All JSON that tools print is laid out here.
///
/// The caller must follow JSON's grammar; keys are written in the order of the calls.
package struct JSONWriter {
  package private(set) var bytes: [UInt8] = []
  private let isOnOneLine: Bool
  /// For each open object or array: whether it is still empty, and its closing bracket.
  private var open: [(isEmpty: Bool, closer: UInt8)] = []
  private var followsKey = false
  /// Deeper levels aren't indented further, because a forged archive could otherwise fill the memory with spaces.
  private static let deepestIndent = 64

  /// - Parameter isOnOneLine: Whether there is no space between the values.
  package init(isOnOneLine: Bool = false) {
    self.isOnOneLine = isOnOneLine
  }

  /// Returns what was written since the last call, so that a long document needn't be in memory as a whole.
  package mutating func take() -> Data {
    defer { bytes = [] }
    return Data(bytes)
  }

  package mutating func beginObject() { begin("{", "}") }
  package mutating func beginArray() { begin("[", "]") }

  package mutating func end() {
    guard let last = open.popLast() else { return }
    if !last.isEmpty { newLine() }
    bytes.append(last.closer)
  }

  package mutating func key(_ text: String) {
    separate()
    string(text)
    bytes.append(UInt8(ascii: ":"))
    if !isOnOneLine { bytes.append(0x20) }
    followsKey = true
  }

  package mutating func value(_ text: String) {
    separate()
    string(text)
  }

  package mutating func value(_ value: some BinaryInteger) { raw("\(value)") }
  package mutating func value(_ value: Bool) { raw(value ? "true" : "false") }
  package mutating func null() { raw("null") }

  /// Writes a number. Infinity and NaN, which JSON doesn't have, are written as strings.
  package mutating func value(_ number: Double) {
    if number.isFinite { raw("\(number)") } else { value("\(number)") }
  }

  private mutating func begin(_ opener: Unicode.Scalar, _ closer: Unicode.Scalar) {
    separate()
    bytes.append(UInt8(ascii: opener))
    open.append((true, UInt8(ascii: closer)))
  }

  private mutating func raw(_ text: String) { token(text.utf8) }

  /// Writes a number, `true`, `false` or `null` as it is.
  mutating func token(_ text: some Collection<UInt8>) {
    separate()
    bytes += text
  }

  private mutating func separate() {
    if followsKey {
      followsKey = false
      return
    }
    guard let last = open.last else { return }
    if !last.isEmpty { bytes.append(UInt8(ascii: ",")) }
    open[open.count - 1].isEmpty = false
    newLine()
  }

  private mutating func newLine() {
    guard !isOnOneLine else { return }
    bytes.append(UInt8(ascii: "\n"))
    for _ in 0..<min(open.count, Self.deepestIndent) { bytes += [0x20, 0x20] }
  }

  private mutating func string(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": bytes += "\\\"".utf8
      case "\\": bytes += "\\\\".utf8
      case "\n": bytes += "\\n".utf8
      case "\r": bytes += "\\r".utf8
      case "\t": bytes += "\\t".utf8
      // Terminals also interpret the later ones as commands, and some change the direction of the text that follows.
      case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}", "\u{2028}",
        "\u{2029}":
        let digits = String(scalar.value, radix: 16)
        bytes += ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
      default: bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
