/// What a reader keeps beside its position: the archive's schema, how it maps to the program's, and the objects.
@usableFromInline final class ReaderCore {
  let file: ArchiveSchema
  /// The archive's type expressions.
  let nodes: [WireNode]
  private(set) var program: ArchiveSchema
  private let compiled: CompiledSchema
  let limits: ArchiveLimits
  @exclusivity(unchecked) private(set) var context: Any?
  @usableFromInline let stringLimit: Int
  /// Key names and value types of hand-written values.
  let names: [String]
  let wires: [Int32]
  @exclusivity(unchecked) private(set) var objectCount: Int
  /// By number, as far as they are built, each retained once; in memory of its own, because each reference looks here.
  private let table: UnsafeMutableBufferPointer<Unmanaged<AnyObject>?>
  /// Those to which a value refers without owning them.
  @exclusivity(unchecked) var unowned: [AnyObject] = []
  @exclusivity(unchecked) var memory: MemoryBudget
  /// What `run` made last.
  @exclusivity(unchecked) private var lastRun: ObjectRun?
  private let compared = ComparedTypes()
  /// An enum case that the program doesn't know was read as its fallback: values that were different may have become equal.
  var usedFallback = false
  /// By the archive's types: how a type of the program reads them. Another program type that reads the same one is in `morePlans`.
  @exclusivity(unchecked) private var plans: [PlanEntry?]
  private var morePlans: [PlanKey: FieldPlan] = [:]
  /// Positions of fields that don't come in the program's order: of the value that is being read, after those around it.
  @exclusivity(unchecked) var located = RawList<ArchiveFields.Position>()
  /// What is being passed over, from the outside in; empty but during one call of `skip`, kept for its memory.
  @exclusivity(unchecked) var skipped: [SkippedValue] = []

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
    plans = file.isSame && file.schema === compiled.schema ? [] : Array(repeating: nil, count: file.schema.types.count)
    table = .allocate(capacity: file.objectCount)
    table.initialize(repeating: nil)
  }

  /// For a `SmallArchive`; serves one after the other.
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
  }

  deinit {
    end()
    table.deallocate()
  }

  func begin(objects count: Int, context: Any?) {
    objectCount = count
    if context != nil { self.context = context }
  }

  /// The objects of a `SmallArchive`.
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

  /// Lets go of everything.
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

  /// Keeps an object that was just built.
  func keep(_ object: AnyObject, _ id: Int32) { table[Int(id)] = Unmanaged.passRetained(object) }

  @inline(__always) func object(_ id: Int32) -> Unmanaged<AnyObject>? { table[Int(id)] }

  func extendProgram(_ body: (ArchiveSchema) -> Void) throws {
    if program === compiled.schema { program = ArchiveSchema(copying: program) }
    let start = program.types.count
    body(program)
    program.markDeferred(from: start)
    if let problem = program.problem { throw problem }
  }

  /// How the program's type reads the archive's type, made when first needed.
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
