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
  /// Where the program's fields begin among the reader's `located`, if they don't come in order or carry keys.
  @usableFromInline var located: Int32 = -1
  /// How the fields map; the reader's core keeps it alive.
  @usableFromInline let plan: Unmanaged<FieldPlan>?
  /// What becomes of the program's fields; nil where they carry keys.
  @usableFromInline let steps: UnsafePointer<FieldPlan.Step>?
  /// Where the value's fields begin, if an older version was saved and the value's hook is to be called.
  @usableFromInline var start: UnsafeRawPointer?

  /// An older version was saved: the value is migrated once it is read.
  @inlinable public var isOlder: Bool { start != nil }

  /// The program's case, for an enum.
  @inlinable public var caseIndex: Int { Int(programCase) }

  struct Position: BitwiseCopyable {
    /// -1 while the field wasn't met.
    var node: Int32
    var start: UnsafeRawPointer
    var end: UnsafeRawPointer
  }

  /// A field that the archive has.
  struct Location {
    let node: Int32
    let start: UnsafeRawPointer
    let end: UnsafeRawPointer
    /// Others were read since it was passed over; nil for the one that comes next.
    let isBehind: Bool
  }

  @inlinable init(exact caseIndex: Int) {
    isExact = true
    isMapped = false
    programCase = Int32(truncatingIfNeeded: caseIndex)
    plan = nil
    steps = nil
    stepCount = 0
  }

  /// Where the archive has the field, if it can be read there by the program's own type, now or after passing over some; else -1.
  @inlinable @inline(__always) func plainSource(_ index: Int) -> Int32 {
    let place = Int(base) &+ index
    guard let steps, place < Int(stepCount) else { return -1 }
    let step = steps + place
    return step.pointee.isPlain && step.pointee.source >= next && !isInReferences ? step.pointee.source : -1
  }

  /// The archive has no such field, as can be seen without looking further.
  @inlinable @inline(__always) func isAbsent(_ index: Int) -> Bool {
    let place = Int(base) &+ index
    guard let steps, place < Int(stepCount) else { return false }
    return (steps + place).pointee.source < 0
  }

  init(plan: FieldPlan, isExact: Bool) {
    self.plan = Unmanaged.passUnretained(plan)
    steps = !plan.isKeyed && plan.stepMemory.count > 0 ? UnsafePointer(plan.stepMemory.baseAddress) : nil
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
  /// The archive's next field, if this one stands before it.
  let cursor: UnsafeRawPointer?
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
    if current == lastNode, ObjectIdentifier(type) == lastType, var fields = lastFields {
      if fields.located >= 0 { reservePlaces(&fields) }
      return fields
    }
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
    if start == current, !plan.isKeyed, !plan.isEmptyStruct, !plan.isOlder {
      lastNode = start
      lastType = ObjectIdentifier(type)
      lastFields = fields
    }
    return fields
  }

  /// Finds fields that carry keys. Of others the places are noted while they are passed over.
  private mutating func locate(_ fields: inout ArchiveFields, _ plan: FieldPlan) throws {
    if plan.isKeyed {
      let entries = try scanKeyed()
      fields.located = Int32(truncatingIfNeeded: core.located.count)
      for key in plan.keys {
        let entry = entries.first { $0.key == key }
        core.located.append(entry.map { .init(node: $0.node, start: $0.start, end: $0.start + $0.length) } ?? nowhere)
      }
    } else if !plan.isOrdered {
      reservePlaces(&fields)
    }
    if plan.isEmptyStruct { _ = try takeByte() }
  }

  @inline(__always) private mutating func reservePlaces(_ fields: inout ArchiveFields) {
    fields.located = Int32(truncatingIfNeeded: core.located.count)
    let places = core.located.extend(by: Int(fields.stepCount))
    // Nothing else of a place is read until it is set.
    for index in 0..<Int(fields.stepCount) { places[index].node = -1 }
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
    try fields.plan?._withUnsafeGuaranteedRef { plan in
      if !plan.isKeyed { try advance(&fields, plan, to: Int32(truncatingIfNeeded: plan.fields.count)) }
    }
    if fields.located >= 0 { core.located.truncate(to: Int(fields.located)) }
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

  @usableFromInline mutating func pass(_ fields: inout ArchiveFields, to source: Int32) throws {
    try fields.plan?._withUnsafeGuaranteedRef { try advance(&fields, $0, to: source) }
  }

  /// Passes over fields; notes where they are if the program has some of them later than the archive.
  private mutating func advance(_ fields: inout ArchiveFields, _ plan: FieldPlan, to target: Int32) throws {
    // What doesn't change meanwhile is read once.
    let passed = plan.passed
    let isInReferences = fields.isInReferences
    let places = fields.located >= 0 ? core.located.place(Int(fields.located)) : nil
    var next = Int(fields.next)
    while next < Int(target) {
      let field = passed[next]
      if field.deferred == isInReferences {
        let start = cursor
        if try !pass(field.form) { try skip(field.node) }
        if let places, field.place >= 0 { places[Int(field.place)] = .init(node: field.node, start: start, end: cursor) }
      }
      next += 1
    }
    fields.next = Int32(truncatingIfNeeded: next)
  }

  /// Whether the archive has a value for the field that can be read as it stands.
  @inlinable public mutating func hasField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    if fields.plainSource(index) >= 0 { return true }
    return try !fields.isAbsent(index) && findField(index, &fields)
  }

  @usableFromInline mutating func findField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    guard let place = try seek(index, &fields) else { return false }
    return try !isEmptyOptional(place.node, from: place.start, to: place.end)
  }

  /// As `hasField`, for a property that is optional itself: an empty one counts.
  public mutating func hasOptionalField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    try seek(index, &fields) != nil
  }

  /// Reads a field by its place in the declaration.
  @inlinable public mutating func field<T: Archivable>(_ index: Int, _ fields: inout ArchiveFields) throws -> T {
    if fields.isExact { return try T.archiveRead(from: &self) }
    let value: T
    let source = fields.plainSource(index)
    if source >= 0 {
      if source > fields.next { try pass(&fields, to: source) }
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
    guard let place = try seek(index, &fields) else {
      try checkRetyped(index, fields)
      throw ArchiveError(
        .missingField, "The archive has no value for a property without default value", type: typeName(fields),
        field: key(index, fields), offset: offset)
    }
    let outer = ArchiveFieldReturn(current: current, next: fields.next, end: end, cursor: place.isBehind ? cursor : nil)
    cursor = place.start
    end = place.end
    current = place.node
    isExact = fields.steps.map { $0[Int(fields.base) + index].isSame } ?? false
    return outer
  }

  @usableFromInline mutating func closeField(_ outer: ArchiveFieldReturn, _ fields: inout ArchiveFields) throws {
    isExact = false
    current = outer.current
    if let next = outer.cursor {
      try checkValueEnd()
      cursor = next
    } else {
      fields.next = outer.next + 1
    }
    end = outer.end
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

  /// Finds a field, passing over those before it; nil if the archive doesn't have it here.
  @inline(__always) private mutating func seek(_ index: Int, _ fields: inout ArchiveFields) throws -> ArchiveFields.Location? {
    let place = Int(fields.base) + index
    guard place < Int(fields.stepCount) else { return nil }
    if let steps = fields.steps {
      let step = steps[place]
      guard step.source >= 0, step.deferred == fields.isInReferences else { return nil }
      if fields.next <= step.source {
        try fields.plan?._withUnsafeGuaranteedRef { try advance(&fields, $0, to: step.source) }
        return .init(node: step.node, start: cursor, end: end, isBehind: false)
      }
    }
    guard fields.located >= 0 else { return nil }
    let position = core.located[Int(fields.located) + place]
    return position.node < 0 ? nil : .init(node: position.node, start: position.start, end: position.end, isBehind: true)
  }

  /// An optional that is empty counts as missing for a property that has a default value.
  mutating func isEmptyOptional(_ node: Int32, from start: UnsafeRawPointer, to end: UnsafeRawPointer) throws -> Bool {
    let node = core.nodes[Int(node)]
    if node.code == .coded { return isEmptyCoded(UnsafeRawBufferPointer(start: start, count: end - start)) }
    guard node.code == .optional else { return false }
    guard start < end else { throw damaged("The archive ends in the middle of a value") }
    let first = start.load(as: UInt8.self)
    // A reference's number 0 is the varint 1.
    return core.file.isObject(node.first) ? first == 1 : first == 0
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
