extension ArchiveReader {
  /// Called by generated initialisers of structs and enums, after everything else, where an older version was saved.
  public mutating func migrate<T: Archivable>(_ value: inout T, _ fields: ArchiveFields) throws {
    guard let plan = fields.plan?.takeUnretainedValue(), let start = fields.start else { return }
    var scan = fresh(at: start)
    let entries = plan.isKeyed ? try scan.scanKeyed() : try scan.scanFields(plan.fields, inReferences: false)
    var saved = ArchiveMigration(scan, plan, caseKey: plan.caseKey, entries: entries)
    try value.migrate(&saved)
    try saved.checkRetyped(plan)
  }

  /// Reads the payload of the case that stands for unknown ones: the saved case's key, if that is how it came to be read.
  public mutating func caseKey(
    _ index: Int, _ fields: inout ArchiveFields, default value: @autoclosure () -> String? = nil
  ) throws -> String {
    if let fallback = fields.plan?.takeUnretainedValue().fallback { return fallback.key }
    if let value = value() { return try field(index, &fields, default: value) }
    return try field(index, &fields)
  }

  /// A collection may have an element or key twice only where different saved cases have become one.
  @usableFromInline mutating func refuseRepetition(_ message: String) throws {
    if !core.usedFallback { throw damaged(message) }
  }

  /// Another reader of the same archive, which leaves this one where it is.
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
      "The archive has \(saved) here, which can't be read as the field's type: give the field a default value and read what was saved in migrate(_:)",
      type: plan.name, field: plan.keys[place], offset: offset)
  }
}
