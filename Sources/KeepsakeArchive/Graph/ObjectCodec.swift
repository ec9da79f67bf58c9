/// Writes and reads the objects of one class: the class's type is opened once, so that the loops over its objects are
/// statically dispatched.
///
/// That of a class of the program has no state, so one instance, created with the schema, is used for all archives.
class ObjectCodec {
  func write(_ queue: ObjectQueue, _ core: WriterCore, to writer: inout ArchiveWriter) throws {}
  func writeFingerprint(of object: AnyObject, isKeyed: Bool, deferred: FieldMask, to writer: inout ArchiveWriter) throws
  {}
  func build(_ run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {}
  func connect(_ run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {}
  func finish(_ run: ObjectRun, _ core: ReaderCore) throws {}
  /// The same for a single object of the run.
  func build(_ id: Int32, of run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {}
  func connect(_ id: Int32, of run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {}
  func finish(_ id: Int32, _ core: ReaderCore) throws {}

  /// Returns the codec of a class; nil for any other type.
  static func of(_ type: any Archivable.Type) -> ObjectCodec? {
    func open<T: Archivable & AnyObject>(_: T.Type) -> ObjectCodec { TypedObjectCodec<T>() }
    return (type as? any (Archivable & AnyObject).Type).map { open($0) }
  }
}

/// The objects of one class that were found and still have to be written.
final class ObjectQueue {
  let id: ObjectIdentifier
  let typeIndex: Int
  let isKeyed: Bool
  let deferred: FieldMask
  let codec: ObjectCodec
  @exclusivity(unchecked) var ids = RawList<Int32>()
  @exclusivity(unchecked) var next = 0
  /// Whether an object of the class was found in this archive.
  @exclusivity(unchecked) var isMet = false
  /// Larger lists are freed, so that one large archive doesn't hold memory forever.
  private static let mostBytes = 64 << 10

  init(_ id: ObjectIdentifier, typeIndex: Int, _ schema: ArchiveSchema, _ codec: ObjectCodec) {
    self.id = id
    self.typeIndex = typeIndex
    self.codec = codec
    isKeyed = schema.types[typeIndex].kind.isKeyed
    deferred = schema.types[typeIndex].deferred
  }

  /// Empties the queue for the next archive.
  func removeAll() {
    if ids.byteCount > Self.mostBytes { ids = RawList() } else { ids.removeAll() }
    next = 0
    isMet = false
  }
}

/// Objects of one class that are consecutive in an archive.
final class ObjectRun {
  let ids: ObjectNumbers
  /// The index of the class among the archive's types.
  let type: Int
  let codec: ObjectCodec
  /// Whether the program doesn't have the class, so that the objects are skipped.
  let isUnknown: Bool
  /// The saved type of the objects, as a type expression.
  let node: Int32
  /// The plan, retained by the reader's core; nil if the class's declaration is unchanged.
  let plan: Unmanaged<FieldPlan>?
  let deferred: FieldMask
  let isExact: Bool
  let isKeyed: Bool
  let hasReferences: Bool
  /// Bytes for one object and its entry in the table of all objects.
  let memory: Int

  init(_ run: ArchiveFile.Run, _ schema: ArchiveSchema, plan: FieldPlan?, program: TypeEntry, codec: ObjectCodec) {
    ids = run.ids
    self.type = run.type
    self.codec = codec
    isUnknown = false
    node = schema.types[run.type].node
    self.plan = plan.map { .passUnretained($0) }
    isExact = plan?.isSame ?? true
    isKeyed = program.kind.isKeyed
    deferred = plan.map { FieldMask($0.deferred) } ?? schema.types[run.type].deferred
    hasReferences = schema.types[run.type].kind.isKeyed || !schema.types[run.type].deferred.isEmpty
    memory = program.memory + MemoryLayout<Int>.stride
  }

  /// Creates a run of a class whose declaration is unchanged.
  init(_ ids: ObjectNumbers, _ schema: ArchiveSchema, _ type: Int, _ codec: ObjectCodec) {
    self.ids = ids
    self.type = type
    self.codec = codec
    isUnknown = false
    node = schema.types[type].node
    plan = nil
    isExact = true
    isKeyed = schema.types[type].kind.isKeyed
    deferred = schema.types[type].deferred
    hasReferences = isKeyed || !deferred.isEmpty
    memory = schema.types[type].memory + MemoryLayout<Int>.stride
  }

  /// Creates a run of a class that the program doesn't have.
  init(skipping run: ArchiveFile.Run, _ schema: ArchiveSchema) {
    ids = run.ids
    type = run.type
    codec = SkippingCodec()
    isUnknown = true
    node = schema.types[type].node
    plan = nil
    isExact = false
    isKeyed = schema.types[type].kind.isKeyed
    deferred = schema.types[type].deferred
    hasReferences = isKeyed || !deferred.isEmpty
    memory = 0
  }

  /// Creates a run of the same objects, whose references are recorded as they are read.
  init(recording run: ObjectRun, in record: ReferenceRecord) {
    ids = run.ids
    type = run.type
    codec = RecordingCodec(run.codec, record)
    isUnknown = false
    node = run.node
    plan = run.plan
    deferred = run.deferred
    isExact = run.isExact
    isKeyed = run.isKeyed
    hasReferences = run.hasReferences
    memory = run.memory
  }

  @inline(__always) func prepare(_ reader: inout ArchiveReader) throws {
    reader.fieldBase = 0
    reader.isExact = isExact
    if isExact && !isKeyed { return }
    reader.passedFields = nil
    reader.current = node
    if !isKeyed { try plan?._withUnsafeGuaranteedRef { try reader.openObject($0) } }
  }
}

private final class TypedObjectCodec<T: Archivable & AnyObject>: ObjectCodec {
  /// Small enough that the objects are still in the processor's cache when their references are written.
  private static var batch: Int { 256 }

  /// Writes all waiting objects in batches: first their values, then their references, until writing those finds no
  /// more objects of this class.
  override func write(_ queue: ObjectQueue, _ core: WriterCore, to writer: inout ArchiveWriter) throws {
    let isKeyed = queue.isKeyed
    writer.deferred = queue.deferred
    let hasReferences = isKeyed || !queue.deferred.isEmpty
    while queue.next < queue.ids.count {
      // Check first: after a value failed, the queues may have numbers that must not be used.
      try core.checkFailure()
      let batch = queue.next..<min(queue.ids.count, queue.next + Self.batch)
      queue.next = batch.upperBound
      let firstPosition = core.writtenCount
      for index in batch {
        let id = queue.ids[index]
        core.begin(id, type: queue.typeIndex, values: writer.offset, references: writer.otherOffset)
        writer.fieldBase = 0
        try core.object(id)._withUnsafeGuaranteedRef { object in
          // Queues hold only objects whose dynamic class is exactly T.
          let object = unsafeDowncast(object, to: T.self)
          if isKeyed {
            try writer.writeKeyedBody { try object.encode(to: &$0) }
          } else {
            try object.encode(to: &writer)
          }
        }
      }
      core.buildsObject = false
      guard hasReferences else { continue }
      writer.swapSections()
      for index in batch {
        core.recordReferences(position: firstPosition + index - batch.lowerBound, at: writer.offset)
        writer.fieldBase = 0
        try core.object(queue.ids[index])._withUnsafeGuaranteedRef { object in
          let object = unsafeDowncast(object, to: T.self)
          if isKeyed {
            try writer.writeKeyedBody { try object.encodeReferences(to: &$0) }
          } else {
            try object.encodeReferences(to: &writer)
          }
        }
      }
      writer.swapSections()
    }
  }

  override func writeFingerprint(
    of object: AnyObject, isKeyed: Bool, deferred: FieldMask, to writer: inout ArchiveWriter
  ) throws {
    let outer = (writer.deferred, writer.fieldBase)
    defer { (writer.deferred, writer.fieldBase) = outer }
    writer.deferred = deferred
    writer.fieldBase = 0
    let typed = unsafeDowncast(object, to: T.self)
    if isKeyed { try writer.writeKeyedBody { try typed.encode(to: &$0) } } else { try typed.encode(to: &writer) }
  }

  override func build(_ run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {
    reader.deferred = run.deferred
    for id in run.ids { try buildObject(id, run, core, &reader) }
  }

  override func build(_ id: Int32, of run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {
    reader.deferred = run.deferred
    try buildObject(id, run, core, &reader)
  }

  @inline(__always) private func buildObject(
    _ id: Int32, _ run: ObjectRun, _ core: ReaderCore, _ reader: inout ArchiveReader
  ) throws {
    try run.prepare(&reader)
    if run.isKeyed {
      core.keep(try reader.openKeyed(T.self) { try T(from: &$0) }, id)
    } else {
      let object = try T(from: &reader)
      try object.decodeInheritedFields(from: &reader)
      if !run.isExact { try reader.closeObject() }
      core.keep(object, id)
    }
  }

  override func connect(_ run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {
    guard run.hasReferences else { return }
    reader.deferred = run.deferred
    for id in run.ids { try connectObject(id, run, core, &reader) }
  }

  override func connect(_ id: Int32, of run: ObjectRun, _ core: ReaderCore, from reader: inout ArchiveReader) throws {
    reader.deferred = run.deferred
    try connectObject(id, run, core, &reader)
  }

  @inline(__always) private func connectObject(
    _ id: Int32, _ run: ObjectRun, _ core: ReaderCore, _ reader: inout ArchiveReader
  ) throws {
    try run.prepare(&reader)
    try core.object(id)?._withUnsafeGuaranteedRef { object in
      // Runs contain only objects that `build` created.
      let object = unsafeDowncast(object, to: T.self)
      if run.isKeyed {
        try reader.openKeyed(T.self) { try object.decodeReferences(from: &$0) }
      } else {
        try object.decodeReferences(from: &reader)
        if !run.isExact { try reader.closeObject() }
      }
    }
  }

  override func finish(_ run: ObjectRun, _ core: ReaderCore) throws {
    // Read once for all objects: copying an `Any?` costs as much as many a hook.
    let context = core.context
    for id in run.ids {
      try core.object(id)?._withUnsafeGuaranteedRef { object in
        try unsafeDowncast(object, to: T.self).didDecode(context: context)
      }
    }
  }

  override func finish(_ id: Int32, _ core: ReaderCore) throws {
    try core.object(id)?._withUnsafeGuaranteedRef { object in
      try unsafeDowncast(object, to: T.self).didDecode(context: core.context)
    }
  }
}
