import Foundation
import KeepsakeArchive

/// The actual contents of a file, for messages that name the value found instead of the expected one. Read only when
/// there is an error to explain.
struct StructuredTree {
  private let root: Any

  /// Returns nil if the bytes aren't a file of the format.
  init?(_ bytes: Data, _ format: StructuredFile.Format) {
    do {
      switch format {
      case .json, .json5: root = try JSONSerialization.jsonObject(with: bytes, options: [.fragmentsAllowed])
      case .propertyList: root = try PropertyListSerialization.propertyList(from: bytes, format: nil)
      }
    } catch {
      return nil
    }
  }

  /// Returns the value at a path; nil if there is none.
  private func value(at path: [any CodingKey]) -> Any? {
    var value = root
    for key in path {
      if let list = value as? [Any], let index = key.intValue, list.indices.contains(index) {
        value = list[index]
      } else if let dictionary = value as? [String: Any], let next = dictionary[key.stringValue] {
        value = next
      } else {
        return nil
      }
    }
    return value
  }

  /// Returns the value at a path as it is written, shortened; nil if there is none.
  func description(at path: [any CodingKey]) -> String? {
    guard let value = value(at: path) else { return nil }
    switch value {
    case is NSNull: return "null"
    case let text as String: return Self.quoted(text)
    case let list as [Any]: return "a list of \(list.count)"
    case is [String: Any]: return "a dictionary"
    case let data as Data: return "\(data.count) bytes of data"
    case let date as Date: return "the date \(date.ISO8601Format())"
    case let number as NSNumber: return Self.isBool(number) ? (number.boolValue ? "true" : "false") : "\(number)"
    default: return "\(value)"
    }
  }

  /// Returns the name in the dictionary at a path that is most like a missing one, quoted: perhaps it is misspelt. Only
  /// names that the type doesn't know, as its coding keys say; nil if there is none.
  func unknownName(like missing: any CodingKey, at path: [any CodingKey]) -> String? {
    func isKnown<Key: CodingKey>(_ key: Key, _ name: String) -> Bool { Key(stringValue: name) != nil }
    guard let dictionary = value(at: path) as? [String: Any] else { return nil }
    let wanted = missing.stringValue.lowercased().prefix(40)
    // Comparing takes time, and among more names than this nobody looks for one.
    let unknown = dictionary.keys.filter { !isKnown(missing, $0) }.sorted().prefix(100)
    func distance(_ name: String) -> Int { name.lowercased().prefix(40).difference(from: wanted).count }
    return unknown.min { distance($0) < distance($1) }.map(Self.quoted)
  }

  private static func quoted(_ text: String) -> String { "\"\(text.prefix(40))\(text.count > 40 ? "..." : "")\"" }

  /// Returns which number doesn't fit into its type, as the archive's decoder for `Codable` types finds it; nil if it
  /// doesn't. Foundation's JSON decoder on Linux doesn't report which number is too large or not an integer.
  func unfitNumber<Value: Decodable>(in type: Value.Type) -> StructuredFileError? {
    do {
      let bytes = try CodedBytes(encoding: Branch(value: root), limits: .standard)
      _ = try bytes.decodeAsCodable(type, limits: .standard)
    } catch DecodingError.dataCorrupted(let context) {
      guard let misfit = context.underlyingError as? NumberMisfit,
        let number = value(at: context.codingPath) as? NSNumber
      else { return nil }
      return StructuredFileError(unfitFor: misfit.type, number, at: context.codingPath)
    } catch {
      // Something else, which this decoder reads in another form, or the game's own `init(from:)`: already explained.
    }
    return nil
  }

  private struct Branch: Encodable {
    let value: Any

    func encode(to encoder: any Encoder) throws {
      switch value {
      case let list as [Any]: try list.map(Branch.init).encode(to: encoder)
      case let dictionary as [String: Any]: try dictionary.mapValues(Branch.init).encode(to: encoder)
      case let text as String: try text.encode(to: encoder)
      case let number as NSNumber where StructuredTree.isBool(number): try number.boolValue.encode(to: encoder)
      case let number as NSNumber:
        if let whole = Int64("\(number)") {
          try whole.encode(to: encoder)
        } else if let whole = UInt64("\(number)") {
          try whole.encode(to: encoder)
        } else {
          try number.doubleValue.encode(to: encoder)
        }
      case let date as Date: try date.encode(to: encoder)
      case let data as Data: try data.encode(to: encoder)
      default:
        var container = encoder.singleValueContainer()
        try container.encodeNil()
      }
    }
  }

  /// Foundation represents a Boolean as a number of the C type "c".
  private static func isBool(_ number: NSNumber) -> Bool { number.objCType.pointee == CChar(UInt8(ascii: "c")) }
}
