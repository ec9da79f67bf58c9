public import Foundation

/// Files that people can read and edit: JSON and property lists of `Codable` values.
///
///     try StructuredFile.write(level, to: url)                    // level.json or level.plist: by the name
///     let level = try StructuredFile.read(Level.self, from: url)  // nil if there is no file
///
/// Files are written durably, as a whole or not at all, and in a stable order, so that two versions can be compared
/// line by line. A value that doesn't fit the type is an error with the value's path:
/// `quests[3].reward: expected a number, found "ten"`.
///
/// For data that people edit, mods, and files for other programs. Saved games belong in `GameData.saves`, where they
/// are several times faster and smaller, and have a history.
public enum StructuredFile {
  /// The format in which a value is written.
  public enum Format: Sendable, Hashable, CaseIterable {
    /// Indented JSON with sorted keys. Read strictly by RFC 8259: extensions that only some readers accept are
    /// rejected, and so is a name that an object has twice, of which each reader takes another value.
    case json
    /// Hand-written JSON: read with comments, trailing commas, unquoted names and the other features of JSON5, except
    /// for numbers that aren't finite. Written as `json`, which is valid JSON5.
    case json5
    /// XML property lists. Binary property lists, which people don't edit, are rejected.
    case propertyList

    /// Returns the format for a file name with the extension `json`, `json5` or `plist`, in any case; nil for any
    /// other.
    ///
    /// - Parameter url: The file. Only its name is used.
    public init?(_ url: URL) {
      switch url.pathExtension.lowercased() {
      case "json": self = .json
      case "json5": self = .json5
      case "plist": self = .propertyList
      default: return nil
      }
    }
  }

  /// The maximum size of a file in bytes: far more than people edit, and small enough for any device's memory,
  /// including the values decoded from it.
  public static let maximumBytes = 64 << 20

  /// The maximum nesting of lists and dictionaries, the same as in Foundation's JSON reader.
  public static let maximumDepth = 512

  /// Returns the bytes of a file with the value, as `write` of `Keepsake` stores them.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - format: The format.
  /// - Returns: The bytes.
  /// - Throws: `StructuredFileError` with `unencodable`, also for errors of the type's own `encode(to:)`.
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

  /// Returns the value in the bytes of a file.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - bytes: The bytes of the file, at most `maximumBytes`.
  ///   - format: The format.
  /// - Returns: The value.
  /// - Throws: `StructuredFileError`: `malformed` for bytes that aren't in the format, also if there are none, for JSON
  ///   and JSON5 with the line and the column at which the text stops being the beginning of a valid one, or has a name
  ///   that its object has already; `mismatch` and `missingValue` for values that don't fit the type; `tooLarge`; and
  ///   errors other than `DecodingError` of the type's own `init(from:)`.
  public static func decode<Value: Decodable>(_ type: Value.Type, from bytes: Data, as format: Format) throws -> Value {
    guard bytes.count <= maximumBytes else {
      throw StructuredFileError(.tooLarge, "the file has \(bytes.count) bytes; the limit is \(maximumBytes)")
    }
    guard !bytes.isEmpty else { throw StructuredFileError(.malformed, "the file is empty") }
    // Foundation's decoder gets only valid JSON, in UTF-8.
    let text: Data =
      switch format {
      case .json: try JSONReader.utf8(bytes)
      case .json5: try JSONReader.json(fromJSON5: bytes)
      case .propertyList: bytes
      }
    do {
      switch format {
      case .json, .json5:
        if format == .json { try JSONReader.check(text) }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        return try decoder.decode(type, from: text)
      case .propertyList:
        try PropertyListDepth.check(bytes)
        return try PropertyListDecoder().decode(type, from: bytes)
      }
    } catch let error as DecodingError {
      let tree = StructuredTree(text, format)
      if case .dataCorrupted = error, let unfit = tree?.unfitNumber(in: type) { throw unfit }
      throw StructuredFileError(error, in: tree)
    }
  }

  /// Returns whether the value can be written: JSON allows no NaN, and a property list can't be a single number.
  /// Checked by encoding the value, without writing anything; `encode` reports what is wrong.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - format: The format.
  /// - Returns: Whether `encode` would succeed.
  public static func canEncode<Value: Encodable>(_ value: Value, as format: Format) -> Bool {
    do {
      _ = try encode(value, as: format)
      return true
    } catch {
      return false
    }
  }
}
