/// Decodes an archive: builds all objects, sets their deferred references, reads the root, and calls the hooks.
struct ObjectBuilder {
  let file: ArchiveFile
  let core: ReaderCore
  let classes: [String: any Archivable.Type]

  init(
    file: ArchiveFile, compiled: CompiledSchema, classes extra: [any Archivable.Type], context: Any?,
    limits: ArchiveLimits
  ) throws {
    self.file = file
    core = ReaderCore(file: file, compiled: compiled, context: context, limits: limits)
    if !extra.isEmpty { try core.extendProgram { schema in extra.forEach(schema.describe) } }
    // An archive with the same declarations has the same names, and needs no check.
    if !file.isSame, let error = RootCheck(file: file.schema, program: core.program).mismatch(file.root, compiled.root)
    {
      throw error
    }
    var classes: [String: any Archivable.Type] = [:]
    // If all declarations are the same, so are the numbers of the types, and no lookup by name is needed.
    if file.runs.contains(where: { !file.isSame || $0.type >= file.staticCount }) {
      for entry in core.program.types where entry.kind.isObject && classes[entry.name] == nil {
        classes[entry.name] = entry.type
      }
    }
    self.classes = classes
  }

  func decode<V: Archivable>(_ type: V.Type) throws -> V {
    // On success and on failure, and after everything else here has released the objects.
    defer { core.releaseObjects(of: file) }
    return try decodeGraph(type)
  }

  private func decodeGraph<V: Archivable>(_ type: V.Type) throws -> V {
    var opened = try file.runs.map(open)
    if opened.contains(where: { $0.isUnknown }) {
      opened = try core.startRecord(opened, at: file.valueSection.lowerBound)
    }
    let runs = opened
    defer { core.endRecord() }
    let graph = GraphReader(
      bytes: file.bytes, root: file.rootSection, values: file.valueSection,
      references: file.referenceSection)
    let value: V
    do {
      value = try graph.decode(
        type, core, isExact: file.isSame, node: file.root, forEachRun: { try runs.forEach($0) },
        afterReferences: {
          try migrateObjects()
          core.record?.holder = ReferenceRecord.root
        },
        afterRoot: { try core.record?.resolve() })
    } catch var error as ArchiveError where error.code == .unknownClass && error.type == nil {
      error.type = file.schema.text(file.root)
      throw error
    }
    if core.hasUnowned { try core.checkUnowned { core.releaseObjects(of: file) } }
    return value
  }

  /// Opens a run with the program's class, found by its name in the archive, or by its number if all declarations are
  /// the same. Objects of a class that the program doesn't have are skipped: they are missed only if something that is
  /// read refers to them.
  private func open(_ run: ArchiveFile.Run) throws -> ObjectRun {
    let isSame = file.isSame && run.type < file.staticCount
    let index: Int?
    if isSame {
      index = run.type
    } else {
      index = classes[file.schema.types[run.type].name].flatMap { core.program.typeIndex(of: ObjectIdentifier($0)) }.map
      { Int($0) }
    }
    guard let index, let type = core.program.types[index].type else { return ObjectRun(skipping: run, file.schema) }
    guard let codec = core.program.types[index].codec else {
      throw ArchiveError(
        .unsupported, "The archive has an object of this type, which isn't a class",
        type: core.program.types[index].name)
    }
    func plan<T: Archivable>(_ type: T.Type) throws -> FieldPlan { try core.plan(type, Int32(run.type)) }
    let opened = ObjectRun(
      run, file.schema, plan: isSame ? nil : try plan(type), program: core.program.types[index], codec: codec)
    try core.memory.claim(run.ids.count, of: opened.memory, at: file.valueSection.lowerBound)
    return opened
  }
}
