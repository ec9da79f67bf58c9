public import Foundation
public import KeepsakeInterchange
import KeepsakeStore

/// Structured files on disk, written durably.
extension StructuredFile {
  /// Writes a value to a file, atomically and durably. Costs encoding the value and three waits for the disk.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - url: The file.
  ///   - format: The file's format; determined by the file's name if nil.
  /// - Throws: `StructuredFileError` with `unencodable` (and the path of the value) or `unknownFormat`, with nothing
  ///   changed; `StoreError` if the file can't be written. The file is unchanged then, or, if only making its name
  ///   durable failed, has the new contents.
  public static func write<Value: Encodable>(_ value: Value, to url: URL, as format: Format? = nil) throws {
    try AtomicFile.write(encode(value, as: format ?? named(url)), to: url)
  }

  /// Reads the value in a file.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - url: The file. At most `maximumBytes` are read.
  ///   - format: The file's format; determined by the file's name if nil.
  /// - Returns: The value; nil if there is no file.
  /// - Throws: `StructuredFileError` with `malformed` for bytes that aren't in the format, including an empty file,
  ///   `mismatch` or `missingValue` for contents that don't fit the type, `unknownFormat`, or `tooLarge`; `StoreError`
  ///   if the file exists but can't be read; and any error except `DecodingError` that the type's own `init(from:)`
  ///   throws.
  public static func read<Value: Decodable>(_ type: Value.Type, from url: URL, as format: Format? = nil) throws
    -> Value?
  {
    let format = try format ?? named(url)
    let bytes: Data?
    do {
      bytes = try AtomicFile.read(url, maximumBytes: maximumBytes)
    } catch let error as StoreError where error.code == .tooLarge {
      throw StructuredFileError(.tooLarge, "the file \(url.path) is larger than \(maximumBytes) bytes")
    }
    return try bytes.map { try decode(type, from: $0, as: format) }
  }

  private static func named(_ url: URL) throws -> Format {
    guard let format = Format(url) else {
      throw StructuredFileError(
        .unknownFormat,
        "\(url.lastPathComponent) is neither .json, .json5 nor .plist: pass its format, such as `as: .json`")
    }
    return format
  }
}
