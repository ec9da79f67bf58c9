/// The state of a reader besides its position: the archive's schema, how it maps to the program's, and the objects.
@usableFromInline final class ReaderCore {
  let file: ArchiveSchema
  /// The archive's type expressions.
  let nodes: [WireNode]
  private(set) var program: ArchiveSchema
  private let compiled: CompiledSchema
  let limits: ArchiveLimits
  @exclusivity(unchecked) private(set) var context: Any?
  @usableFromInline let stringLimit: Int
  /// The keys and value types of hand-written values.
  let names: [String]
  let wires: [Int32]
  @exclusivity(unchecked) private(set) var objectCount: Int
  /// The built objects by number, each retained once. Allocated separately, because every reference is looked up here.
  private let table: UnsafeMutableBufferPointer<Unmanaged<AnyObject>?>
  /// The objects that a value refers to without owning them.
  @exclusivity(unchecked) var unowned: [AnyObject] = []
  @exclusivity(unchecked) var memory: MemoryBudget
  /// The last result of `run`.
  @exclusivity(unchecked) private var lastRun: ObjectRun?
  private let compared = ComparedTypes()
  /// Whether an unknown enum case was read as its fallback, so that different values may have become equal.
  var usedFallback = false
  /// By the archive's type index: how a type of the program reads it. Further program types that read the same one are
  /// in `morePlans`.
  @exclusivity(unchecked) private var plans: [PlanEntry?]
  private var morePlans: [PlanKey: FieldPlan] = [:]
  /// Positions of fields that aren't in the program's order. Those of the value that is being read follow those of its
  /// enclosing values.
  @exclusivity(unchecked) var located = RawList<ArchiveFields.Position>()
  /// The values being skipped, from the outermost in. Empty except during a call of `skip`; kept for its memory.
  @exclusivity(unchecked) var skipped: [SkippedValue] = []
  /// The highest number of an object that a reference is looked up by at once: the number of objects, or 0 while
  /// references are recorded.
  @exclusivity(unchecked) private(set) var directCount: Int
  /// The references that are read, in an archive that has objects of unknown classes; otherwise nil.
  @exclusivity(unchecked) private(set) var record: ReferenceRecord?

  private struct PlanEntry {
    let type: ObjectIdentifier
    let plan: FieldPlan
  }

  private struct PlanKey: Hashable {
    let type: ObjectIdentifier
    let index: Int32
  }

  init(file: ArchiveFile, compiled: CompiledSchema, context: Any?, limits: ArchiveLimits) {
    self.file = file.schema
    nodes = file.schema.nodes
    self.compiled = compiled
    program = compiled.schema
    names = file.names
    wires = file.wires
    self.context = context
    self.limits = limits
    stringLimit = limits.stringBytes
    memory = MemoryBudget(limits)
    objectCount = file.objectCount
    directCount = objectCount
    plans = file.isSame && file.schema === compiled.schema ? [] : Array(repeating: nil, count: file.schema.types.count)
    table = .allocate(capacity: file.objectCount)
    table.initialize(repeating: nil)
  }

  /// Returns a reader core for a `SmallArchive`, retained once. The caller gives it back to the schema's slot.
  static func take(_ compiled: CompiledSchema, limits: ArchiveLimits) -> Unmanaged<ReaderCore> {
    guard let idle = compiled.idleReader.take() else { return .passRetained(ReaderCore(compiled, limits: limits)) }
    if idle._withUnsafeGuaranteedRef({ $0.limits == limits }) { return idle }
    idle.release()
    return .passRetained(ReaderCore(compiled, limits: limits))
  }

  /// Creates a reader core for a `SmallArchive`. It can be reused for one after the other.
  init(_ compiled: CompiledSchema, limits: ArchiveLimits) {
    file = compiled.schema
    nodes = compiled.schema.nodes
    self.compiled = compiled
    program = compiled.schema
    names = []
    wires = []
    self.limits = limits
    stringLimit = limits.stringBytes
    memory = MemoryBudget(limits)
    plans = []
    table = .allocate(capacity: SmallArchive.mostObjects)
    table.initialize(repeating: nil)
    objectCount = 0
    directCount = 0
  }

  deinit {
    end()
    table.deallocate()
  }

  func begin(objects count: Int, context: Any?) {
    objectCount = count
    directCount = count
    if context != nil { self.context = context }
  }

  /// Returns the objects of a `SmallArchive` as a run.
  func run(_ type: Int, count: Int, at offset: Int) throws -> ObjectRun {
    let run: ObjectRun
    if let lastRun, lastRun.type == type, lastRun.ids.count == count {
      run = lastRun
    } else {
      guard let codec = file.types[type].codec else {
        throw ArchiveError(.damaged, "A run of objects has no class", offset: offset)
      }
      run = ObjectRun(ObjectNumbers(from: 0, count: count), file, type, codec)
      lastRun = run
    }
    try memory.claim(count, of: run.memory, at: offset)
    return run
  }

  /// Releases everything that belongs to the archive.
  func end() {
    if context != nil { context = nil }
    if !unowned.isEmpty { unowned = [] }
    for index in 0..<objectCount {
      table[index]?.release()
      table[index] = nil
    }
    objectCount = 0
    memory = MemoryBudget(limits)
  }

  var objects: UnsafeMutableBufferPointer<Unmanaged<AnyObject>?> { .init(start: table.baseAddress, count: objectCount) }

  /// Retains an object that was just built.
  func keep(_ object: AnyObject, _ id: Int32) { table[Int(id)] = Unmanaged.passRetained(object) }

  @inline(__always) func object(_ id: Int32) -> Unmanaged<AnyObject>? { table[Int(id)] }

  /// Records each reference that is read from now on.
  ///
  /// - Returns: The runs to read instead.
  func startRecord(_ runs: [ObjectRun], at offset: Int) throws -> [ObjectRun] {
    try memory.claim(objectCount, of: ReferenceRecord.bytesPerObject, at: offset)
    let record = ReferenceRecord(file, objectCount, runs)
    self.record = record
    directCount = 0
    return runs.map { $0.isUnknown ? $0 : ObjectRun(recording: $0, in: record) }
  }

  func endRecord() { record = nil }

  func extendProgram(_ body: (ArchiveSchema) -> Void) throws {
    if program === compiled.schema { program = ArchiveSchema(copying: program) }
    let start = program.types.count
    body(program)
    program.markDeferred(from: start)
    if let problem = program.problem { throw problem }
  }

  /// Returns how the program's type reads the archive's type. Created when first needed.
  func plan<T: Archivable>(_ type: T.Type, _ index: Int32) throws -> FieldPlan {
    let id = ObjectIdentifier(type)
    if plans.isEmpty { plans = Array(repeating: nil, count: file.types.count) }
    if let known = plans[Int(index)], known.type == id { return known.plan }
    let key = PlanKey(type: id, index: index)
    if let known = morePlans[key] { return known }
    if program.typeIndex(of: id) == nil { try extendProgram { _ = $0.node(of: type) } }
    guard let own = program.typeIndex(of: id) else {
      throw ArchiveError(.unsupported, "The type describes no fields", type: T.archiveName)
    }
    let plan = try FieldPlan(file: file, index: Int(index), program: program, own: Int(own), compared: compared)
    if plans[Int(index)] == nil { plans[Int(index)] = PlanEntry(type: id, plan: plan) } else { morePlans[key] = plan }
    return plan
  }
}
