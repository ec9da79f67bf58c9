/// Decodes an archive: builds all objects, sets their later references, reads the root, calls the hooks.
struct ObjectBuilder {
  let file: ArchiveFile
  let core: ReaderCore
  private let isSame: Bool
  private let classes: [String: any Archivable.Type]

  init(
    file: ArchiveFile, compiled: CompiledSchema, classes extra: [any Archivable.Type], context: Any?, limits: ArchiveLimits
  ) throws {
    self.file = file
    core = ReaderCore(
      file: file.schema, compiled: compiled, names: file.names, wires: file.wires, objectCount: file.objectCount,
      context: context, limits: limits)
    let saved = UnsafeRawBufferPointer(rebasing: file.bytes[file.staticBytes])
    var rootExpression: [UInt8] = []
    var savedExpression: [UInt8] = []
    compiled.schema.appendExpression(compiled.root, to: &rootExpression)
    file.schema.appendExpression(file.root, to: &savedExpression)
    isSame = saved.elementsEqual(compiled.bytes) && rootExpression == savedExpression
    if !extra.isEmpty { try core.extendProgram { schema in extra.forEach(schema.describe) } }
    var classes: [String: any Archivable.Type] = [:]
    for entry in core.program.types where entry.kind.isObject && classes[entry.name] == nil { classes[entry.name] = entry.type }
    self.classes = classes
  }

  func decode<V: Archivable>(_ type: V.Type) throws -> V {
    guard let base = file.bytes.baseAddress else { throw ArchiveError(.missing, "There are no bytes to read") }
    var reader = ArchiveReader(core: core, base: base, isExact: isSame)
    var runs = try file.runs.map { run in
      let name = file.schema.types[run.type].name
      guard let type = classes[name] else {
        throw ArchiveError(
          .unknownClass, "The archive has objects of a class \(name) that the program doesn't list: add it to subclasses: or classes:",
          type: name)
      }
      return try make(type, run)
    }
    try select(file.valueSection, &reader)
    for run in runs { try run.build(&reader) }
    try checkEnd(reader)
    try select(file.referenceSection, &reader)
    reader.isInReferences = true
    for run in runs { try run.connect(&reader) }
    try checkEnd(reader)
    reader.isInReferences = false
    try select(file.rootSection, &reader)
    reader.isExact = isSame
    reader.current = file.root
    let value = try V.archiveRead(from: &reader)
    try checkEnd(reader)
    for run in runs { try run.finish(core) }
    if !(V.self is AnyObject.Type) { try value.didDecode(context: core.context) }
    if !core.unowned.isEmpty {
      runs = []
      try core.release()
    }
    return value
  }

  private func select(_ section: Range<Int>, _ reader: inout ArchiveReader) throws {
    reader.cursor = reader.base + section.lowerBound
    reader.end = reader.base + section.upperBound
  }

  private func checkEnd(_ reader: borrowing ArchiveReader) throws {
    guard reader.cursor == reader.end else { throw reader.damaged("A section has bytes that belong to no value") }
  }

  private func make(_ type: any Archivable.Type, _ run: ArchiveFile.Run) throws -> ObjectRun {
    func open<T: Archivable>(_ type: T.Type) throws -> ObjectRun {
      guard T.self is AnyObject.Type else { throw ArchiveError(.unsupported, "Only classes have objects", type: T.archiveName) }
      let plan = isSame && run.type < file.staticCount ? nil : try core.plan(type, Int32(run.type))
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
  private let deferred: [Bool]
  private let isExact: Bool
  private let isKeyed: Bool
  private let hasReferences: Bool
  private var built: ContiguousArray<AnyObject> = []

  init(_ run: ArchiveFile.Run, file: ArchiveSchema, plan: FieldPlan?) {
    self.run = run
    let saved = file.types[run.type]
    node = file.typeNode(run.type)
    isExact = plan?.isSame ?? true
    self.plan = plan
    isKeyed = T.archiveIsKeyed
    deferred = plan?.deferred ?? saved.fields.map(\.deferred)
    hasReferences = saved.kind.isKeyed || saved.fields.contains(where: \.deferred)
  }

  override func build(_ reader: inout ArchiveReader) throws {
    reader.deferred = deferred
    built.reserveCapacity(run.ids.count)
    for id in run.ids {
      try prepare(&reader)
      if isKeyed {
        let object = try reader.openKeyed(T.self) { try T(from: &$0) }
        keep(unsafeBitCast(object, to: AnyObject.self), id, reader.core)
      } else {
        let object = try T(from: &reader)
        try object.decodeInheritedFields(from: &reader)
        try reader.closeObject()
        keep(unsafeBitCast(object, to: AnyObject.self), id, reader.core)
      }
    }
  }

  override func connect(_ reader: inout ArchiveReader) throws {
    guard hasReferences else { return }
    reader.deferred = deferred
    for reference in built {
      let object = unsafeBitCast(reference, to: T.self)
      try prepare(&reader)
      if isKeyed {
        try reader.openKeyed(T.self) { try object.decodeReferences(from: &$0) }
      } else {
        try object.decodeReferences(from: &reader)
        try reader.closeObject()
      }
    }
  }

  override func finish(_ core: ReaderCore) throws {
    for object in built { try unsafeBitCast(object, to: T.self).didDecode(context: core.context) }
  }

  private func keep(_ object: AnyObject, _ id: Int32, _ core: ReaderCore) {
    built.append(object)
    core.objects[Int(id)] = object
  }

  private func prepare(_ reader: inout ArchiveReader) throws {
    reader.fieldBase = 0
    reader.passedFields = nil
    reader.isExact = isExact
    reader.current = node
    if !isExact && !isKeyed, let plan { try reader.openObject(plan) }
  }
}
