/// Where a generated initialiser stands among the saved fields of its value.
public struct ArchiveFields {
  /// The value was written by the same declaration.
  public let isExact: Bool
  /// The program's case, for an enum.
  public internal(set) var caseIndex = 0
  let plan: FieldPlan?
  /// The archive's next field, where fields come in order.
  var next = 0
  /// Of the class that is reading, its first field among those of the object.
  var base = 0
  /// `isExact` of the reader is to be switched off again at the end.
  let restoresMapping: Bool
  /// Positions of the archive's fields, where they don't come in order or carry keys.
  var positions: [Position]?
  var end: UnsafeRawPointer?
  var isInReferences = false

  struct Position {
    var node: Int32
    var start: UnsafeRawPointer
    var end: UnsafeRawPointer
  }

  @usableFromInline init(exact caseIndex: Int) {
    isExact = true
    self.caseIndex = caseIndex
    plan = nil
    restoresMapping = false
  }

  init(plan: FieldPlan, isExact: Bool) {
    self.plan = plan
    self.isExact = isExact
    restoresMapping = isExact
  }
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
    try unwrapPresentOptional(T.archiveName)
    let node = core.file.nodes[Int(current)]
    guard node.code == .named else { throw mismatch(T.archiveName) }
    let plan = try core.plan(type, node.first)
    if plan.isSame {
      isExact = true
      return ArchiveFields(plan: plan, isExact: true)
    }
    // Of a struct, all fields stand together, in whatever section it is.
    var fields = ArchiveFields(plan: plan, isExact: false)
    try locate(&fields)
    return fields
  }

  /// Finds the positions of fields that can't be read one after the other.
  private mutating func locate(_ fields: inout ArchiveFields) throws {
    guard let plan = fields.plan else { return }
    if plan.isKeyed {
      let entries = try scanKeyed()
      fields.positions = plan.keys.map { key in
        guard let entry = entries.first(where: { $0.key == key }) else { return .init(node: -1, start: base, end: base) }
        return .init(node: entry.node, start: entry.start, end: entry.start + entry.length)
      }
      fields.end = cursor
    } else if !plan.isOrdered {
      var found: [ArchiveFields.Position] = []
      for field in plan.fields {
        // What stands in the other section has no position in this one.
        let isHere = field.deferred == fields.isInReferences
        let start = cursor
        if isHere { try skip(field.node) }
        found.append(.init(node: isHere ? field.node : -1, start: start, end: cursor))
      }
      fields.positions = plan.steps.map { $0.source < 0 ? .init(node: -1, start: base, end: base) : found[Int($0.source)] }
      fields.end = cursor
    }
    if plan.isEmptyStruct { _ = try takeByte() }
  }

  /// Called last by a generated initialiser: passes over fields that the program no longer has.
  public mutating func leave(_ fields: inout ArchiveFields) throws {
    if fields.isExact {
      if fields.restoresMapping { isExact = false }
      return
    }
    guard let plan = fields.plan else { return }
    if let end = fields.end {
      cursor = end
      return
    }
    try advance(&fields, plan, to: plan.fields.count)
  }

  /// Called by each class of an object after its own fields.
  public mutating func passFields(_ fields: inout ArchiveFields, _ ownFields: Int) {
    if !fields.isExact {
      fields.base += ownFields
      passedFields = fields
    }
    fieldBase += ownFields
  }

  /// The same for a class that has nothing to read.
  public mutating func passFields(_ ownFields: Int) {
    passedFields?.base += ownFields
    fieldBase += ownFields
  }

  /// Opens an object whose class was declared differently; its classes then read one after the other.
  mutating func openObject(_ plan: FieldPlan) throws {
    var fields = ArchiveFields(plan: plan, isExact: false)
    fields.isInReferences = isInReferences
    try locate(&fields)
    passedFields = fields
  }

  /// Closes what `openObject` opened.
  mutating func closeObject() throws {
    guard var fields = passedFields else { return }
    passedFields = nil
    try leave(&fields)
  }

  private mutating func advance(_ fields: inout ArchiveFields, _ plan: FieldPlan, to target: Int) throws {
    while fields.next < target {
      let field = plan.fields[fields.next]
      if field.deferred == fields.isInReferences { try skip(field.node) }
      fields.next += 1
    }
  }

  /// Whether the archive has a value for the field that can be read as it stands; nothing may be read in between.
  public mutating func hasField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    guard let node = try seek(index, &fields) else { return false }
    return try !isEmptyOptional(node, end: valueEnd(index, fields))
  }

  /// As `hasField`, for a property that is optional itself: an empty one counts.
  public mutating func hasOptionalField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    try seek(index, &fields) != nil
  }

  /// Reads a field by its place in the declaration.
  public mutating func field<T: Archivable>(_ index: Int, _ fields: inout ArchiveFields) throws -> T {
    if fields.isExact { return try T.archiveRead(from: &self) }
    guard let node = try seek(index, &fields) else {
      throw ArchiveError(
        .missingField, "The archive has no value for a property without default value", type: fields.plan?.name,
        field: key(index, fields), offset: offset)
    }
    let place = fields.base + index
    let isSame = fields.positions == nil && place < (fields.plan?.steps.count ?? 0) && fields.plan?.steps[place].isSame == true
    let outer = (current, fields.next, end)
    defer { end = outer.2 }
    end = valueEnd(index, fields)
    current = node
    isExact = isSame
    do {
      let value = try T.archiveRead(from: &self)
      if fields.positions != nil { try checkValueEnd() }
      isExact = false
      current = outer.0
      fields.next = outer.1 + 1
      return value
    } catch var error as ArchiveError {
      if error.type == nil { error.type = fields.plan?.name }
      if error.field == nil { error.field = key(index, fields) }
      throw error
    }
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

  private func key(_ index: Int, _ fields: ArchiveFields) -> String? {
    let place = fields.base + index
    guard let keys = fields.plan?.keys, place < keys.count else { return nil }
    return keys[place]
  }

  /// Where a field's bytes end, as far as that is known before it is read.
  private func valueEnd(_ index: Int, _ fields: ArchiveFields) -> UnsafeRawPointer {
    let place = fields.base + index
    guard let positions = fields.positions, place < positions.count else { return end }
    return positions[place].end
  }

  /// Moves to a field and gives its saved type; nil if the archive doesn't have it here.
  private mutating func seek(_ index: Int, _ fields: inout ArchiveFields) throws -> Int32? {
    guard let plan = fields.plan else { return nil }
    let place = fields.base + index
    if let positions = fields.positions {
      guard place < positions.count, positions[place].node >= 0 else { return nil }
      cursor = positions[place].start
      return positions[place].node
    }
    guard place < plan.steps.count else { return nil }
    let source = Int(plan.steps[place].source)
    guard source >= 0, plan.fields[source].deferred == fields.isInReferences else { return nil }
    try advance(&fields, plan, to: source)
    return plan.fields[source].node
  }

  /// An optional that is empty counts as missing for a property that has a default value.
  private func isEmptyOptional(_ node: Int32, end: UnsafeRawPointer) throws -> Bool {
    if core.file.nodes[Int(node)].code == .coded { return isEmptyCoded(end: end) }
    guard core.file.nodes[Int(node)].code == .optional else { return false }
    guard cursor < end else { throw damaged("The archive ends in the middle of a value") }
    let first = cursor.load(as: UInt8.self)
    // A reference's number 0 is the varint 1.
    return core.file.isObject(core.file.nodes[Int(node)].first) ? first == 1 : first == 0
  }

  // MARK: Enums

  /// Called first by a generated enum initialiser.
  public mutating func enterCase<T: Archivable>(_ type: T.Type) throws -> ArchiveFields {
    try descend()
    if isExact {
      let index = try takeVarint()
      guard index <= UInt64(Int32.max) else { throw damaged("An enum case is out of range") }
      return ArchiveFields(exact: Int(index))
    }
    try unwrapPresentOptional(T.archiveName)
    let node = core.file.nodes[Int(current)]
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
    if casePlan.isSame { isExact = true } else { try locate(&fields) }
    fields.caseIndex = target
    return fields
  }

  /// Called last by a generated enum initialiser.
  public mutating func leaveCase(_ fields: inout ArchiveFields) throws {
    ascend()
    try leave(&fields)
  }

  /// The error for a case number that no declaration has.
  public func invalidCase() -> ArchiveError { damaged("An enum case is out of range") }

  // MARK: Optionals and lists

  /// Saved as an optional, read as what is inside: fits if there is something inside.
  mutating func unwrapPresentOptional(_ wanted: String) throws {
    var depth = 0
    while core.file.nodes[Int(current)].code == .optional, depth < ArchiveLimits.typeDepth {
      let inner = core.file.nodes[Int(current)].first
      guard !core.file.isObject(inner) else { throw mismatch(wanted) }
      guard try takeFlag() else {
        throw ArchiveError(.missingField, "The archive has an empty optional where a \(wanted) is needed", offset: offset)
      }
      current = inner
      depth += 1
    }
  }

  @usableFromInline mutating func readMappedOptional<T: Archivable>(_ type: T.Type) throws -> T? {
    let node = core.file.nodes[Int(current)]
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
    let node = core.file.nodes[Int(current)]
    guard node.code == code else { throw mismatch("\(code)") }
    return node.first
  }
}
