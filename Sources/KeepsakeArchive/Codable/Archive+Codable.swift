public import Foundation

// `@_disfavoredOverload`: if a type is also `Archivable`, the overload for that is chosen, which is faster.
extension Archive {
  /// Encodes a `Codable` value as an archive. `Coded` describes what this costs and what isn't kept.
  ///
  ///     let bytes = try Archive.encode(settings)              // struct Settings: Codable
  ///
  /// If the type turns out to be archivable at run time, as in generic code, it is written as an archivable value.
  ///
  /// - Parameters:
  ///   - value: The value to encode.
  ///   - writer: The id of the writer, for counters. Used only if the type is archivable.
  ///   - classes: Classes that may occur and that no `subclasses:` lists. Used only if the type is archivable.
  ///   - limits: The limits that the archive must keep. `elements`, `types` and `memoryBytes` are checked only by
  ///     `decode`.
  /// - Returns: The bytes of the archive.
  /// - Throws: `ArchiveError` with `unsupported` or `limit`, and errors of the type.
  @_disfavoredOverload
  public static func encode<V: Encodable>(
    _ value: V, writer: UInt64 = 0, classes: [any Archivable.Type] = [], limits: ArchiveLimits = .standard
  ) throws -> Data {
    func open<A: Archivable>(_ type: A.Type) throws -> Data? {
      guard let archivable = value as? A else { return nil }
      return try encode(archivable, writer: writer, classes: classes, limits: limits)
    }
    if let type = V.self as? any Archivable.Type, let data = try open(type) { return data }
    return try encode(CodedBytes(encoding: value, limits: limits), limits: limits)
  }

  /// Returns whether a `Codable` value can be encoded. Costs as much as `encode`, which reports what is wrong.
  ///
  /// - Parameters:
  ///   - value: The value to check.
  ///   - classes: As for `encode`.
  ///   - limits: As for `encode`.
  /// - Returns: Whether `encode` would succeed with these arguments.
  @_disfavoredOverload
  public static func canEncode<V: Encodable>(
    _ value: V, classes: [any Archivable.Type] = [], limits: ArchiveLimits = .standard
  ) -> Bool {
    // Only whether it works matters here; `encode` reports the reason.
    (try? encode(value, classes: classes, limits: limits)) != nil
  }

  /// Decodes a `Codable` value from an archive that `encode` wrote for one.
  ///
  /// After a type has become archivable, `decode(Coded<Settings>.self, from: data).value` still reads its older
  /// archives.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - data: The bytes of an archive.
  ///   - classes: Classes of objects in the archive that no `subclasses:` lists. Used only if the type is archivable.
  ///   - context: Available to the type in its decoder's `userInfo[.archiveContext]`.
  ///   - limits: The limits that the archive must keep.
  /// - Returns: The value.
  /// - Throws: `ArchiveError`: `missingField` and `mismatch` if the saved values don't fit the type; `missing`,
  ///   `notAnArchive`, `damaged`, `tooNew` and `limit` as for every archive; and errors of the type.
  @_disfavoredOverload
  public static func decode<V: Decodable>(
    _ type: V.Type, from data: Data, classes: [any Archivable.Type] = [], context: Any? = nil,
    limits: ArchiveLimits = .standard
  ) throws -> V {
    func open<A: Archivable>(_ type: A.Type) throws -> V? {
      try decode(type, from: data, classes: classes, context: context, limits: limits) as? V
    }
    if let type = V.self as? any Archivable.Type, let value = try open(type) { return value }
    return try decode(CodedBytes.self, from: data, context: context, limits: limits).decode(type, limits: limits)
  }
}
