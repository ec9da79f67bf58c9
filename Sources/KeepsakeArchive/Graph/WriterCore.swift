import Foundation

/// The state of a writer besides its bytes: the schema, the objects found, and the order in which they were written.
///
/// Properties that are used for every object are declared without run-time exclusivity checks: a single call encodes,
/// on one thread, and none of these properties is exposed while it is changed.
@usableFromInline final class WriterCore {
  @exclusivity(unchecked) private(set) var schema: ArchiveSchema
  let compiled: CompiledSchema
  private let staticTypes: Int
  private let extraClasses: [any Archivable.Type]
  let limits: ArchiveLimits
  private let objectLimit: Int

  private let scratch = WriterScratch()

  /// The queues of this archive's classes, in the order in which the classes were found. One archive of a game has some
  /// dozens at most.
  @exclusivity(unchecked) private var queues = RawList<Unmanaged<ObjectQueue>>()
  /// These queues and those of earlier archives. Each is retained once.
  @exclusivity(unchecked) private var knownQueues = RawList<Unmanaged<ObjectQueue>>()
  @exclusivity(unchecked) private var lastClass: ObjectIdentifier?
  @exclusivity(unchecked) private var lastQueue: Unmanaged<ObjectQueue>?
  @exclusivity(unchecked) private var unowned: [Int32] = []
  /// The first error in a hand-written value, kept because its conformance may have caught it.
  @exclusivity(unchecked) private var failure: (any Error)?
  /// True while the part of an object that its initialiser needs is written: objects referred to there must be built
  /// before it.
  @exclusivity(unchecked) var buildsObject = false

  @exclusivity(unchecked) private(set) var names: [String] = []
  @exclusivity(unchecked) private var nameIndexes: [String: Int] = [:]
  @exclusivity(unchecked) private(set) var wires: [Int32] = []
  @exclusivity(unchecked) private var wireIndexes: [Int32: Int] = [:]

  /// Memory for a references section, reused for the next archive.
  @exclusivity(unchecked) private var spare: (memory: UnsafeMutableRawPointer, bytes: Int)?
  private static let mostSpareBytes = 64 << 10

  /// Memory for the bytes of a small archive, reused for the next one.
  @exclusivity(unchecked) private var output: (memory: UnsafeMutableRawPointer, bytes: Int)?
  /// Archives up to this size are copied out of it.
  static let mostOutputBytes = 2 << 10

  private init(_ compiled: CompiledSchema, classes: [any Archivable.Type], limits: ArchiveLimits) {
    self.compiled = compiled
    schema = compiled.schema
    staticTypes = compiled.typeCount
    extraClasses = classes
    self.limits = limits
    scratch.prepare(for: compiled.expectedBytes)
    objectLimit = min(limits.objects, Int(Int32.max) - 1)
  }

  deinit {
    for queue in knownQueues.elements { queue.release() }
    if let spare { free(spare.memory) }
    if let output { free(output.memory) }
  }

  func takeSpare() -> (memory: UnsafeMutableRawPointer, bytes: Int)? {
    defer { spare = nil }
    return spare
  }

  /// The memory must come from `malloc`.
  func keepSpare(_ memory: UnsafeMutableRawPointer, _ bytes: Int) {
    if spare == nil, bytes <= Self.mostSpareBytes { spare = (memory, bytes) } else { free(memory) }
  }

  func takeOutput(atLeast bytes: Int) -> (memory: UnsafeMutableRawPointer, bytes: Int)? {
    guard let kept = output, kept.bytes >= bytes else { return nil }
    output = nil
    return kept
  }

  /// The memory must come from `malloc`.
  func keepOutput(_ memory: UnsafeMutableRawPointer, _ bytes: Int) {
    if output == nil, bytes <= Self.mostSpareBytes { output = (memory, bytes) } else { free(memory) }
  }

  /// Returns a writer for one archive, retained once. The caller must give it back.
  static func take(_ compiled: CompiledSchema, classes: [any Archivable.Type], limits: ArchiveLimits)
    -> Unmanaged<WriterCore>
  {
    guard classes.isEmpty, let idle = compiled.idleWriter.take() else {
      return .passRetained(WriterCore(compiled, classes: classes, limits: limits))
    }
    let isSame = idle._withUnsafeGuaranteedRef { idle in
      guard idle.limits == limits else { return false }
      idle.scratch.prepare(for: compiled.expectedBytes)
      return true
    }
    if isSame { return idle }
    idle.release()
    return .passRetained(WriterCore(compiled, classes: classes, limits: limits))
  }

  /// Releases the objects, and keeps what the next archive of the same type can use.
  static func giveBack(_ core: Unmanaged<WriterCore>, _ compiled: CompiledSchema) {
    if core._withUnsafeGuaranteedRef({ $0.clear() }) { compiled.idleWriter.giveBack(core) } else { core.release() }
  }

  /// Releases the objects, and returns whether another archive can use the rest.
  private func clear() -> Bool {
    scratch.finish()
    guard isStatic, extraClasses.isEmpty else { return false }
    for queue in queues.elements { queue._withUnsafeGuaranteedRef { $0.removeAll() } }
    queues.removeAll()
    lastClass = nil
    lastQueue = nil
    if !unowned.isEmpty { unowned = [] }
    buildsObject = false
    failure = nil
    return true
  }

  /// The number and the encoded description of the types that no declaration leads to.
  var dynamicSchema: (count: Int, bytes: [UInt8]) {
    (schema.types.count - staticTypes, schema === compiled.schema ? [] : schema.encoded(from: staticTypes))
  }

  /// Whether the static declarations describe the archive completely.
  var isStatic: Bool { schema === compiled.schema && names.isEmpty && wires.isEmpty }

  func failed(_ error: any Error) { if failure == nil { failure = error } }

  func checkFailure() throws { if let failure { throw failure } }

  // MARK: Objects

  var objectCount: Int { scratch.objects.count }
  var writtenCount: Int { scratch.written.count }
  func written(_ position: Int) -> WriterScratch.Written { scratch.written[position] }
  /// The first written object, if all objects are of one class and numbered in the order of writing; otherwise nil.
  var onlyRun: WriterScratch.Written? {
    let written = scratch.written.elements
    guard let first = written.first else { return nil }
    var id = first.id
    for entry in written {
      guard entry.type == first.type, entry.id == id else { return nil }
      id &+= 1
    }
    return first
  }
  func object(_ id: Int32) -> Unmanaged<AnyObject> { scratch.objects[Int(id)] }

  @inline(__always) private func entry(for object: AnyObject) throws -> UnsafeMutablePointer<IdentityTable.Entry> {
    let next = Int32(truncatingIfNeeded: scratch.objects.count)
    let (entry, isNew) = scratch.identity.entry(for: object, next: next)
    if isNew {
      guard scratch.objects.count < objectLimit else {
        throw ArchiveError(.limit, "There are more than \(objectLimit) objects to save")
      }
      scratch.objects.append(Unmanaged.passRetained(object))
    }
    return entry
  }

  func number(for object: AnyObject) throws -> Int32 { try entry(for: object).pointee.number }

  func enqueue(_ object: AnyObject) throws -> Int32 {
    let entry = try entry(for: object)
    let id = entry.pointee.number
    if !entry.pointee.isQueued {
      if ObjectIdentifier(type(of: object)) != lastClass { _ = try queue(for: object) }
      entry.pointee.isQueued = true
      lastQueue?._withUnsafeGuaranteedRef { $0.ids.append(id) }
    }
    recordNeed(id)
    return id
  }

  func noteUnowned(_ id: Int32) {
    unowned.append(id)
    recordNeed(id)
  }

  @inline(__always) private func recordNeed(_ id: Int32) {
    if buildsObject {
      scratch.needs.append(WriterScratch.Need(position: Int32(truncatingIfNeeded: scratch.written.count - 1), id: id))
    }
  }

  func queue(for object: AnyObject) throws -> Unmanaged<ObjectQueue> {
    let key = ObjectIdentifier(type(of: object))
    let queue: Unmanaged<ObjectQueue>
    if let known = knownQueues.elements.first(where: { $0._withUnsafeGuaranteedRef { $0.id == key } }) {
      queue = known
    } else {
      queue = .passRetained(try makeQueue(key, object))
      knownQueues.append(queue)
    }
    queue._withUnsafeGuaranteedRef { opened in
      guard !opened.isMet else { return }
      opened.isMet = true
      queues.append(queue)
    }
    lastClass = key
    lastQueue = queue
    return queue
  }

  /// A schema of the classes that the caller passed and those that they list.
  private lazy var listed: ArchiveSchema = {
    let schema = ArchiveSchema()
    extraClasses.forEach(schema.describe)
    schema.markDeferred()
    return schema
  }()

  private func listedClass(_ key: ObjectIdentifier) -> TypeEntry? {
    if extraClasses.isEmpty { return nil }
    return listed.typeIndex(of: key).map { listed.types[Int($0)] }
  }

  /// Returns how an object of this class is written, without creating a queue for the class.
  func shape(of object: AnyObject) throws -> (TypeEntry, ObjectCodec) {
    let key = ObjectIdentifier(type(of: object))
    let declared = compiled.schema.typeIndex(of: key).map { compiled.schema.types[Int($0)] }
    guard let entry = declared ?? listedClass(key), let codec = entry.codec else { throw unlisted(object) }
    return (entry, codec)
  }

  private func makeQueue(_ key: ObjectIdentifier, _ object: AnyObject) throws -> ObjectQueue {
    if schema.typeIndex(of: key) == nil, let type = listedClass(key)?.type { try extendSchema { $0.describe(type) } }
    // A class that is reachable only through a hand-written value would not be found when loading.
    guard let index = schema.typeIndex(of: key), let codec = schema.types[Int(index)].codec,
      index < staticTypes || listedClass(key) != nil
    else { throw unlisted(object) }
    return ObjectQueue(key, typeIndex: Int(index), schema, codec)
  }

  private func unlisted(_ object: AnyObject) -> ArchiveError {
    let name = "\(type(of: object))"
    return ArchiveError(
      .unlistedClass,
      """
      The class \(name) isn't listed, so it could not be loaded again: mark it @Archivable and add it to its \
      superclass's @Archivable(subclasses:), to archiveSubclasses of the hand-written type that refers to it, or to \
      classes:
      """,
      type: name)
  }

  func begin(_ id: Int32, type: Int, values: Int, references: Int) {
    scratch.written.append(
      WriterScratch.Written(id: id, type: Int32(truncatingIfNeeded: type), values: values, references: references))
    buildsObject = true
  }

  func recordReferences(position: Int, at offset: Int) {
    var entry = scratch.written[position]
    entry.references = offset
    scratch.written[position] = entry
  }

  /// Writes queued objects, class by class, until none are left.
  func drainQueues(_ writer: inout ArchiveWriter) throws {
    var isDone = false
    while !isDone {
      isDone = true
      // By index, because writing may find objects of further classes.
      var index = 0
      while index < queues.count {
        try queues[index]._withUnsafeGuaranteedRef { queue in
          guard queue.next < queue.ids.count else { return }
          isDone = false
          try queue.codec.write(queue, self, to: &writer)
        }
        index += 1
      }
    }
  }

  /// Returns the positions in the order in which the decoder must build the objects, or nil if the written order works.
  func buildOrder() throws -> [Int32]? {
    guard scratch.needs.count > 0 || !unowned.isEmpty else { return nil }
    var positions = [Int32](repeating: -1, count: scratch.objects.count)
    for (position, entry) in scratch.written.elements.enumerated() {
      positions[Int(entry.id)] = Int32(truncatingIfNeeded: position)
    }
    for id in unowned where positions[Int(id)] < 0 {
      throw ArchiveError(
        .unbuildable, "An unowned reference points to an object that isn't saved: save its owner, too",
        type: scratch.objects[Int(id)]._withUnsafeGuaranteedRef { "\(type(of: $0))" })
    }
    let edges = scratch.needs.elements.map { ($0.position, positions[Int($0.id)]) }
    guard edges.contains(where: { $0.1 >= $0.0 }) else { return nil }
    let order = BuildOrder(count: scratch.written.count, edges: edges)
    guard order.blocked.isEmpty else { throw cycle(edges, order.blocked) }
    return (0..<Int32(scratch.written.count)).sorted {
      let (a, b) = (Int($0), Int($1))
      return (order.levels[a], scratch.written[a].type, $0) < (order.levels[b], scratch.written[b].type, $1)
    }
  }

  /// Returns the error for a cycle. Each blocked object needs another blocked one, so following them ends in a cycle.
  private func cycle(_ edges: [(Int32, Int32)], _ blocked: Set<Int32>) -> ArchiveError {
    var next: [Int32: Int32] = [:]
    for (from, to) in edges where blocked.contains(from) && blocked.contains(to) { next[from] = to }
    var position = blocked.min() ?? 0
    for _ in 0..<blocked.count { position = next[position] ?? position }
    var path: [String] = []
    var seen: Set<Int32> = []
    while seen.insert(position).inserted, let following = next[position], path.count < 8 {
      path.append(schema.types[Int(scratch.written[Int(position)].type)].name)
      position = following
    }
    let names = (path + [path.first ?? "?"]).joined(separator: " -> ")
    return ArchiveError(
      .unbuildable, "Objects need each other to be built (\(names)): make one reference an optional variable",
      type: path.first)
  }

  // MARK: Hand-written values

  func extendSchema(_ body: (ArchiveSchema) -> Void) throws {
    if schema === compiled.schema { schema = ArchiveSchema(copying: schema) }
    let start = schema.types.count
    body(schema)
    schema.markDeferred(from: start)
    if let problem = schema.problem { throw problem }
  }

  func nameIndex(_ name: String) throws -> Int {
    if let known = nameIndexes[name] { return known }
    guard names.count < limits.fields else {
      throw ArchiveError(.limit, "There are more than \(limits.fields) different keys")
    }
    names.append(name)
    nameIndexes[name] = names.count - 1
    return names.count - 1
  }

  func wireIndex<T: Archivable>(_ type: T.Type) throws -> Int {
    var node: Int32 = 0
    try extendSchema { node = $0.node(of: type) }
    if let known = wireIndexes[node] { return known }
    wires.append(node)
    wireIndexes[node] = wires.count - 1
    return wires.count - 1
  }
}
