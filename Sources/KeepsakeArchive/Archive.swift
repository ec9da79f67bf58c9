public import Foundation

/// Values and object graphs to bytes and back.
///
///     let bytes = try Archive.encode(world)
///     let world = try Archive.decode(World.self, from: bytes)
///
/// Fields may come and go between the program that wrote and the program that reads. Equal values give equal bytes in every
/// process. Objects are kept with their identity: shared references stay shared, cycles close.
public enum Archive {
  /// Encodes a value and every object that it leads to.
  ///
  /// - Parameters:
  ///   - writer: Who writes: each `Counter` folds its pending change into this writer's entry.
  ///   - classes: Classes that may be met and that no `subclasses:` lists, for those of other modules.
  /// - Throws: `ArchiveError` with `unlistedClass`, `unbuildable`, `unsupported` or `limit`, and what hand-written conformances throw.
  public static func encode<V: Archivable>(
    _ value: V, writer: UInt64 = 0, classes: [any Archivable.Type] = [], limits: ArchiveLimits = .standard
  ) throws -> Data {
    let compiled = try CompiledSchema.of(V.self)
    let core = WriterCore.take(compiled, classes: classes, limits: limits)
    defer { core.giveBack() }
    var output = ArchiveWriter(core: core, writer: writer)
    do {
      try V.archiveWrite(value, to: &output)
    } catch {
      // What came first, if a hand-written conformance caught that.
      try core.checkFailure()
      throw error
    }
    let rootEnd = output.offset
    try core.drainQueues(&output)
    try core.checkFailure()
    return try ArchiveAssembly(core: core, rootEnd: rootEnd).finish(&output)
  }

  /// Whether a value can be encoded: everything it leads to is listed, can be built again and keeps within the limits.
  ///
  /// Costs as much as `encode`, which tells what is wrong.
  public static func canEncode<V: Archivable>(
    _ value: V, classes: [any Archivable.Type] = [], limits: ArchiveLimits = .standard
  ) -> Bool {
    // The question is whether, not why: `encode` has the answer to that.
    (try? encode(value, classes: classes, limits: limits)) != nil
  }

  /// Decodes what `encode` made, into the same or a changed type.
  ///
  /// - Parameters:
  ///   - classes: Classes of objects in the archive that no `subclasses:` lists.
  ///   - context: Handed to `didDecode(context:)` and `ArchiveReader.context`.
  /// - Throws: `ArchiveError`; `notAnArchive`, `damaged` and `tooNew` are different, whatever the bytes are.
  public static func decode<V: Archivable>(
    _ type: V.Type, from data: Data, classes: [any Archivable.Type] = [], context: Any? = nil,
    limits: ArchiveLimits = .standard
  ) throws -> V {
    let compiled = try CompiledSchema.of(V.self)
    return try data.withUnsafeBytes { bytes in
      let envelope = try ArchiveEnvelope(bytes, limits: limits)
      if let small = SmallArchive(envelope, compiled, limits: limits) {
        return try small.decode(type, compiled, context: context, limits: limits)
      }
      let file = try ArchiveFile(envelope, limits: limits, compiled: compiled)
      return try ObjectBuilder(file: file, compiled: compiled, classes: classes, context: context, limits: limits).decode(type)
    }
  }
}
