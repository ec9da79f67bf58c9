public import Foundation

/// Encodes values and object graphs to bytes, and decodes them again.
///
///     let bytes = try Archive.encode(world)
///     let world = try Archive.decode(World.self, from: bytes)
///
/// The writing and the reading program may have different fields. Equal values give equal bytes in every process.
/// Objects keep their identity: shared references stay shared, and cycles are restored.
public enum Archive {
  /// Encodes a value and every object that is reachable from it.
  ///
  /// Works in memory, on the calling thread. A pending change of a `Counter` is in the bytes, but stays pending in the
  /// value.
  ///
  /// - Parameters:
  ///   - value: The value to encode.
  ///   - writer: The id of the writer. Each `Counter` folds its pending change into this writer's entry.
  ///   - classes: Classes that may occur and that no `subclasses:` lists, such as those of other modules.
  ///   - limits: The limits that the archive must keep. `elements`, `types` and `memoryBytes` are checked only by
  ///     `decode`.
  /// - Returns: The bytes of the archive.
  /// - Throws: `ArchiveError` with `unlistedClass`, `unbuildable`, `unsupported` or `limit`, and any error of a
  ///   hand-written conformance.
  public static func encode<V: Archivable>(
    _ value: V, writer: UInt64 = 0, classes: [any Archivable.Type] = [], limits: ArchiveLimits = .standard
  ) throws -> Data {
    try CompiledSchema.kept(V.self)._withUnsafeGuaranteedRef { compiled in
      let core = WriterCore.take(compiled, classes: classes, limits: limits)
      defer { WriterCore.giveBack(core, compiled) }
      return try core._withUnsafeGuaranteedRef { try encode(value, $0, expected: compiled.expectedBytes, writer) }
    }
  }

  private static func encode<V: Archivable>(
    _ value: V, _ core: WriterCore, expected: Int, _ writer: UInt64
  ) throws -> Data {
    var output = ArchiveWriter(core: core, expected: expected, writer: writer)
    do {
      try V.archiveWrite(value, to: &output)
    } catch {
      // Throw the first error instead, in case a hand-written conformance caught it.
      try core.checkFailure()
      throw error
    }
    let rootEnd = output.offset
    try core.drainQueues(&output)
    try core.checkFailure()
    return try ArchiveAssembly.finish(&output, core, rootEnd: rootEnd)
  }

  /// Returns whether a value can be encoded: all reachable classes are listed, the objects can be rebuilt, and the
  /// limits that `encode` checks are kept.
  ///
  /// Costs as much as `encode`, which reports what is wrong.
  ///
  /// - Parameters:
  ///   - value: The value to check.
  ///   - classes: As for `encode`.
  ///   - limits: As for `encode`.
  /// - Returns: Whether `encode` would succeed with these arguments.
  public static func canEncode<V: Archivable>(
    _ value: V, classes: [any Archivable.Type] = [], limits: ArchiveLimits = .standard
  ) -> Bool {
    // Only whether it works matters here; `encode` reports the reason.
    (try? encode(value, classes: classes, limits: limits)) != nil
  }

  /// Decodes what `encode` wrote, into the same type or a changed one.
  ///
  /// - Parameters:
  ///   - type: The type to decode.
  ///   - data: The bytes of an archive.
  ///   - classes: Classes of objects in the archive that no `subclasses:` lists. Objects of other classes are skipped
  ///     if only properties that the program no longer has lead to them.
  ///   - context: Passed to `didDecode(context:)` and available as `ArchiveReader.context`.
  ///   - limits: The limits that the archive must keep.
  /// - Returns: The value.
  /// - Throws: `ArchiveError`. Whatever the bytes are, `missing` (there are none), `notAnArchive`, `damaged` and
  ///   `tooNew` are distinct. Other codes are `limit`; `unknownClass`, `missingField`, `unknownCase`, `mismatch`,
  ///   `unbuildable` and `unsupported` if the contents don't fit the program's types; `unsupported` and `unlistedClass`
  ///   if a type can't be archived as it is declared. Also errors of hand-written conformances and hooks.
  public static func decode<V: Archivable>(
    _ type: V.Type, from data: Data, classes: [any Archivable.Type] = [], context: Any? = nil,
    limits: ArchiveLimits = .standard
  ) throws -> V {
    try CompiledSchema.kept(V.self)._withUnsafeGuaranteedRef { compiled in
      try data.withUnsafeBytes { bytes in
        let envelope = try ArchiveEnvelope(bytes, limits: limits)
        if let small = SmallArchive(envelope, compiled, limits: limits) {
          return try small.decode(type, compiled, context: context, limits: limits)
        }
        let file = try ArchiveFile(envelope, limits: limits, compiled: compiled)
        return try ObjectBuilder(file: file, compiled: compiled, classes: classes, context: context, limits: limits)
          .decode(type)
      }
    }
  }
}
