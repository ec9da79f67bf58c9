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
    if !file.runs.isEmpty {
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
    let runs = try file.runs.map { run in
      let name = file.schema.types[run.type].name
      guard let type = classes[name] else {
        throw ArchiveError(
          .unknownClass, "The archive has objects of a class \(name) that the program doesn't list: add it to subclasses: or classes:",
          type: name)
      }
      return try make(type, run)
    }
    select(file.valueSection, &reader)
    for run in runs { try run.build(&reader) }
    try checkEnd(&reader)
    select(file.referenceSection, &reader)
    reader.isInReferences = true
    for run in runs { try run.connect(&reader) }
    try checkEnd(&reader)
    reader.isInReferences = false
    try migrateObjects()
    select(file.rootSection, &reader)
    reader.isExact = file.isSame
    reader.current = file.root
    let value = try V.archiveRead(from: &reader)
    try checkEnd(&reader)
    for run in runs { try run.finish(core) }
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

  private func make(_ type: any Archivable.Type, _ run: ArchiveFile.Run) throws -> ObjectRun {
    func open<T: Archivable>(_ type: T.Type) throws -> ObjectRun {
      guard T.self is AnyObject.Type else { throw ArchiveError(.unsupported, "Only classes have objects", type: T.archiveName) }
      let plan = file.isSame && run.type < file.staticCount ? nil : try core.plan(type, Int32(run.type))
      return TypedObjectRun<T>(run, file: file.schema, plan: plan)
    }
    return try open(type)
  }
}

/// Objects of one class, built one after the other; the class is opened once.
///
/// Between a class type T and AnyObject the bits are the same; `as` would look up conformances for each object.
private class ObjectRun {
  func build(_ reader: inout ArchiveReader) throws {}
  func connect(_ reader: inout ArchiveReader) throws {}
  func finish(_ core: ReaderCore) throws {}
}

private final class TypedObjectRun<T: Archivable>: ObjectRun {
  private let run: ArchiveFile.Run
  private let node: Int32
  private let plan: FieldPlan?
  private let deferred: FieldMask
  private let isExact: Bool
  private let isKeyed: Bool
  private let hasReferences: Bool

  init(_ run: ArchiveFile.Run, file: ArchiveSchema, plan: FieldPlan?) {
    self.run = run
    let saved = file.types[run.type]
    node = saved.node
    isExact = plan?.isSame ?? true
    self.plan = plan
    isKeyed = T.archiveIsKeyed
    deferred = FieldMask(plan?.deferred ?? saved.fields.map(\.deferred))
    hasReferences = saved.kind.isKeyed || saved.fields.contains(where: \.deferred)
  }

  override func build(_ reader: inout ArchiveReader) throws {
    reader.deferred = deferred
    let core = reader.core
    for id in run.ids {
      try prepare(&reader)
      if isKeyed {
        let object = try reader.openKeyed(T.self) { try T(from: &$0) }
        core.keep(unsafeBitCast(object, to: AnyObject.self), id)
      } else {
        let object = try T(from: &reader)
        try object.decodeInheritedFields(from: &reader)
        if !isExact { try reader.closeObject() }
        core.keep(unsafeBitCast(object, to: AnyObject.self), id)
      }
    }
  }

  override func connect(_ reader: inout ArchiveReader) throws {
    guard hasReferences else { return }
    reader.deferred = deferred
    let core = reader.core
    for id in run.ids {
      try prepare(&reader)
      try withObject(id, core) { object in
        if isKeyed {
          try reader.openKeyed(T.self) { try object.decodeReferences(from: &$0) }
        } else {
          try object.decodeReferences(from: &reader)
          if !isExact { try reader.closeObject() }
        }
      }
    }
  }

  override func finish(_ core: ReaderCore) throws {
    for id in run.ids { try withObject(id, core) { try $0.didDecode(context: core.context) } }
  }

  @inline(__always) private func withObject(_ id: Int32, _ core: ReaderCore, _ body: (T) throws -> Void) rethrows {
    try core.objects[Int(id)]?._withUnsafeGuaranteedRef { try body(unsafeBitCast($0, to: T.self)) }
  }

  @inline(__always) private func prepare(_ reader: inout ArchiveReader) throws {
    reader.fieldBase = 0
    reader.isExact = isExact
    if isExact && !isKeyed { return }
    reader.passedFields = nil
    reader.current = node
    if !isKeyed, let plan { try reader.openObject(plan) }
  }
}
