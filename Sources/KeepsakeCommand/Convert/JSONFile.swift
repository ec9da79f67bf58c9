#if Cloud
import Foundation
import KeepsakeInterchange

/// A property list's values as JSON and back: what both have, in the same order.
enum JSONFile {
  /// Reads JSON. Numbers without a fraction or an exponent are integers.
  ///
  /// - Throws: `StructuredFileError` with the line; `CommandFailure` for a number that is too large.
  static func read(_ data: Data) throws -> PropertyList { try list(JSONReader.read(data)) }

  /// The same of JSON5.
  static func readJSON5(_ data: Data) throws -> PropertyList { try list(JSONReader.readJSON5(data)) }

  /// Calls itself for each level, of which the reader allows some hundred.
  private static func list(_ value: JSONTree) throws -> PropertyList {
    switch value {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .string(let text): return .string(text)
    case .array(let elements): return .array(try elements.map(list))
    case .object(let members): return .dictionary(try members.map { .init($0.name, try list($0.value)) })
    case .number(let text):
      let isWhole = text != "-0" && !text.contains { ".eE".contains($0) }
      if isWhole, let integer = Int128(text) { return .integer(integer) }
      guard !isWhole || text == "-0", let number = Double(text), number.isFinite else {
        throw CommandFailure(
          .data, "the number \(text.prefix(80)) is too large",
          next: "an integer has up to 128 bits, any other number 64; in quotation marks it is a text")
      }
      return .number(number)
    }
  }

  /// What is nested deeper isn't moved farther to the right.
  private static let deepestIndent = 64

  /// Indented, a value a line, in the order of the values.
  ///
  /// - Throws: `CommandFailure` for what JSON doesn't have.
  static func write(_ list: PropertyList) throws -> Data {
    var bytes: [UInt8] = []
    try write(list, 0, &bytes)
    bytes.append(UInt8(ascii: "\n"))
    return Data(bytes)
  }

  private static func write(_ list: PropertyList, _ depth: Int, _ bytes: inout [UInt8]) throws {
    guard depth <= PlainForm.maximumDepth else { throw CommandFailure(.data, "values are nested more than \(PlainForm.maximumDepth) deep") }
    switch list {
    case .null: bytes += "null".utf8
    case .bool(let value): bytes += (value ? "true" : "false").utf8
    case .integer(let value): bytes += "\(value)".utf8
    case .number(let value) where value.isFinite: bytes += "\(value)".utf8
    case .string(let text): write(text, &bytes)
    case .array(let elements):
      bytes.append(UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        newLine(index > 0, depth + 1, &bytes)
        try write(element, depth + 1, &bytes)
      }
      if !elements.isEmpty { newLine(false, depth, &bytes) }
      bytes.append(UInt8(ascii: "]"))
    case .dictionary(let entries):
      bytes.append(UInt8(ascii: "{"))
      for (index, entry) in entries.enumerated() {
        newLine(index > 0, depth + 1, &bytes)
        write(entry.key, &bytes)
        bytes += ": ".utf8
        try write(entry.value, depth + 1, &bytes)
      }
      if !entries.isEmpty { newLine(false, depth, &bytes) }
      bytes.append(UInt8(ascii: "}"))
    case .number, .float, .data, .date, .uid, .set: throw CommandFailure(.software, "a value was left that JSON doesn't have")
    }
  }

  private static func newLine(_ isNext: Bool, _ depth: Int, _ bytes: inout [UInt8]) {
    if isNext { bytes.append(UInt8(ascii: ",")) }
    bytes.append(UInt8(ascii: "\n"))
    for _ in 0..<min(depth, deepestIndent) { bytes += [0x20, 0x20] }
  }

  private static func write(_ text: String, _ bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": bytes += "\\\"".utf8
      case "\\": bytes += "\\\\".utf8
      case "\n": bytes += "\\n".utf8
      case "\r": bytes += "\\r".utf8
      case "\t": bytes += "\\t".utf8
      // Terminals take the later ones for commands as well, and some change the direction of what follows.
      case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}", "\u{2028}", "\u{2029}":
        let digits = String(scalar.value, radix: 16)
        bytes += ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
      default: bytes += UTF8.encode(scalar).map { Array($0) } ?? []
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
#endif
