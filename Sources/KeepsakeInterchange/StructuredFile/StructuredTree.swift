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

  /// Returns the value at a path as it is written, shortened; nil if there is none.
  func description(at path: [any CodingKey]) -> String? {
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
    switch value {
    case is NSNull: return "null"
    case let text as String: return "\"\(text.prefix(40))\(text.count > 40 ? "..." : "")\""
    case let list as [Any]: return "a list of \(list.count)"
    case is [String: Any]: return "a dictionary"
    case let data as Data: return "\(data.count) bytes of data"
    case let date as Date: return "the date \(date.ISO8601Format())"
    case let number as NSNumber: return Self.isBool(number) ? (number.boolValue ? "true" : "false") : "\(number)"
    default: return "\(value)"
    }
  }

  /// Returns where and why the tree doesn't fit a type, as reported by the archive's decoder for `Codable` types; nil
  /// if it reports nothing. Foundation's JSON decoder on Linux doesn't report which number is too large or not an
  /// integer.
  func misfit<Value: Decodable>(of type: Value.Type) -> StructuredFileError? {
    do {
      _ = try CodedBytes(encoding: Branch(value: root), limits: .standard).decode(type, limits: .standard)
      return nil
    } catch let error as ArchiveError {
      return error.field.map { StructuredFileError(.mismatch, path: $0, error.message) }
    } catch {
      return nil  // The game's own `init(from:)` has said so already.
    }
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
