package import Foundation
import KeepsakeArchive
package import KeepsakeReplication

/// Writes scores for other programs. The same scores give the same bytes.
package enum ScoreExport {
  /// The dates that plain ISO 8601 and a property list can represent: the years 1 to 9999.
  private static let milliseconds = Int64(-62_135_596_800_000)...Int64(253_402_300_799_000)

  /// - Parameter scores: The scores of one board, best first.
  package static func data(of scores: [ScoreEntry], as format: ScoreFormat) throws -> Data {
    do {
      switch format {
      case .json:
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
        let objects = scores.enumerated().map { object(of: $1, rank: $0 + 1) }
        return try encoder.encode(JSONValue.array(objects)) + Data("\n".utf8)
      case .propertyList, .binaryPropertyList:
        let list = scores.enumerated().map { dictionary(of: $1, rank: $0 + 1) }
        return try PropertyListSerialization.data(
          fromPropertyList: list, format: format == .propertyList ? .xml : .binary, options: 0)
      }
    } catch {
      throw GameDataError(.misuse, "the scores can't be written: \(ErrorReason.text(error))")
    }
  }

  private static func dictionary(of score: ScoreEntry, rank: Int) -> [String: Any] {
    var dictionary: [String: Any] = ["rank": rank, "player": score.player, "id": score.id.description]
    switch score.value {
    case .int(let number): dictionary["score"] = number
    case .double(let number): dictionary["score"] = number
    case .string, .data: break
    }
    if milliseconds.contains(score.dateMilliseconds) {
      dictionary["date"] = Date(timeIntervalSince1970: Double(score.dateMilliseconds) / 1_000)
    }
    dictionary["context"] = score.context
    return dictionary
  }

  /// Makes a JSON object, with the context as values if it can be read without its type, and otherwise as bytes.
  private static func object(of score: ScoreEntry, rank: Int) -> JSONValue {
    var object: [String: JSONValue] = [
      "rank": .int(Int64(rank)), "player": .string(score.player), "id": .string(score.id.description),
      "dateMilliseconds": .int(score.dateMilliseconds),
    ]
    switch score.value {
    case .int(let number): object["score"] = .int(number)
    case .double(let number): object["score"] = .double(number)
    case .string, .data: break
    }
    if milliseconds.contains(score.dateMilliseconds) { object["date"] = .string(iso(score.dateMilliseconds)) }
    if let context = score.context {
      if let readable = JSONValue(context: context) {
        object["context"] = readable
      } else {
        object["contextBytes"] = .string(context.base64EncodedString())
      }
    }
    return .object(object)
  }

  private static func iso(_ milliseconds: Int64) -> String {
    // Formats whole seconds only, because a fraction would be truncated to the millisecond before.
    let fraction = (milliseconds % 1_000 + 1_000) % 1_000
    let date = Date(timeIntervalSince1970: Double((milliseconds - fraction) / 1_000))
    let digits = String(fraction)
    return date.formatted(.iso8601).dropLast() + "." + String(repeating: "0", count: 3 - digits.count) + digits + "Z"
  }
}

/// Any JSON value. Whole numbers keep all their digits.
private enum JSONValue: Codable {
  case null
  case bool(Bool)
  case int(Int64)
  case unsigned(UInt64)
  case double(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  /// Reads an archive's root and objects; nil if it is damaged or was written by a newer program.
  init?(context: Data) {
    do {
      self = try JSONDecoder().decode(JSONValue.self, from: ArchiveContents(of: context).json())
    } catch {
      return nil  // Its bytes are given instead.
    }
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // Each attempt only asks whether the value is of that type.
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .int(value)
    } else if let value = try? container.decode(UInt64.self) {
      self = .unsigned(value)
    } else if let value = try? container.decode(Double.self) {
      self = .double(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSONValue].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .int(let value): try container.encode(value)
    case .unsigned(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let values): try container.encode(values)
    case .object(let values): try container.encode(values)
    }
  }
}
