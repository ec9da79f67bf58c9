/// What a reader keeps beside its position: the archive's schema, how it maps to the program's, and the objects.
@usableFromInline final class ReaderCore {
  let file: ArchiveSchema
  private(set) var program: ArchiveSchema
  private let compiled: CompiledSchema
  let limits: ArchiveLimits
  let context: Any?
  @usableFromInline let stringLimit: Int
  /// Key names and value types of hand-written values.
  let names: [String]
  let wires: [Int32]
  /// By number, as far as they are built. Never read and written at the same time: one call decodes, on one thread.
  @exclusivity(unchecked) var objects: ContiguousArray<AnyObject?>
  /// Those to which a value refers without owning them.
  @exclusivity(unchecked) var unowned: [AnyObject] = []
  private let compared = ComparedTypes()
  private var plans: [PlanKey: FieldPlan] = [:]
  private var lastPlan: (key: PlanKey, plan: FieldPlan)?

  struct PlanKey: Hashable {
    let type: ObjectIdentifier
    let index: Int32
  }

  init(
    file: ArchiveSchema, compiled: CompiledSchema, names: [String], wires: [Int32], objectCount: Int, context: Any?,
    limits: ArchiveLimits
  ) {
    self.file = file
    self.compiled = compiled
    program = compiled.schema
    self.names = names
    self.wires = wires
    self.context = context
    self.limits = limits
    stringLimit = limits.stringBytes
    objects = ContiguousArray(repeating: nil, count: objectCount)
  }

  func extendProgram(_ body: (ArchiveSchema) -> Void) throws {
    if program === compiled.schema { program = ArchiveSchema(copying: program) }
    let start = program.types.count
    body(program)
    program.markDeferred(from: start)
    if let problem = program.problem { throw problem }
  }

  /// How the program's type reads the archive's type, made when first needed.
  func plan<T: Archivable>(_ type: T.Type, _ index: Int32) throws -> FieldPlan {
    let key = PlanKey(type: ObjectIdentifier(type), index: index)
    if let lastPlan, lastPlan.key == key { return lastPlan.plan }
    if let known = plans[key] {
      lastPlan = (key, known)
      return known
    }
    if program.typeIndex(of: key.type) == nil { try extendProgram { _ = $0.node(of: type) } }
    guard let own = program.typeIndex(of: key.type) else {
      throw ArchiveError(.unsupported, "The type describes no fields", type: T.archiveName)
    }
    let plan = try FieldPlan(file: file, index: Int(index), program: program, own: Int(own), compared: compared)
    plans[key] = plan
    lastPlan = (key, plan)
    return plan
  }
}
