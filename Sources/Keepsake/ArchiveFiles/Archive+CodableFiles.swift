public import Foundation

// `@_disfavoredOverload`: a type that is also archivable takes its own, faster overload.
extension Archive {
  /// Writes a `Codable` value to a file, atomically and durably.
  ///
  ///     try Archive.write(settings, to: url)                  // struct Settings: Codable
  ///
  /// Behaves like `write` for archivable types. `Coded` describes what `Codable` costs and what it doesn't keep. A
  /// value whose type turns out to be archivable is written as such, in generic code as well.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - url: The file.
  ///   - classes: Classes that may occur and that no `subclasses:` lists. Used only if the type is archivable.
  ///   - compression: Whether to compress the archive into a zstd frame.
  ///   - replacingNewer: Whether to overwrite even a newer program's save; for when the player was asked.
  ///   - limits: The limits that the archive, and an existing one, must keep.
  /// - Throws: As `write` for archivable types; `ArchiveError` with `unsupported` or `limit` for a value that can't be
  ///   encoded, and errors of the type's own `encode(to:)`.
  @_disfavoredOverload
  public static func write<Value: Encodable>(
    _ value: Value, to url: URL, classes: [any Archivable.Type] = [], compression: ArchiveCompression = .automatic,
    replacingNewer: Bool = false, limits: ArchiveLimits = .standard
  ) throws {
    func open<A: Archivable>(_ type: A.Type) throws -> Bool {
      guard let archivable = value as? A else { return false }
      try write(
        archivable, to: url, classes: classes, compression: compression, replacingNewer: replacingNewer, limits: limits)
      return true
    }
    if let type = Value.self as? any Archivable.Type, try open(type) { return }
    try write(
      CodedBytes(encoding: value, limits: limits), to: url, compression: compression, replacingNewer: replacingNewer,
      limits: limits)
  }

  /// Reads the `Codable` value in a file; nil if there is no file.
  ///
  /// Reads archives with and without a zstd frame.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - url: The file.
  ///   - classes: Classes of objects in the archive that no `subclasses:` lists. Used only if the type is archivable.
  ///   - context: Available to the type in its decoder's `userInfo[.archiveContext]`.
  ///   - limits: The limits that the archive must keep.
  /// - Returns: The value; nil if there is no file.
  /// - Throws: As `read` for archivable types; `ArchiveError` with `missingField` or `mismatch` for contents that don't
  ///   fit the type, and errors of the type's own `init(from:)`.
  @_disfavoredOverload
  public static func read<Value: Decodable>(
    _ type: Value.Type, from url: URL, classes: [any Archivable.Type] = [], context: Any? = nil,
    limits: ArchiveLimits = .standard
  ) throws -> Value? {
    func open<A: Archivable>(_ type: A.Type) throws -> Value? {
      guard let value = try read(type, from: url, classes: classes, context: context, limits: limits) else {
        return nil
      }
      return value as? Value
    }
    if let type = Value.self as? any Archivable.Type { return try open(type) }
    return try read(CodedBytes.self, from: url, context: context, limits: limits)?.decode(type, limits: limits)
  }
}
