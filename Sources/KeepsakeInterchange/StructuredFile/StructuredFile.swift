public import Foundation

/// Files that people can read and edit: JSON and property lists of `Codable` values.
///
///     try StructuredFile.write(level, to: url)                    // level.json or level.plist: by the name
///     let level = try StructuredFile.read(Level.self, from: url)  // nil if there is no file
///
/// Written as a whole or not at all, durably, and in a stable order, so that two versions can be compared line by line. What doesn't fit
/// the type is an error with the path of the value that is wrong: `quests[3].reward: expected a number, found "ten"`.
///
/// For data that people edit, mods, and what other programs read. Saved games belong into `GameData.saves`: they are several times
/// quicker and smaller, and have a past.
public enum StructuredFile {
  /// How a value is written.
  public enum Format: Sendable, Hashable, CaseIterable {
    /// Indented, with sorted keys. Read as RFC 8259 has it: what only some readers take is refused.
    case json
    /// JSON that people write by hand: read with comments, trailing commas, names without quotation marks and the other things of JSON5, but
    /// for numbers that aren't finite. Written as `json`, which is JSON5 as well.
    case json5
    /// As XML. Binary property lists, which nobody edits, are refused.
    case propertyList

    /// What a name says: `json`, `json5` or `plist`, whatever its case; nil for any other.
    public init?(_ url: URL) {
      switch url.pathExtension.lowercased() {
      case "json": self = .json
      case "json5": self = .json5
      case "plist": self = .propertyList
      default: return nil
      }
    }
  }

  /// The most bytes that are read: far more than anybody edits, and little enough for any device's memory with the values made of it.
  public static let maximumBytes = 64 << 20

  /// Of lists and dictionaries in each other: as JSON's reader takes.
  public static let maximumDepth = 512

  /// The bytes of a file with the value in it: what `write` of `Keepsake` puts on the disk. Throws `StructuredFileError` with `unencodable`.
  public static func encode<Value: Encodable>(_ value: Value, as format: Format) throws -> Data {
    do {
      switch format {
      case .json, .json5:
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return try encoder.encode(value) + Data("\n".utf8)
      case .propertyList:
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .xml
        return try encoder.encode(value)
      }
    } catch let error as EncodingError {
      throw StructuredFileError(error)
    } catch {
      throw StructuredFileError(.unencodable, "\(Value.self) can't be written: \(error)")
    }
  }

  /// The value in the bytes of a file.
  ///
  /// - Throws: `StructuredFileError`: `malformed` for bytes that are neither, none at all among them, `mismatch` and `missingValue` for what doesn't fit
  ///   the type, `tooLarge`; and what the type's own `init(from:)` throws beside `DecodingError`.
  public static func decode<Value: Decodable>(_ type: Value.Type, from bytes: Data, as format: Format) throws -> Value {
    guard bytes.count <= maximumBytes else {
      throw StructuredFileError(.tooLarge, "\(bytes.count) bytes are more than \(maximumBytes)")
    }
    guard !bytes.isEmpty else { throw StructuredFileError(.malformed, "the file is empty: what it held is lost") }
    // Foundation's decoder gets JSON that is sure to be some, in UTF-8.
    let text: Data =
      switch format {
      case .json: try JSONReader.utf8(bytes)
      case .json5: try JSON5Text.json(JSONReader.utf8(bytes))
      case .propertyList: bytes
      }
    do {
      switch format {
      case .json, .json5:
        try JSONReader.check(text)
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        return try decoder.decode(type, from: text)
      case .propertyList:
        try PropertyListDepth.check(bytes)
        return try PropertyListDecoder().decode(type, from: bytes)
      }
    } catch let error as DecodingError {
      let tree = StructuredTree(text, format)
      let explained = StructuredFileError(error, in: tree)
      throw explained.path.isEmpty ? tree?.misfit(of: type) ?? explained : explained
    }
  }

  /// Whether the value can be written: no not-a-number in JSON, no bare number as a property list. Answered by encoding it, before anything is
  /// written; `encode` says what is wrong.
  public static func canEncode<Value: Encodable>(_ value: Value, as format: Format) -> Bool {
    do {
      _ = try encode(value, as: format)
      return true
    } catch {
      return false
    }
  }
}
