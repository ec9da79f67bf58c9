/// How one of the program's types reads one of the archive's types: made once for each pair.
@usableFromInline final class FieldPlan {
  /// What becomes of a field of the program.
  @usableFromInline struct Step: BitwiseCopyable {
    /// The archive's field, or -1 if it has none of that key.
    @usableFromInline var source: Int32
    /// The archive's type of it.
    var node: Int32
    /// Both declarations are the same all the way down.
    var isSame: Bool
    /// The archive has it in the references section.
    var deferred: Bool
    /// It can be read where it stands by the program's own type: it is the same, in the values section, and nothing that may be
    /// empty and give way to a default value.
    @usableFromInline var isPlain: Bool
    /// The archive has a field of that key which can't be read as the program's; the migration hook must read it.
    var isRetyped = false
  }

  /// A field of the archive: what it takes to pass over it.
  struct Passed: BitwiseCopyable {
    let node: Int32
    let deferred: Bool
    let form: ArchiveReader.PassedForm
    /// Which field of the program reads it, or -1.
    let place: Int32
  }

  /// One class of an object.
  struct Level {
    /// nil for a class that was put between later.
    let savedVersion: Int?
    let isOlder: Bool
  }

  /// What stands for an enum case that the program doesn't know.
  struct Fallback {
    let key: String
  }

  let name: String
  let savedVersion: Int
  /// An older version was saved, of the type or of a class above it: `migrate` is called.
  let isOlder: Bool
  /// Of a class: from the topmost one down to the object's own.
  let levels: [Level]
  /// Keys of saved fields that nothing but the migration hook can read.
  let retyped: [String]
  /// Of the plan for an enum case: the case is unknown and another stands for it.
  let fallback: Fallback?
  /// Of the plan for an enum case: the saved case.
  let caseKey: String?
  /// Same declaration: read without looking anything up.
  let isSame: Bool
  let isKeyed: Bool
  let isObject: Bool
  /// A struct without fields was saved: it took a byte.
  let isEmptyStruct: Bool
  let fields: [FieldEntry]
  let keys: [String]
  /// In memory of its own, as are the steps.
  let passed: UnsafeMutableBufferPointer<Passed>
  let steps: [Step]
  /// The same in memory of its own, which a reader may look at without counting references.
  let stepMemory: UnsafeMutableBufferPointer<Step>
  /// By the program's fields: stands in the references section.
  let deferred: [Bool]
  /// The archive's fields come in the program's order, so that no positions need to be looked up first.
  let isOrdered: Bool
  /// By the archive's cases.
  let cases: [(index: Int, plan: FieldPlan)?]
  let caseKeys: [String]
  let program: ArchiveSchema

  init(file: ArchiveSchema, index: Int, program: ArchiveSchema, own: Int, compared: ComparedTypes) throws {
    let saved = file.types[index]
    let mine = program.types[own]
    levels = try Self.levels(saved, mine)
    isOlder = levels.contains(where: \.isOlder)
    fallback = nil
    caseKey = nil
    let kindsFit = saved.kind.isObject == mine.kind.isObject && (saved.kind == .enumeration) == (mine.kind == .enumeration)
    // A hand-written value carries any content; whether an enum is among it shows when it is read.
    guard kindsFit || saved.kind == .keyedValue || mine.kind == .keyedValue, saved.kind.isObject == mine.kind.isObject else {
      throw ArchiveError(.mismatch, "The archive has another kind of type under this name (\(saved.name))", type: mine.name)
    }
    name = mine.name
    savedVersion = saved.version
    isKeyed = saved.kind.isKeyed
    isObject = saved.kind.isObject
    isEmptyStruct = saved.kind == .structure && saved.fields.isEmpty
    guard saved.kind != .keyedObject || mine.kind == .keyedObject else {
      throw ArchiveError(
        .unsupported, "A hand-written class was saved: its conformance must stay hand-written to read it", type: mine.name)
    }
    var comparison = SchemaComparison(file: file, program: program, compared: compared)
    isSame = comparison.sameType(Int32(index), Int32(own))
    var cases: [(index: Int, plan: FieldPlan)?] = []
    for savedCase in saved.cases {
      let known = mine.cases.firstIndex(where: { $0.key == savedCase.key })
      guard let target = known ?? mine.fallback else {
        cases.append(nil)
        continue
      }
      // Nothing of an unknown case is read, so its plan knows no field of the program's.
      let plan = FieldPlan(
        name: mine.name, version: saved.version, isOlder: isOlder, caseKey: savedCase.key, saved: savedCase.fields,
        own: known == nil ? [] : mine.cases[target].fields, fallback: known == nil ? Fallback(key: savedCase.key) : nil,
        program: program, comparison: &comparison)
      cases.append((target, plan))
    }
    self.cases = cases
    caseKeys = saved.cases.map(\.key)
    self.program = program
    fields = saved.fields
    keys = mine.fields.map(\.key)
    steps = Self.steps(saved: saved.fields, own: mine.fields, isOlder: isOlder, &comparison)
    retyped = Self.retyped(steps, mine.fields)
    passed = Self.passed(saved.fields, steps, file)
    isOrdered = Self.ordered(steps)
    stepMemory = Self.memory(steps)
    deferred = steps.map(\.deferred)
    for (field, isDeferred) in zip(mine.fields, deferred) where isDeferred && !field.deferrable {
      throw ArchiveError(
        .mismatch, "This reference was saved from a variable and is set after all objects exist: it must stay an optional variable",
        type: mine.name, field: field.key)
    }
  }

  private init(
    name: String, version: Int, isOlder: Bool, caseKey: String, saved: [FieldEntry], own: [FieldEntry], fallback: Fallback?,
    program: ArchiveSchema, comparison: inout SchemaComparison
  ) {
    self.name = name
    self.caseKey = caseKey
    savedVersion = version
    self.isOlder = isOlder
    self.fallback = fallback
    levels = [Level(savedVersion: version, isOlder: isOlder)]
    self.program = program
    isKeyed = false
    isObject = false
    isEmptyStruct = false
    cases = []
    caseKeys = []
    fields = saved
    keys = own.map(\.key)
    steps = Self.steps(saved: saved, own: own, isOlder: isOlder, &comparison)
    retyped = Self.retyped(steps, own)
    passed = Self.passed(saved, steps, comparison.file)
    isOrdered = Self.ordered(steps)
    stepMemory = Self.memory(steps)
    isSame = !isOlder && fallback == nil && saved.count == own.count && isOrdered && steps.allSatisfy(\.isSame)
    deferred = []
  }

  /// Each class of an object has a version of its own; a class that only one side has can't be compared.
  private static func levels(_ saved: TypeEntry, _ mine: TypeEntry) throws -> [Level] {
    func level(_ name: String, _ version: Int?, _ known: Int) throws -> Level {
      guard version ?? 0 <= known else {
        throw ArchiveError(
          .tooNew, "The save has version \(version ?? 0) of this type, the program knows \(known): update the game", type: name)
      }
      return Level(savedVersion: version, isOlder: version.map { $0 < known } ?? false)
    }
    return try mine.superclasses.reversed().map { above in
      try level(above.name, saved.superclasses.first { $0.name == above.name }?.version, above.version)
    } + [level(mine.name, saved.version, mine.version)]
  }

  private static func retyped(_ steps: [Step], _ own: [FieldEntry]) -> [String] {
    zip(steps, own).filter(\.0.isRetyped).map(\.1.key)
  }

  private static func steps(
    saved: [FieldEntry], own: [FieldEntry], isOlder: Bool, _ comparison: inout SchemaComparison
  ) -> [Step] {
    var sources: [String: Int32] = [:]
    for (index, field) in saved.enumerated() where sources[field.key] == nil { sources[field.key] = Int32(index) }
    return own.map { field in
      var step = Step(source: -1, node: -1, isSame: false, deferred: false, isPlain: false)
      guard let source = sources[field.key] else { return step }
      let entry = saved[Int(source)]
      step.isRetyped = isOlder && !comparison.fits(entry.node, field.node)
      if step.isRetyped { return step }
      let isSame = comparison.same(entry.node, field.node)
      let mayBeEmpty = [.optional, .coded].contains(comparison.file.nodes[Int(entry.node)].code)
      let isPlain = isSame && !entry.deferred && !mayBeEmpty
      return Step(source: source, node: entry.node, isSame: isSame, deferred: entry.deferred, isPlain: isPlain)
    }
  }

  private static func memory<T: BitwiseCopyable>(_ elements: [T]) -> UnsafeMutableBufferPointer<T> {
    let memory = UnsafeMutableBufferPointer<T>.allocate(capacity: elements.count)
    _ = memory.initialize(from: elements)
    return memory
  }

  deinit {
    stepMemory.deallocate()
    passed.deallocate()
  }

  private static func passed(_ saved: [FieldEntry], _ steps: [Step], _ file: ArchiveSchema) -> UnsafeMutableBufferPointer<Passed> {
    var places = [Int32](repeating: -1, count: saved.count)
    for (place, step) in steps.enumerated() where step.source >= 0 { places[Int(step.source)] = Int32(truncatingIfNeeded: place) }
    return memory(
      zip(saved, places).map { field, place in
        Passed(node: field.node, deferred: field.deferred, form: .init(file.nodes[Int(field.node)]), place: place)
      })
  }

  private static func ordered(_ steps: [Step]) -> Bool {
    var last: Int32 = -1
    for step in steps where step.source >= 0 {
      guard step.source > last else { return false }
      last = step.source
    }
    return true
  }
}

/// Compares the archive's types with the program's, all the way down to references, which carry no layout.
struct SchemaComparison {
  private typealias Pair = ComparedTypes.Pair

  let file: ArchiveSchema
  let program: ArchiveSchema
  /// Pairs taken to be the same, compared or still to be; a wrong one spoils the whole answer, so they may stay.
  private var assumed: Set<Pair> = []
  /// The same pairs in the order in which they are compared: a loop, because an altered archive may describe a chain of
  /// types that is as long as it likes, and calls would take the stack.
  private var queue: [(pair: Pair, level: Int)] = []

  private let compared: ComparedTypes

  init(file: ArchiveSchema, program: ArchiveSchema, compared: ComparedTypes) {
    self.file = file
    self.program = program
    self.compared = compared
  }

  /// Compares two type expressions, starting afresh.
  mutating func same(_ a: Int32, _ b: Int32) -> Bool {
    start()
    return nodes(a, b, level: 0) && compareQueue()
  }

  mutating func sameType(_ a: Int32, _ b: Int32) -> Bool {
    start()
    return enqueue(a, b, level: 0) && compareQueue()
  }

  private mutating func start() {
    assumed = []
    queue = []
  }

  /// First those that are met first, so that a type's level is the shortest way to it.
  private mutating func compareQueue() -> Bool {
    var next = 0
    while next < queue.count {
      let (pair, level) = queue[next]
      guard types(pair, level: level) else {
        // Of those further down it isn't said which one differs, or whether the limit was reached.
        if queue.count == 1 || queue[1].level > 0 { compared.note(queue[0].pair, isSame: false) }
        return false
      }
      next += 1
    }
    for (pair, _) in queue { compared.note(pair, isSame: true) }
    return true
  }

  /// Beyond the limit the answer is "not the same", which is always safe: the values are then read field by field.
  private mutating func enqueue(_ a: Int32, _ b: Int32, level: Int) -> Bool {
    let pair = Pair(file: a, program: b)
    if assumed.contains(pair) { return true }
    if let known = compared.answer(pair) { return known }
    guard level < ArchiveLimits.comparedLevels, compared.spend() else { return false }
    assumed.insert(pair)
    queue.append((pair, level))
    return true
  }

  /// Calls itself only along one expression, whose nesting is limited where it is read.
  private mutating func nodes(_ a: Int32, _ b: Int32, level: Int) -> Bool {
    let left = file.nodes[Int(a)]
    let right = program.nodes[Int(b)]
    guard left.code == right.code else { return false }
    switch left.code {
    case .optional, .array, .set: return nodes(left.first, right.first, level: level)
    case .dictionary: return nodes(left.first, right.first, level: level) && nodes(left.second, right.second, level: level)
    case .vector: return left.first == right.first && left.second == right.second
    case .named:
      let (x, y) = (file.types[Int(left.first)].kind, program.types[Int(right.first)].kind)
      // An object's fields are compared where its run is read.
      if x.isObject && y.isObject { return true }
      return enqueue(left.first, right.first, level: level)
    default: return true
    }
  }

  private mutating func types(_ pair: Pair, level: Int) -> Bool {
    let left = file.types[Int(pair.file)]
    let right = program.types[Int(pair.program)]
    // Versions must agree, too: a newer one is refused where it is met.
    guard left.kind == right.kind, left.version == right.version, left.superclasses == right.superclasses,
      left.cases.count == right.cases.count
    else { return false }
    guard fields(left.fields, right.fields, level: level + 1) else { return false }
    for (x, y) in zip(left.cases, right.cases) where x.key != y.key || !fields(x.fields, y.fields, level: level + 1) {
      return false
    }
    return true
  }

  private mutating func fields(_ a: [FieldEntry], _ b: [FieldEntry], level: Int) -> Bool {
    guard a.count == b.count else { return false }
    for (x, y) in zip(a, b) where x.key != y.key || x.deferred != y.deferred || !nodes(x.node, y.node, level: level) {
      return false
    }
    return true
  }
}
