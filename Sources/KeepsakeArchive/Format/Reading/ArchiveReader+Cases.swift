// How the cases of enums, optionals and lists are read.
extension ArchiveReader {
  // MARK: Enums

  /// Called first by a generated enum initialiser.
  ///
  /// - Parameter type: The enum that is read.
  /// - Returns: The case, and the position among its saved payload.
  /// - Throws: `ArchiveError` with `unknownCase` if the program neither knows the saved case nor has a fallback, and
  ///   with other codes if what was saved can't be read as this type.
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
  ///
  /// - Parameter fields: What `enterCase` returned.
  /// - Throws: `ArchiveError` if fields that are skipped are damaged or exceed a limit.
  @inlinable public mutating func leaveCase(_ fields: inout ArchiveFields) throws {
    ascend()
    try leave(&fields)
  }

  /// Makes the error for a case number that is in no declaration.
  ///
  /// - Returns: An `ArchiveError` with `damaged`.
  public mutating func invalidCase() -> ArchiveError { damaged("An enum case is out of range") }

  // MARK: Optionals and lists

  /// Unwraps a value that was saved as an optional and is read as its wrapped type; throws if it is empty.
  @inline(__always) mutating func unwrapPresentOptional(_ wanted: @autoclosure () -> String) throws {
    if core.nodes[Int(current)].code == .optional { try unwrapOptionals(wanted()) }
  }

  private mutating func unwrapOptionals(_ wanted: String) throws {
    var depth = 0
    while core.nodes[Int(current)].code == .optional, depth < ArchiveLimits.typeDepth {
      let inner = core.nodes[Int(current)].first
      guard !core.file.isObject(inner) else { throw mismatch(wanted) }
      guard try takeFlag() else {
        throw ArchiveError(
          .missingField, "The archive has an empty optional where a \(wanted) is needed", offset: offset)
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

  /// Throws unless a list was saved; returns the saved type of its elements.
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
