/// Reads an archive's sections in the order of their dependencies: objects, their deferred references, the root, the
/// hooks.
struct GraphReader {
  let bytes: UnsafeRawBufferPointer
  let root: Range<Int>
  let values: Range<Int>
  let references: Range<Int>

  /// - Parameters:
  ///   - forEachRun: Calls its argument with the runs of objects in their order.
  ///   - afterReferences: Called when all objects exist and refer to each other.
  ///   - afterRoot: Called when everything is read, before the objects' hooks.
  @inline(__always) func decode<V: Archivable>(
    _ type: V.Type, _ core: ReaderCore, isExact: Bool, node: Int32,
    forEachRun: ((ObjectRun) throws -> Void) throws -> Void,
    afterReferences: () throws -> Void, afterRoot: () throws -> Void
  ) throws -> V {
    guard let base = bytes.baseAddress else { throw ArchiveError(.missing, "There are no bytes to read") }
    var reader = ArchiveReader(core: core, base: base, isExact: isExact)
    select(values, &reader)
    try forEachRun { try $0.codec.build($0, core, from: &reader) }
    try checkEnd(&reader)
    select(references, &reader)
    reader.isInReferences = true
    try forEachRun { try $0.codec.connect($0, core, from: &reader) }
    try checkEnd(&reader)
    reader.isInReferences = false
    try afterReferences()
    select(root, &reader)
    reader.isExact = isExact
    reader.current = node
    let value = try V.archiveRead(from: &reader)
    try checkEnd(&reader)
    try afterRoot()
    try forEachRun { try $0.codec.finish($0, core) }
    if !(V.self is AnyObject.Type) { try value.didDecode(context: core.context) }
    return value
  }

  private func select(_ section: Range<Int>, _ reader: inout ArchiveReader) {
    reader.cursor = reader.base + section.lowerBound
    reader.end = reader.base + section.upperBound
  }

  private func checkEnd(_ reader: inout ArchiveReader) throws {
    guard reader.cursor == reader.end else { throw reader.damaged("A section has unused bytes at its end") }
  }
}
