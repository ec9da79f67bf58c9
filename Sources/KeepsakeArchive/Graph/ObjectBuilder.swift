/// Decodes an archive: builds all objects, sets their later references, reads the root, calls the hooks.
struct ObjectBuilder {
  let file: ArchiveFile
  let core: ReaderCore
  let classes: [String: any Archivable.Type]

  init(
    file: ArchiveFile, compiled: CompiledSchema, classes extra: [any Archivable.Type], context: Any?, limits: ArchiveLimits
  ) throws {
    self.file = file
    core = ReaderCore(file: file, compiled: compiled, context: context, limits: limits)
    if !extra.isEmpty { try core.extendProgram { schema in extra.forEach(schema.describe) } }
    var classes: [String: any Archivable.Type] = [:]
    // Where all declarations are the same, the numbers of the types are, too.
    if file.runs.contains(where: { !file.isSame || $0.type >= file.staticCount }) {
      for entry in core.program.types where entry.kind.isObject && classes[entry.name] == nil { classes[entry.name] = entry.type }
    }
    self.classes = classes
  }

  func decode<V: Archivable>(_ type: V.Type) throws -> V {
    // Whether it succeeds or not, and after everything else here has let go of the objects.
    defer { core.releaseObjects(of: file) }
    return try decodeGraph(type)
  }

  private func decodeGraph<V: Archivable>(_ type: V.Type) throws -> V {
    guard let base = file.bytes.baseAddress else { throw ArchiveError(.missing, "There are no bytes to read") }
    var reader = ArchiveReader(core: core, base: base, isExact: file.isSame)
    let runs = try file.runs.map(open)
    select(file.valueSection, &reader)
    for run in runs { try run.codec.build(run, from: &reader) }
    try checkEnd(&reader)
    select(file.referenceSection, &reader)
    reader.isInReferences = true
    for run in runs { try run.codec.connect(run, from: &reader) }
    try checkEnd(&reader)
    reader.isInReferences = false
    try migrateObjects()
    select(file.rootSection, &reader)
    reader.isExact = file.isSame
    reader.current = file.root
    let value = try V.archiveRead(from: &reader)
    try checkEnd(&reader)
    for run in runs { try run.codec.finish(run, core) }
    if !(V.self is AnyObject.Type) { try value.didDecode(context: core.context) }
    if !core.unowned.isEmpty { try core.checkUnowned(in: file) }
    return value
  }

  private func select(_ section: Range<Int>, _ reader: inout ArchiveReader) {
    reader.cursor = reader.base + section.lowerBound
    reader.end = reader.base + section.upperBound
  }

  private func checkEnd(_ reader: inout ArchiveReader) throws {
    guard reader.cursor == reader.end else { throw reader.damaged("A section has bytes that belong to no value") }
  }

  /// The program's class, by the name that the archive has for it, or by its number where all declarations are the same.
  private func open(_ run: ArchiveFile.Run) throws -> ObjectRun {
    let isSame = file.isSame && run.type < file.staticCount
    let index: Int?
    if isSame {
      index = run.type
    } else {
      index = classes[file.schema.types[run.type].name].flatMap { core.program.typeIndex(of: ObjectIdentifier($0)) }.map { Int($0) }
    }
    guard let index, let type = core.program.types[index].type else {
      let name = file.schema.types[run.type].name
      throw ArchiveError(
        .unknownClass, "The archive has objects of a class \(name) that the program doesn't list: add it to subclasses: or classes:",
        type: name)
    }
    // The object, and its place in the table of all.
    try core.memory.claim(run.ids.count, of: core.program.types[index].memory + MemoryLayout<Int>.stride, at: file.valueSection.lowerBound)
    guard let codec = core.program.types[index].codec else {
      throw ArchiveError(.unsupported, "Only classes have objects", type: core.program.types[index].name)
    }
    func plan<T: Archivable>(_ type: T.Type) throws -> FieldPlan { try core.plan(type, Int32(run.type)) }
    return ObjectRun(run, file.schema, plan: isSame ? nil : try plan(type), type: type, codec: codec)
  }
}
