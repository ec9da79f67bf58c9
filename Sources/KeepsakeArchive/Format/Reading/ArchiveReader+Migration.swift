extension ArchiveReader {
  /// Called by generated initialisers of structs and enums, after everything else, if an older version was saved.
  ///
  /// - Parameters:
  ///   - value: The value that was read.
  ///   - fields: What `enter` or `enterCase` returned.
  /// - Throws: What the value's hook throws; `ArchiveError` with `mismatch` if the hook didn't read a saved value that
  ///   doesn't fit its field.
  public mutating func migrate<T: Archivable>(_ value: inout T, _ fields: ArchiveFields) throws {
    guard let plan = fields.plan?.takeUnretainedValue(), let start = fields.start else { return }
    var scan = fresh(at: start)
    let entries = plan.isKeyed ? try scan.scanKeyed() : try scan.scanFields(plan.fields, inReferences: false)
    var saved = ArchiveMigration(scan, plan, caseKey: plan.caseKey, entries: entries)
    try value.migrate(&saved)
    try saved.checkRetyped(plan)
  }

  /// Reads the payload of the fallback case. If the saved case is unknown, the payload is that case's key.
  ///
  /// - Parameters:
  ///   - index: The payload's index in the case, from 0.
  ///   - fields: What `enterCase` returned.
  ///   - value: The payload's default value; nil if it has none.
  /// - Returns: The key of the unknown case, or the saved payload.
  /// - Throws: What reading the payload throws.
  public mutating func caseKey(
    _ index: Int, _ fields: inout ArchiveFields, default value: @autoclosure () -> String? = nil
  ) throws -> String {
    if let fallback = fields.plan?.takeUnretainedValue().fallback { return fallback.key }
    if let value = value() { return try field(index, &fields, default: value) }
    return try field(index, &fields)
  }

  /// Throws for a repeated element or key. A collection may have one only if different saved cases have become the same
  /// fallback.
  @usableFromInline mutating func refuseRepetition(_ message: String) throws {
    if !core.usedFallback { throw damaged(message) }
  }

  /// Returns another reader of the same archive, which doesn't move this one.
  func fresh(at start: UnsafeRawPointer) -> ArchiveReader {
    var other = ArchiveReader(core: core, base: base, isExact: false)
    other.cursor = start
    other.end = end
    other.depth = depth
    other.current = current
    return other
  }

  mutating func retypedError(_ plan: FieldPlan, _ place: Int) -> ArchiveError {
    let saved = plan.fields.first { $0.key == plan.keys[place] }.map { core.file.text($0.node) } ?? "another type"
    return ArchiveError(
      .mismatch,
      """
      The archive has \(saved) here, which can't be read as the field's type: give the field a default value, and \
      read the saved value in migrate(_:)
      """,
      type: plan.name, field: plan.keys[place], offset: offset)
  }
}
