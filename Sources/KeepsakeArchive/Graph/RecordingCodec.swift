/// Skips the objects of a class that the program doesn't have.
final class SkippingCodec: ObjectCodec {
  override func build(_ run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {
    try skip(run, core, &reader)
  }

  override func connect(_ run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {
    try skip(run, core, &reader)
  }

  private func skip(_ run: ObjectRun, _ core: ReaderCore, _ reader: inout ArchiveReader) throws {
    let entry = core.file.types[run.type]
    let fields = entry.fields(inReferences: reader.isInReferences)
    for _ in run.ids { try reader.skipObject(isKeyed: entry.kind.isKeyed, fields) }
  }
}

/// Reads the objects of one class one by one, and skips those that a record blocks because they refer to objects of
/// unknown classes.
final class RecordingCodec: ObjectCodec {
  private let codec: ObjectCodec
  private let record: ReferenceRecord

  init(_ codec: ObjectCodec, _ record: ReferenceRecord) {
    self.codec = codec
    self.record = record
  }

  override func build(_ run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {
    try read(run, core, &reader) { id, reader in
      try codec.build(id, of: run, core, from: &reader)
      return true
    }
  }

  override func connect(_ run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {
    guard run.hasReferences else { return }
    try read(run, core, &reader) { id, reader in
      guard core.object(id) != nil else { return false }
      try codec.connect(id, of: run, core, from: &reader)
      return true
    }
  }

  override func finish(_ run: ObjectRun, _ core: ReaderCore) throws {
    for id in run.ids where !record.isBlocked(id) { try codec.finish(id, core) }
  }

  /// - Parameter body: Reads what the section has of an object, or returns false to have it skipped.
  private func read(
    _ run: ObjectRun, _ core: ReaderCore, _ reader: inout ArchiveReader,
    _ body: (Int32, inout ArchiveReader) throws -> Bool
  ) throws {
    let entry = core.file.types[run.type]
    let fields = entry.fields(inReferences: reader.isInReferences)
    let (end, located) = (reader.end, core.located.count)
    for id in run.ids {
      record.holder = id
      let start = reader.cursor
      do {
        if try body(id, &reader) { continue }
      } catch {
        guard record.isBlocked(id) else { throw error }
        core.located.truncate(to: located)
      }
      reader.restart(at: start, end: end)
      try reader.skipObject(isKeyed: entry.kind.isKeyed, fields)
    }
  }
}

extension ArchiveReader {
  /// Goes to the start of an object, and forgets everything about the one that was being read.
  fileprivate mutating func restart(at start: UnsafeRawPointer, end: UnsafeRawPointer) {
    let isInReferences = isInReferences
    self = ArchiveReader(core: core, base: base, isExact: false)
    self.isInReferences = isInReferences
    self.cursor = start
    self.end = end
  }
}

extension TypeEntry {
  /// The fields of an object that are in one of the two sections.
  fileprivate func fields(inReferences: Bool) -> [FieldEntry] { fields.filter { $0.deferred == inReferences } }
}
