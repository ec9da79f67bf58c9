extension ObjectBuilder {
  /// Calls the migration hooks of objects. All objects exist and refer to each other by then, and no `didDecode` has
  /// been called yet.
  ///
  /// Costs nothing if no class was saved in an older version, otherwise one more pass over the objects' bytes.
  func migrateObjects() throws {
    var places: ObjectLocations?
    for run in file.runs {
      if file.isSame && run.type < file.staticCount { continue }
      guard let type = classes[file.schema.types[run.type].name], !type.archiveIsKeyed else { continue }
      func open<T: Archivable>(_ type: T.Type) throws {
        let plan = try core.plan(type, Int32(run.type))
        guard plan.isOlder else { return }
        let found = try places ?? ObjectLocations(file, core)
        places = found
        for id in run.ids { try core.recording(id) { try migrate(type, id, plan, found) } }
      }
      try open(type)
    }
  }

  private func migrate<T: Archivable>(_ type: T.Type, _ id: Int32, _ plan: FieldPlan, _ places: ObjectLocations) throws
  {
    guard let base = file.bytes.baseAddress, let object = core.object(id)?.takeUnretainedValue() else { return }
    var reader = ArchiveReader(core: core, base: base, isExact: false)
    reader.end = base + file.referenceSection.upperBound
    reader.cursor = base + places.values[Int(id)]
    var entries = try reader.scanFields(plan.fields, inReferences: false)
    reader.cursor = base + places.references[Int(id)]
    entries += try reader.scanFields(plan.fields, inReferences: true)
    var saved = ArchiveMigration(reader, plan, entries: entries)
    // Runs contain only objects of exactly this class, and a reference has the same bits as `T` and as `AnyObject`.
    var typed = unsafeBitCast(object, to: T.self)
    try typed.migrateSuperclasses(&saved)
    if saved.enterNextClass() { try typed.migrate(&saved) }
    try saved.checkRetyped(plan)
  }
}
