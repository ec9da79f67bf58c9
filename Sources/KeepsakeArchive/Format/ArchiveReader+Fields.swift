/// Where a generated initialiser stands among the saved fields of its value. Plain memory, and little of it: it is made for every value.
public struct ArchiveFields {
  /// The value was written by the same declaration.
  public let isExact: Bool
  /// Something has to be done at the end.
  @usableFromInline let isMapped: Bool
  /// Of an object: it stands in the references section.
  @usableFromInline var isInReferences = false
  @usableFromInline var programCase: Int32 = 0
  /// The archive's next field, where fields come in order.
  @usableFromInline var next: Int32 = 0
  /// Of the class that is reading, its first field among those of the object.
  @usableFromInline var base: Int32 = 0
  @usableFromInline let stepCount: Int32
  /// Where the program's fields stand among the reader's `located`, if they don't come in order or carry keys.
  @usableFromInline var located: Int32 = -1
  /// How the fields map; the reader's core keeps it alive.
  @usableFromInline let plan: Unmanaged<FieldPlan>?
  /// What becomes of the program's fields; nil where they don't come in order.
  @usableFromInline let steps: UnsafePointer<FieldPlan.Step>?
  @usableFromInline var end: UnsafeRawPointer?
  /// Where the value's fields begin, if an older version was saved and the value's hook is to be called.
  @usableFromInline var start: UnsafeRawPointer?

  /// An older version was saved: the value is migrated once it is read.
  @inlinable public var isOlder: Bool { start != nil }

  /// The program's case, for an enum.
  @inlinable public var caseIndex: Int { Int(programCase) }

  struct Position: BitwiseCopyable {
    var node: Int32
    var start: UnsafeRawPointer
    var end: UnsafeRawPointer
  }

  @inlinable init(exact caseIndex: Int) {
    isExact = true
    isMapped = false
    programCase = Int32(truncatingIfNeeded: caseIndex)
    plan = nil
    steps = nil
    stepCount = 0
  }

  /// The archive's next value is this field's, and of the program's own type: nothing has to be looked up.
  @inlinable @inline(__always) func isNext(_ index: Int) -> Bool {
    let place = Int(base) &+ index
    guard let steps, place < Int(stepCount) else { return false }
    let step = steps + place
    return step.pointee.isPlain && step.pointee.source == next && !isInReferences
  }

  /// The archive has no such field, as can be seen without looking further.
  @inlinable @inline(__always) func isAbsent(_ index: Int) -> Bool {
    let place = Int(base) &+ index
    guard let steps, place < Int(stepCount) else { return false }
    return (steps + place).pointee.source < 0
  }

  init(plan: FieldPlan, isExact: Bool) {
    self.plan = Unmanaged.passUnretained(plan)
    steps = plan.isOrdered && !plan.isKeyed && plan.stepMemory.count > 0 ? UnsafePointer(plan.stepMemory.baseAddress) : nil
    stepCount = Int32(truncatingIfNeeded: plan.stepMemory.count)
    self.isExact = isExact
    isMapped = true
  }
}

/// What the reader goes back to once a field is read.
@usableFromInline struct ArchiveFieldReturn: BitwiseCopyable {
  let current: Int32
  let next: Int32
  let end: UnsafeRawPointer
}

extension ArchiveReader {
  /// Called first by a generated initialiser.
  @inlinable @inline(__always) public mutating func enter<T: Archivable>(_ type: T.Type) throws -> ArchiveFields {
    if isExact { return ArchiveFields(exact: 0) }
    return try enterMapped(type)
  }

  @usableFromInline mutating func enterMapped<T: Archivable>(_ type: T.Type) throws -> ArchiveFields {
    if let fields = passedFields {
      passedFields = nil
      return fields
    }
    // The elements of an array come here one after the other.
    if current == lastNode, ObjectIdentifier(type) == lastType, let lastFields { return lastFields }
    let start = current
    try unwrapPresentOptional(T.archiveName)
    let node = core.nodes[Int(current)]
    guard node.code == .named else { throw mismatch(T.archiveName) }
    let plan = try core.plan(type, node.first)
    if plan.isSame {
      isExact = true
      return ArchiveFields(plan: plan, isExact: true)
    }
    // Of a struct, all fields stand together, in whatever section it is.
    var fields = ArchiveFields(plan: plan, isExact: false)
    if plan.isOlder { fields.start = cursor }
    try locate(&fields, plan)
    if start == current, fields.located < 0, !plan.isEmptyStruct, !plan.isOlder {
      lastNode = start
      lastType = ObjectIdentifier(type)
      lastFields = fields
    }
    return fields
  }

  /// Finds the positions of fields that can't be read one after the other.
  private mutating func locate(_ fields: inout ArchiveFields, _ plan: FieldPlan) throws {
    if plan.isKeyed {
      let entries = try scanKeyed()
      fields.located = Int32(truncatingIfNeeded: located.count)
      for key in plan.keys {
        let entry = entries.first { $0.key == key }
        located.append(entry.map { .init(node: $0.node, start: $0.start, end: $0.start + $0.length) } ?? nowhere)
      }
      fields.end = cursor
    } else if !plan.isOrdered {
      let start = located.count
      fields.located = Int32(truncatingIfNeeded: start)
      for _ in plan.steps { located.append(nowhere) }
      for (index, field) in plan.fields.enumerated() {
        // What stands in the other section has no position in this one.
        guard field.deferred == fields.isInReferences else { continue }
        let begin = cursor
        try skip(field.node)
        if let place = plan.places[index] { located[start + Int(place)] = .init(node: field.node, start: begin, end: cursor) }
      }
      fields.end = cursor
    }
    if plan.isEmptyStruct { _ = try takeByte() }
  }

  private var nowhere: ArchiveFields.Position { .init(node: -1, start: base, end: base) }

  /// Called last by a generated initialiser: passes over fields that the program no longer has.
  @inlinable @inline(__always) public mutating func leave(_ fields: inout ArchiveFields) throws {
    if fields.isMapped { try leaveMapped(&fields) }
  }

  @usableFromInline mutating func leaveMapped(_ fields: inout ArchiveFields) throws {
    if fields.isExact {
      isExact = false
      return
    }
    if let end = fields.end {
      located.removeLast(located.count - Int(fields.located))
      cursor = end
      return
    }
    try fields.plan?._withUnsafeGuaranteedRef { try advance(&fields, $0, to: Int32(truncatingIfNeeded: $0.fields.count)) }
  }

  /// Called by each class of an object after its own fields.
  @inlinable public mutating func passFields(_ fields: inout ArchiveFields, _ ownFields: Int) {
    if !fields.isExact { passMapped(&fields, ownFields) }
    fieldBase += ownFields
  }

  @usableFromInline mutating func passMapped(_ fields: inout ArchiveFields, _ ownFields: Int) {
    fields.base += Int32(truncatingIfNeeded: ownFields)
    passedFields = fields
  }

  /// The same for a class that has nothing to read.
  public mutating func passFields(_ ownFields: Int) {
    passedFields?.base += Int32(truncatingIfNeeded: ownFields)
    fieldBase += ownFields
  }

  /// Opens an object whose class was declared differently; its classes then read one after the other.
  mutating func openObject(_ plan: FieldPlan) throws {
    var fields = ArchiveFields(plan: plan, isExact: false)
    fields.isInReferences = isInReferences
    try locate(&fields, plan)
    passedFields = fields
  }

  /// Closes what `openObject` opened.
  mutating func closeObject() throws {
    guard var fields = passedFields else { return }
    passedFields = nil
    try leaveMapped(&fields)
  }

  private mutating func advance(_ fields: inout ArchiveFields, _ plan: FieldPlan, to target: Int32) throws {
    while fields.next < target {
      let skipped = plan.skips[Int(fields.next)]
      if skipped.deferred == fields.isInReferences {
        switch core.nodes[Int(skipped.node)].code {
        case .int16, .int32, .int64, .uint16, .uint32, .uint64: _ = try takeVarint()
        default: try skip(skipped.node)
        }
      }
      fields.next += 1
    }
  }

  /// Whether the archive has a value for the field that can be read as it stands; nothing may be read in between.
  @inlinable public mutating func hasField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    if fields.isNext(index) { return true }
    return try !fields.isAbsent(index) && findField(index, &fields)
  }

  @usableFromInline mutating func findField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    guard let (node, end) = try seek(index, &fields) else { return false }
    return try !isEmptyOptional(node, end: end)
  }

  /// As `hasField`, for a property that is optional itself: an empty one counts.
  public mutating func hasOptionalField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    try seek(index, &fields) != nil
  }

  /// Reads a field by its place in the declaration.
  @inlinable public mutating func field<T: Archivable>(_ index: Int, _ fields: inout ArchiveFields) throws -> T {
    if fields.isExact { return try T.archiveRead(from: &self) }
    let value: T
    if fields.isNext(index) {
      isExact = true
      do {
        value = try readField()
      } catch {
        throw located(error, index, fields)
      }
      isExact = false
      fields.next &+= 1
      return value
    }
    let outer = try openField(index, &fields)
    do {
      value = try T.archiveRead(from: &self)
    } catch {
      throw located(error, index, fields)
    }
    try closeField(outer, &fields)
    return value
  }

  @usableFromInline mutating func openField(_ index: Int, _ fields: inout ArchiveFields) throws -> ArchiveFieldReturn {
    guard let (node, valueEnd) = try seek(index, &fields) else {
      try checkRetyped(index, fields)
      throw ArchiveError(
        .missingField, "The archive has no value for a property without default value", type: typeName(fields),
        field: key(index, fields), offset: offset)
    }
    let outer = ArchiveFieldReturn(current: current, next: fields.next, end: end)
    end = valueEnd
    current = node
    let place = Int(fields.base) + index
    isExact = fields.located < 0 && fields.plan?._withUnsafeGuaranteedRef { $0.steps[place].isSame } == true
    return outer
  }

  @usableFromInline mutating func closeField(_ outer: ArchiveFieldReturn, _ fields: inout ArchiveFields) throws {
    if fields.located >= 0 { try checkValueEnd() }
    isExact = false
    end = outer.end
    current = outer.current
    fields.next = outer.next + 1
  }

  @usableFromInline mutating func located(_ error: any Error, _ index: Int, _ fields: ArchiveFields) -> any Error {
    guard var error = error as? ArchiveError else { return error }
    if error.type == nil { error.type = typeName(fields) }
    if error.field == nil { error.field = key(index, fields) }
    return error
  }

  /// Reads a field, or gives a default where the archive has none.
  public mutating func field<T: Archivable>(
    _ index: Int, _ fields: inout ArchiveFields, default value: @autoclosure () throws -> T
  ) throws -> T {
    if fields.isExact { return try T.archiveRead(from: &self) }
    guard try hasField(index, &fields) else { return try value() }
    return try field(index, &fields)
  }

  /// Reads an optional, or gives a default where the archive has no such field; one that was saved empty stays empty.
  public mutating func field<T: Archivable>(
    _ index: Int, _ fields: inout ArchiveFields, ifAbsent value: @autoclosure () throws -> T
  ) throws -> T {
    guard try fields.isExact || seek(index, &fields) != nil else { return try value() }
    return try field(index, &fields)
  }

  /// A field that is left to the hook must have a value until then.
  private mutating func checkRetyped(_ index: Int, _ fields: ArchiveFields) throws {
    let place = Int(fields.base) + index
    guard let plan = fields.plan?.takeUnretainedValue(), place < plan.steps.count, plan.steps[place].isRetyped else { return }
    throw retypedError(plan, place)
  }

  private func typeName(_ fields: ArchiveFields) -> String? { fields.plan?._withUnsafeGuaranteedRef { $0.name } }

  private func key(_ index: Int, _ fields: ArchiveFields) -> String? {
    let place = Int(fields.base) + index
    return fields.plan?._withUnsafeGuaranteedRef { place < $0.keys.count ? $0.keys[place] : nil }
  }

  /// Moves to a field and gives its saved type and where it ends, as far as that is known; nil if the archive doesn't have it here.
  private mutating func seek(_ index: Int, _ fields: inout ArchiveFields) throws -> (node: Int32, end: UnsafeRawPointer)? {
    let place = Int(fields.base) + index
    if fields.located >= 0 {
      let position = Int(fields.located) + place
      guard position < located.count, located[position].node >= 0 else { return nil }
      cursor = located[position].start
      return (located[position].node, located[position].end)
    }
    return try fields.plan?._withUnsafeGuaranteedRef { plan -> (node: Int32, end: UnsafeRawPointer)? in
      guard place < plan.steps.count else { return nil }
      let step = plan.steps[place]
      guard step.source >= 0, step.deferred == fields.isInReferences else { return nil }
      if fields.next < step.source { try advance(&fields, plan, to: step.source) }
      return (step.node, end)
    } ?? nil
  }

  /// An optional that is empty counts as missing for a property that has a default value.
  mutating func isEmptyOptional(_ node: Int32, end: UnsafeRawPointer) throws -> Bool {
    guard core.nodes[Int(node)].code == .optional else { return false }
    guard cursor < end else { throw damaged("The archive ends in the middle of a value") }
    let first = cursor.load(as: UInt8.self)
    // A reference's number 0 is the varint 1.
    return core.file.isObject(core.nodes[Int(node)].first) ? first == 1 : first == 0
  }

  // MARK: Enums

  /// Called first by a generated enum initialiser.
  @inlinable public mutating func enterCase<T: Archivable>(_ type: T.Type) throws -> ArchiveFields {
    try descend()
    if !isExact { return try enterMappedCase(type) }
    let index = try takeVarint()
    guard index <= UInt64(Int32.max) else { throw damaged("An enum case is out of range") }
    return ArchiveFields(exact: Int(index))
  }

  @usableFromInline mutating func enterMappedCase<T: Archivable>(_ type: T.Type) throws -> ArchiveFields {
    try unwrapPresentOptional(T.archiveName)
    let node = core.nodes[Int(current)]
    guard node.code == .named else { throw mismatch(T.archiveName) }
    let plan = try core.plan(type, node.first)
    guard !plan.isKeyed else { throw mismatch(T.archiveName) }
    let index = try takeVarint()
    guard index < UInt64(plan.cases.count) else { throw damaged("An enum case is out of range") }
    guard let (target, casePlan) = plan.cases[Int(index)] else {
      throw ArchiveError(
        .unknownCase, "The archive has the case \"\(plan.caseKeys[Int(index)])\", which the program doesn't know",
        type: plan.name, offset: offset)
    }
    var fields = ArchiveFields(plan: casePlan, isExact: casePlan.isSame)
    if plan.isOlder { fields.start = cursor }
    if casePlan.isSame { isExact = true } else { try locate(&fields, casePlan) }
    fields.programCase = Int32(truncatingIfNeeded: target)
    if casePlan.fallback != nil { core.usedFallback = true }
    return fields
  }

  /// Called last by a generated enum initialiser.
  @inlinable public mutating func leaveCase(_ fields: inout ArchiveFields) throws {
    ascend()
    try leave(&fields)
  }

  /// The error for a case number that no declaration has.
  public mutating func invalidCase() -> ArchiveError { damaged("An enum case is out of range") }

  // MARK: Optionals and lists

  /// Saved as an optional, read as what is inside: fits if there is something inside.
  @inline(__always) mutating func unwrapPresentOptional(_ wanted: @autoclosure () -> String) throws {
    if core.nodes[Int(current)].code == .optional { try unwrapOptionals(wanted()) }
  }

  private mutating func unwrapOptionals(_ wanted: String) throws {
    var depth = 0
    while core.nodes[Int(current)].code == .optional, depth < ArchiveLimits.typeDepth {
      let inner = core.nodes[Int(current)].first
      guard !core.file.isObject(inner) else { throw mismatch(wanted) }
      guard try takeFlag() else {
        throw ArchiveError(.missingField, "The archive has an empty optional where a \(wanted) is needed", offset: offset)
      }
      current = inner
      depth += 1
    }
  }

  @usableFromInline mutating func readMappedOptional<T: Archivable>(_ type: T.Type) throws -> T? {
    let node = core.nodes[Int(current)]
    if node.code == .optional && !core.file.isObject(node.first) {
      guard try takeFlag() else { return nil }
      let outer = current
      current = node.first
      defer { current = outer }
      return try T.archiveRead(from: &self)
    }
    return try T.archiveRead(from: &self)
  }

  /// Checks that a list was saved and gives the saved type of its elements.
  @inlinable @inline(__always) mutating func enterList(_ code: WireCode) throws -> Int32 {
    isExact ? 0 : try enterMappedList(code)
  }

  @usableFromInline mutating func enterMappedList(_ code: WireCode) throws -> Int32 {
    try unwrapPresentOptional("\(code)")
    let node = core.nodes[Int(current)]
    guard node.code == code else { throw mismatch("\(code)") }
    return node.first
  }
}
