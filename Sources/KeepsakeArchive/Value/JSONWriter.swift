/// Writes JSON without recursion: the encoders that come with Swift take stack for each level, and archives may nest deep.
///
/// The caller keeps to JSON's grammar; keys come in the order in which they are given.
package struct JSONWriter {
  package private(set) var bytes: [UInt8] = []
  /// Of each open object or array: whether nothing is in it yet, and its closing bracket.
  private var open: [(isEmpty: Bool, closer: UInt8)] = []
  private var followsKey = false
  /// What is nested deeper isn't moved farther to the right: a forged archive could fill the memory with spaces.
  private static let deepestIndent = 64

  package init() {}

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
    bytes += [UInt8(ascii: ":"), UInt8(ascii: " ")]
    followsKey = true
  }

  package mutating func value(_ text: String) {
    separate()
    string(text)
  }

  package mutating func value(_ value: some BinaryInteger) { raw("\(value)") }
  package mutating func value(_ value: Bool) { raw(value ? "true" : "false") }
  package mutating func null() { raw("null") }

  /// Infinity and not-a-number, which JSON doesn't have, are strings.
  package mutating func value(_ number: Double) {
    if number.isFinite { raw("\(number)") } else { value("\(number)") }
  }

  private mutating func begin(_ opener: Unicode.Scalar, _ closer: Unicode.Scalar) {
    separate()
    bytes.append(UInt8(ascii: opener))
    open.append((true, UInt8(ascii: closer)))
  }

  private mutating func raw(_ text: String) {
    separate()
    bytes += text.utf8
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
    bytes.append(UInt8(ascii: "\n"))
    for _ in 0..<min(open.count, Self.deepestIndent) { bytes += [0x20, 0x20] }
  }

  private mutating func string(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\n"): bytes += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
      case 0..<0x20, 0x7F:
        let digits = String(byte, radix: 16)
        bytes += "\\u00\(digits.utf8.count < 2 ? "0" : "")\(digits)".utf8
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
