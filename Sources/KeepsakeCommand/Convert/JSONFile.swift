#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInterchange

/// Converts the values of property lists to JSON and back: what both formats have, in the same order.
enum JSONFile {
  /// Reads JSON. Numbers without a fraction or an exponent are integers.
  ///
  /// - Throws: `StructuredFileError` with the line and the column, also for a number that is too large.
  static func read(_ data: Data) throws -> PropertyList { list(try JSONReader.read(data)) }

  /// Reads JSON5 in the same way.
  static func readJSON5(_ data: Data) throws -> PropertyList { list(try JSONReader.readJSON5(data)) }

  /// Recurses once per level; the reader allows a few hundred.
  private static func list(_ value: JSONTree) -> PropertyList {
    switch value {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .string(let text): return .string(text)
    case .array(let elements): return .array(elements.map(list))
    case .object(let members): return .dictionary(members.map { .init($0.name, list($0.value)) })
    case .integer(let integer): return .integer(integer)
    case .number(let number): return .number(number)
    }
  }

  /// Writes indented JSON, one value per line, in the order of the values.
  ///
  /// - Throws: `CommandFailure` for what JSON doesn't have.
  static func write(_ list: PropertyList) throws -> Data {
    var json = JSONWriter()
    try write(list, 0, &json)
    return Data(json.bytes + [UInt8(ascii: "\n")])
  }

  private static func write(_ list: PropertyList, _ depth: Int, _ json: inout JSONWriter) throws {
    guard depth <= PlainForm.maximumDepth else {
      throw CommandFailure(.data, "values are nested more than \(PlainForm.maximumDepth) levels deep")
    }
    switch list {
    case .null: json.null()
    case .bool(let value): json.value(value)
    case .integer(let value): json.value(value)
    case .number(let value) where value.isFinite: json.value(value)
    case .string(let text): json.value(text)
    case .array(let elements):
      json.beginArray()
      for element in elements { try write(element, depth + 1, &json) }
      json.end()
    case .dictionary(let entries):
      json.beginObject()
      for entry in entries {
        json.key(entry.key)
        try write(entry.value, depth + 1, &json)
      }
      json.end()
    case .number, .float, .data, .date, .uid, .set:
      throw CommandFailure(.software, "internal error: a value is left that JSON doesn't have")
    }
  }
}
#endif
