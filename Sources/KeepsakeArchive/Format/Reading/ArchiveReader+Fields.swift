// How the fields of a value are read by generated code.
extension ArchiveReader {
  /// Called first by a generated initialiser.
  ///
  /// - Parameter type: The type that is read.
  /// - Returns: The position among the saved fields.
  /// - Throws: `ArchiveError` if what was saved can't be read as this type.
  @inlinable @inline(__always) public mutating func enter<T: Archivable>(_ type: T.Type) throws -> ArchiveFields {
    if isExact { return ArchiveFields(exact: 0) }
    return try enterMapped(type)
  }

  @usableFromInline mutating func enterMapped<T: Archivable>(_ type: T.Type) throws -> ArchiveFields {
    if let fields = passedFields {
      passedFields = nil
      return fields
    }
    // The elements of an array take this shortcut, one after the other.
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
    // In a struct, all fields are together, whichever section it is in.
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

  /// Finds fields that have keys. The positions of other fields are recorded when they are skipped.
  mutating func locate(_ fields: inout ArchiveFields, _ plan: FieldPlan) throws {
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
    // The other members of a position are read only after they have been set.
    for index in 0..<Int(fields.stepCount) { places[index].node = -1 }
  }

  private var nowhere: ArchiveFields.Position { .init(node: -1, start: base, end: base) }

  /// Called last by a generated initialiser. Skips fields that the program no longer has.
  ///
  /// - Parameter fields: What `enter` returned.
  /// - Throws: `ArchiveError` if fields that are skipped are damaged or exceed a limit.
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
  ///
  /// - Parameters:
  ///   - fields: What `enter` returned.
  ///   - ownFields: The number of the class's own fields.
  @inlinable public mutating func passFields(_ fields: inout ArchiveFields, _ ownFields: Int) {
    if !fields.isExact { passMapped(&fields, ownFields) }
    fieldBase += ownFields
  }

  @usableFromInline mutating func passMapped(_ fields: inout ArchiveFields, _ ownFields: Int) {
    fields.base += Int32(truncatingIfNeeded: ownFields)
    passedFields = fields
  }

  /// The same for a class that has nothing to read.
  ///
  /// - Parameter ownFields: The number of the class's own fields.
  public mutating func passFields(_ ownFields: Int) {
    passedFields?.base += Int32(truncatingIfNeeded: ownFields)
    fieldBase += ownFields
  }

  /// Opens an object whose class was declared differently; the classes of its hierarchy then read one after the other.
  mutating func openObject(_ plan: FieldPlan) throws {
    var fields = ArchiveFields(plan: plan, isExact: false)
    fields.isInReferences = isInReferences
    try locate(&fields, plan)
    passedFields = fields
  }

  /// Closes the object that `openObject` opened.
  mutating func closeObject() throws {
    guard var fields = passedFields else { return }
    passedFields = nil
    try leaveMapped(&fields)
  }

  @usableFromInline mutating func pass(_ fields: inout ArchiveFields, to source: Int32) throws {
    try fields.plan?._withUnsafeGuaranteedRef { try advance(&fields, $0, to: source) }
  }

  /// Skips fields, and records their positions if the program reads some of them in a later order than the archive has.
  private mutating func advance(_ fields: inout ArchiveFields, _ plan: FieldPlan, to target: Int32) throws {
    // Copied to local variables, because none of this changes in the loop.
    let passed = plan.passed
    let isInReferences = fields.isInReferences
    let places = fields.located >= 0 ? core.located.place(Int(fields.located)) : nil
    var next = Int(fields.next)
    while next < Int(target) {
      let field = passed[next]
      if field.deferred == isInReferences {
        let start = cursor
        if try !pass(field.form) { try skip(field.node) }
        if let places, field.place >= 0 {
          places[Int(field.place)] = .init(node: field.node, start: start, end: cursor)
        }
      }
      next += 1
    }
    fields.next = Int32(truncatingIfNeeded: next)
  }

  /// Returns whether the archive has a non-empty value for the field.
  ///
  /// - Parameters:
  ///   - index: The field's index in its own struct, class or case, from 0.
  ///   - fields: What `enter` returned.
  /// - Returns: Whether there is a value to read.
  /// - Throws: `ArchiveError` if fields that are skipped are damaged or exceed a limit.
  @inlinable public mutating func hasField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    if fields.plainSource(index) >= 0 { return true }
    return try !fields.isAbsent(index) && findField(index, &fields)
  }

  @usableFromInline mutating func findField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    guard let place = try seek(index, &fields) else { return false }
    return try !isEmptyOptional(place.node, from: place.start, to: place.end)
  }

  /// Like `hasField`, for a property that is itself optional: an empty value counts, too.
  ///
  /// - Parameters:
  ///   - index: The field's index in its own struct, class or case, from 0.
  ///   - fields: What `enter` returned.
  /// - Returns: Whether there is a value to read, which may be an empty optional.
  /// - Throws: `ArchiveError` if fields that are skipped are damaged or exceed a limit.
  public mutating func hasOptionalField(_ index: Int, _ fields: inout ArchiveFields) throws -> Bool {
    try seek(index, &fields) != nil
  }

  /// Reads a field by its index in the declaration.
  ///
  /// - Parameters:
  ///   - index: The field's index in its own struct, class or case, from 0.
  ///   - fields: What `enter` or `enterCase` returned.
  /// - Returns: The field's value.
  /// - Throws: `ArchiveError` with `missingField` if the archive has no value for the field, and what reading the value
  ///   throws.
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
        .missingField,
        """
        The archive has no value for a property without a default value: give it a default, or @Key("old name") if \
        it was renamed
        """,
        type: typeName(fields), field: key(index, fields), offset: offset)
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
    // An error that has a key already is about a field inside this one's value.
    if error.code == .mismatch, error.field == nil, hasOtherType(index, fields) {
      error.message += ": raise the type's version, and read the saved value in migrate(_:)"
    }
    if error.type == nil { error.type = typeName(fields) }
    if error.field == nil { error.field = key(index, fields) }
    return error
  }

  /// Reads a field, or returns a default if the archive has no value for it.
  ///
  /// - Parameters:
  ///   - index: The field's index in its own struct, class or case, from 0.
  ///   - fields: What `enter` or `enterCase` returned.
  ///   - value: The default. Evaluated only if it is needed.
  /// - Returns: The field's value, or the default.
  /// - Throws: What reading the value, or the default, throws.
  public mutating func field<T: Archivable>(
    _ index: Int, _ fields: inout ArchiveFields, default value: @autoclosure () throws -> T
  ) throws -> T {
    if fields.isExact { return try T.archiveRead(from: &self) }
    guard try hasField(index, &fields) else { return try value() }
    return try field(index, &fields)
  }

  /// Reads an optional, or returns a default if the archive has no such field. An optional that was saved empty stays
  /// empty.
  ///
  /// - Parameters:
  ///   - index: The field's index in its own struct, class or case, from 0.
  ///   - fields: What `enter` or `enterCase` returned.
  ///   - value: The default. Evaluated only if it is needed.
  /// - Returns: The field's value, or the default.
  /// - Throws: What reading the value, or the default, throws.
  public mutating func field<T: Archivable>(
    _ index: Int, _ fields: inout ArchiveFields, ifAbsent value: @autoclosure () throws -> T
  ) throws -> T {
    guard try fields.isExact || seek(index, &fields) != nil else { return try value() }
    return try field(index, &fields)
  }

  /// Throws if a field is left to the migration hook: it must have a value until then.
  private mutating func checkRetyped(_ index: Int, _ fields: ArchiveFields) throws {
    let place = Int(fields.base) + index
    guard let plan = fields.plan?.takeUnretainedValue(), place < plan.steps.count, plan.steps[place].isRetyped else {
      return
    }
    throw retypedError(plan, place)
  }

  /// Whether the archive has the field with a type that can't be read as the program's.
  private func hasOtherType(_ index: Int, _ fields: ArchiveFields) -> Bool {
    guard let steps = fields.steps, let plan = fields.plan?.takeUnretainedValue() else { return false }
    let place = Int(fields.base) + index
    guard place < plan.declared.count, steps[place].source >= 0 else { return false }
    return !SchemaComparison(file: core.file, program: plan.program, compared: ComparedTypes()).fits(
      steps[place].node, plan.declared[place].node)
  }

  private func typeName(_ fields: ArchiveFields) -> String? { fields.plan?._withUnsafeGuaranteedRef { $0.name } }

  private func key(_ index: Int, _ fields: ArchiveFields) -> String? {
    let place = Int(fields.base) + index
    return fields.plan?._withUnsafeGuaranteedRef { place < $0.keys.count ? $0.keys[place] : nil }
  }

  /// Finds a field, skipping those before it; nil if the archive doesn't have it here.
  @inline(__always) private mutating func seek(_ index: Int, _ fields: inout ArchiveFields) throws -> ArchiveFields
    .Location?
  {
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
    return position.node < 0
      ? nil : .init(node: position.node, start: position.start, end: position.end, isBehind: true)
  }

  /// Returns whether an optional was saved empty. It counts as missing for a property that has a default value.
  mutating func isEmptyOptional(_ node: Int32, from start: UnsafeRawPointer, to end: UnsafeRawPointer) throws -> Bool {
    let node = core.nodes[Int(node)]
    if node.code == .coded { return isEmptyCoded(UnsafeRawBufferPointer(start: start, count: end - start)) }
    guard node.code == .optional else { return false }
    guard start < end else { throw damaged("The archive ends in the middle of a value") }
    let first = start.load(as: UInt8.self)
    // A reference's number 0 is encoded as the varint 1.
    return core.file.isObject(node.first) ? first == 1 : first == 0
  }
}
