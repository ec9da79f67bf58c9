public import Foundation
public import KeepsakeInterchange
import KeepsakeStore

/// On the disk, durably.
extension StructuredFile {
  /// Writes the value to the file at `url`: as a whole or not at all, and durably. Costs encoding and three waits on the disk.
  ///
  /// - Parameter format: By the file's name, if nil.
  /// - Throws: `StructuredFileError` with `unencodable` (and the path of the value) or `unknownFormat`, with nothing changed; `StoreError` if
  ///   the file can't be written: it is then as it was.
  public static func write<Value: Encodable>(_ value: Value, to url: URL, as format: Format? = nil) throws {
    try AtomicFile.write(encode(value, as: format ?? named(url)), to: url)
  }

  /// The value in the file at `url`; nil if there is no file.
  ///
  /// - Throws: `StructuredFileError`: `malformed` for bytes that are neither, an empty file among them, `mismatch` and `missingValue` for what doesn't fit the type,
  ///   `tooLarge`; `StoreError` if the file is there and can't be read; and what the type's own `init(from:)` throws beside `DecodingError`.
  public static func read<Value: Decodable>(_ type: Value.Type, from url: URL, as format: Format? = nil) throws -> Value? {
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
      throw StructuredFileError(.unknownFormat, "\(url.lastPathComponent) is neither .json, .json5 nor .plist: say the format")
    }
    return format
  }
}
