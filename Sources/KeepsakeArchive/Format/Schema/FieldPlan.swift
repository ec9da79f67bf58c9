/// How one of the program's types reads one of the archive's types. Created once for each pair.
@usableFromInline final class FieldPlan {
  /// How a field of the program is read.
  @usableFromInline struct Step: BitwiseCopyable {
    /// The index of the archive's field, or -1 if the archive has none with that key.
    @usableFromInline var source: Int32
    /// The field's type in the archive.
    var node: Int32
    /// Whether both declarations are identical, including nested types.
    var isSame: Bool
    /// Whether the archive has the field in the references section.
    var deferred: Bool
    /// Whether the program's own type can read the field in place: it is the same type, in the values section, and
    /// can't be empty and replaced by a default value.
    @usableFromInline var isPlain: Bool
    /// Whether the archive has a field with that key that can't be read as the program's type. The migration hook must
    /// read it.
    var isRetyped = false
  }

  /// A field of the archive, with what is needed to skip it.
  struct Passed: BitwiseCopyable {
    let node: Int32
    let deferred: Bool
    let form: ArchiveReader.PassedForm
    /// The program's field that reads it, or -1.
    let place: Int32
  }

  /// One class in an object's hierarchy.
  struct Level {
    /// nil for a class that was added to the hierarchy later.
    let savedVersion: Int?
    let isOlder: Bool
  }

  /// Describes an unknown enum case that is replaced by the fallback case.
  struct Fallback {
    let key: String
  }

  let name: String
  let savedVersion: Int
  /// Whether an older version of the type, or of a superclass, was saved, so that `migrate` is called.
  let isOlder: Bool
  /// For a class, its hierarchy from the topmost class down to the object's own.
  let levels: [Level]
  /// Keys of saved fields that only the migration hook can read.
  let retyped: [String]
  /// In the plan for an enum case: set if the case is unknown and replaced by the fallback case.
  let fallback: Fallback?
  /// In the plan for an enum case: the key of the saved case.
  let caseKey: String?
  /// Whether the declarations are identical, so that values are read without lookups.
  let isSame: Bool
  let isKeyed: Bool
  let isObject: Bool
  /// Whether the saved type is a struct without fields, which takes one byte.
  let isEmptyStruct: Bool
  let fields: [FieldEntry]
  let keys: [String]
  /// The program's fields, in the order of `keys`.
  let declared: [FieldEntry]
  /// Allocated separately, like the steps.
  let passed: UnsafeMutableBufferPointer<Passed>
  let steps: [Step]
  /// The same steps in separately allocated memory, which a reader can access without reference counting.
  let stepMemory: UnsafeMutableBufferPointer<Step>
  /// For each of the program's fields: whether it is in the references section.
  let deferred: [Bool]
  /// Whether the archive's fields are in the program's order, so that no positions need to be looked up first.
  let isOrdered: Bool
  /// The program's case and its plan, by the archive's case numbers.
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
    let kindsFit =
      saved.kind.isObject == mine.kind.isObject && (saved.kind == .enumeration) == (mine.kind == .enumeration)
    // A hand-written value can contain anything; whether it contains an enum is known only when it is read.
    guard kindsFit || saved.kind == .keyedValue || mine.kind == .keyedValue, saved.kind.isObject == mine.kind.isObject
    else {
      throw ArchiveError(
        .mismatch, "The archive has another kind of type under this name (\(saved.name))", type: mine.name)
    }
    name = mine.name
    savedVersion = saved.version
    isKeyed = saved.kind.isKeyed
    isObject = saved.kind.isObject
    isEmptyStruct = saved.kind == .structure && saved.fields.isEmpty
    guard saved.kind != .keyedObject || mine.kind == .keyedObject else {
      throw ArchiveError(
        .unsupported, "A hand-written class was saved: its conformance must stay hand-written to read it",
        type: mine.name)
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
      // Nothing of an unknown case is read, so its plan has no fields of the program.
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
    declared = mine.fields
    steps = Self.steps(saved: saved.fields, own: mine.fields, isOlder: isOlder, &comparison)
    retyped = Self.retyped(steps, mine.fields)
    passed = Self.passed(saved.fields, steps, file)
    isOrdered = Self.ordered(steps)
    stepMemory = Self.memory(steps)
    deferred = steps.map(\.deferred)
    for (field, isDeferred) in zip(mine.fields, deferred) where isDeferred && !field.deferrable {
      throw ArchiveError(
        .mismatch,
        """
        This reference was saved from a variable and is set after all objects exist: it must stay an optional variable
        """,
        type: mine.name, field: field.key)
    }
  }

  private init(
    name: String, version: Int, isOlder: Bool, caseKey: String, saved: [FieldEntry], own: [FieldEntry],
    fallback: Fallback?,
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
    declared = own
    steps = Self.steps(saved: saved, own: own, isOlder: isOlder, &comparison)
    retyped = Self.retyped(steps, own)
    passed = Self.passed(saved, steps, comparison.file)
    isOrdered = Self.ordered(steps)
    stepMemory = Self.memory(steps)
    isSame = !isOlder && fallback == nil && saved.count == own.count && isOrdered && steps.allSatisfy(\.isSame)
    deferred = []
  }

  /// Returns the levels of a class. Each class in the hierarchy has its own version; a class that only one side has
  /// can't be compared.
  private static func levels(_ saved: TypeEntry, _ mine: TypeEntry) throws -> [Level] {
    func level(_ name: String, _ version: Int?, _ known: Int) throws -> Level {
      guard version ?? 0 <= known else {
        throw ArchiveError(
          .tooNew,
          """
          The save has version \(version ?? 0) of this type, and the program knows versions up to \(known): update \
          the game
          """,
          type: name)
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

  private static func passed(_ saved: [FieldEntry], _ steps: [Step], _ file: ArchiveSchema)
    -> UnsafeMutableBufferPointer<Passed>
  {
    var places = [Int32](repeating: -1, count: saved.count)
    for (place, step) in steps.enumerated() where step.source >= 0 {
      places[Int(step.source)] = Int32(truncatingIfNeeded: place)
    }
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

/// Compares the archive's types with the program's, with all nested types, but not across references, which carry no
/// layout.
struct SchemaComparison {
  private typealias Pair = ComparedTypes.Pair

  let file: ArchiveSchema
  let program: ArchiveSchema
  /// Pairs that are assumed to be the same, whether already compared or still in the queue. If one isn't, the whole
  /// result is false, so none has to be removed.
  private var assumed: Set<Pair> = []
  /// The same pairs in the order of comparison. A loop instead of recursion, because an altered archive can describe a
  /// chain of types of any length, which would overflow the stack.
  private var queue: [(pair: Pair, level: Int)] = []

  private let compared: ComparedTypes

  init(file: ArchiveSchema, program: ArchiveSchema, compared: ComparedTypes) {
    self.file = file
    self.program = program
    self.compared = compared
  }

  /// Compares two type expressions, with an empty set of assumed pairs.
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

  /// Compares pairs in the order in which they were found, so that a type's level is that of the shortest path to it.
  private mutating func compareQueue() -> Bool {
    var next = 0
    while next < queue.count {
      let (pair, level) = queue[next]
      guard types(pair, level: level) else {
        // Recorded only for the first pair: below it, it is unknown which pair differs, or whether the limit was
        // reached.
        if queue.count == 1 || queue[1].level > 0 { compared.note(queue[0].pair, isSame: false) }
        return false
      }
      next += 1
    }
    for (pair, _) in queue { compared.note(pair, isSame: true) }
    return true
  }

  /// Adds a pair to the queue. Beyond the limit it returns false, "not the same", which is always safe: the values are
  /// then read field by field.
  private mutating func enqueue(_ a: Int32, _ b: Int32, level: Int) -> Bool {
    let pair = Pair(file: a, program: b)
    if assumed.contains(pair) { return true }
    if let known = compared.answer(pair) { return known }
    guard level < ArchiveLimits.comparedLevels, compared.spend() else { return false }
    assumed.insert(pair)
    queue.append((pair, level))
    return true
  }

  /// Recursive only along one expression, whose nesting is limited when it is parsed.
  private mutating func nodes(_ a: Int32, _ b: Int32, level: Int) -> Bool {
    let left = file.nodes[Int(a)]
    let right = program.nodes[Int(b)]
    guard left.code == right.code else { return false }
    switch left.code {
    case .optional, .array, .set: return nodes(left.first, right.first, level: level)
    case .dictionary:
      return nodes(left.first, right.first, level: level) && nodes(left.second, right.second, level: level)
    case .vector: return left.first == right.first && left.second == right.second
    case .named:
      let (x, y) = (file.types[Int(left.first)].kind, program.types[Int(right.first)].kind)
      // An object's fields are compared when its run is read.
      if x.isObject && y.isObject { return true }
      return enqueue(left.first, right.first, level: level)
    default: return true
    }
  }

  private mutating func types(_ pair: Pair, level: Int) -> Bool {
    let left = file.types[Int(pair.file)]
    let right = program.types[Int(pair.program)]
    // Versions must be equal, too; a newer one is rejected when its type is read.
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
