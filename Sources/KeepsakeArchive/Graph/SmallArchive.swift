/// An archive with at most a few objects, all of one class, in which every type is declared as in the program.
///
/// It needs no lookups and reuses an existing reader, because creating one would take longer than decoding a small
/// value.
struct SmallArchive {
  /// The maximum number of objects. If each refers to the next, this many may be released recursively.
  static let mostObjects = 64

  let bytes: UnsafeRawBufferPointer
  let root: Range<Int>
  let values: Range<Int>
  let references: Range<Int>
  let objectCount: Int
  /// The index of the class among the types; -1 without objects.
  private let classIndex: Int

  /// Returns nil for every other archive, and for damaged bytes.
  init?(_ envelope: ArchiveEnvelope, _ compiled: CompiledSchema, limits: ArchiveLimits) {
    let footer = envelope.footer
    bytes = envelope.bytes
    guard compiled.isHead(of: UnsafeRawBufferPointer(rebasing: bytes[footer])) else { return nil }
    var input = ByteCursor(bytes: bytes, offset: footer.lowerBound + compiled.footerHead.count, end: footer.upperBound)
    // The bytes before the footer. The lengths are checked against this one by one, so that no sum of them overflows.
    let content = UInt64(footer.lowerBound - ArchiveLayout.headerBytes)
    guard let rootLength = try? input.varint(), let valuesLength = try? input.varint(),
      let referencesLength = try? input.varint(),
      rootLength <= content, valuesLength <= content - rootLength,
      referencesLength == content - rootLength - valuesLength,
      let count = try? input.varint(), count <= UInt64(max(0, min(Self.mostObjects, limits.objects))),
      let runs = try? input.varint(), runs == (count == 0 ? 0 : 1)
    else { return nil }
    root = ArchiveLayout.headerBytes..<ArchiveLayout.headerBytes + Int(rootLength)
    values = root.upperBound..<root.upperBound + Int(valuesLength)
    references = values.upperBound..<footer.lowerBound
    objectCount = Int(count)
    if count == 0 {
      classIndex = -1
    } else {
      guard let index = try? input.varint(), index < UInt64(compiled.typeCount), let length = try? input.varint(),
        length == count,
        // Only consecutive numbers, starting with 0.
        let form = try? input.byte(), form == 0, let first = try? input.varint(), first == 0
      else { return nil }
      classIndex = Int(index)
    }
    guard input.offset == footer.upperBound else { return nil }
  }

  func decode<V: Archivable>(_ type: V.Type, _ compiled: CompiledSchema, context: Any?, limits: ArchiveLimits) throws
    -> V
  {
    let core = ReaderCore.take(compiled, limits: limits)
    defer { compiled.idleReader.giveBack(core) }
    return try core._withUnsafeGuaranteedRef { core in
      core.begin(objects: objectCount, context: context)
      defer { core.end() }
      return try decode(type, compiled, core)
    }
  }

  private func decode<V: Archivable>(_ type: V.Type, _ compiled: CompiledSchema, _ core: ReaderCore) throws -> V {
    let run = classIndex < 0 ? nil : try core.run(classIndex, count: objectCount, at: values.lowerBound)
    let graph = GraphReader(bytes: bytes, root: root, values: values, references: references)
    let value = try graph.decode(
      type, core, isExact: true, node: compiled.root, forEachRun: { if let run { try $0(run) } }, afterReferences: {},
      afterRoot: {})
    if !core.unowned.isEmpty { try core.checkUnowned { core.end() } }
    return value
  }
}
