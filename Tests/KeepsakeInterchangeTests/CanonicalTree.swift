import Crypto
import Foundation
import KeepsakeInterchange

/// A property list as the canonical JSON that `tree.py` writes, byte for byte.
enum CanonicalTree {
  static func json(_ value: PropertyList) -> String {
    switch value {
    case .null: #"["null"]"#
    case .bool(let value): #"["bool",\#(value)]"#
    case .integer(let value): #"["integer","\#(value)"]"#
    case .number(let value): number(value)
    case .float(let value): number(Double(value))
    case .string(let value): #"["string",\#(quoted(value))]"#
    case .data(let value):
      #"""
      ["data","\#(SHA256.hash(data: value).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())"]
      """#
    case .date(let value): #"["date","\#(Int((value.timeIntervalSinceReferenceDate * 1_000_000).rounded()))"]"#
    case .uid(let value): #"["uid","\#(value)"]"#
    case .array(let values), .set(let values): #"["array",[\#(values.map(json).joined(separator: ","))]]"#
    case .dictionary(let entries):
      #"["dictionary",[\#(sorted(entries).map { "[\(quoted($0.key)),\(json($0.value))]" }.joined(separator: ","))]]"#
    }
  }

  /// Sorted by key; of equal keys, the last one counts.
  private static func sorted(_ entries: [PropertyList.Entry]) -> [PropertyList.Entry] {
    Dictionary(entries.map { (Array($0.key.unicodeScalars.map(\.value)), $0) }, uniquingKeysWith: { _, last in last })
      .sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
  }

  private static func number(_ value: Double) -> String {
    let digits = String(value.bitPattern, radix: 16)
    return #"["number","\#(value.isNaN ? "nan" : String(repeating: "0", count: 16 - digits.count) + digits)"]"#
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case "\u{8}": result += "\\b"
      case "\u{C}": result += "\\f"
      case "\u{0}"..."\u{1F}": result += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
