package import GRDB

// Bringing the game's own tables to its newest schema.
extension RecordsDatabase {
  /// Migrates the tables to the game's newest schema. If `migrator` has nothing to do, the database isn't written.
  ///
  /// - Throws: `newerFormat` with nothing changed; `misuse` that names the migration that failed; any error of the
  ///   disk. Migrations before the one that failed are done.
  package func migrate(_ migrator: DatabaseMigrator, merged: Set<String> = []) throws {
    try refuseWithin("migrated")
    if let refusal = try reading({ try Self.objection(to: migrator, merged: merged)($0) }) { throw refusal }
    let isDone = try reading { try migrator.hasCompletedMigrations($0) && !migrator.hasBeenSuperseded($0) }
    guard !isDone || migrator.eraseDatabaseOnSchemaChange else { return }
    try writing("migrating the records") { pool in
      try requirePresence()
      let before = try pool.read { try migrator.appliedIdentifiers($0) }
      do {
        try migrator.migrate(pool)
      } catch {
        let done = Result { try pool.read { try migrator.appliedIdentifiers($0) } }
        do {
          try explain(error)
        } catch var removed as StoreError where removed.code == .removed {
          // Each migration is a commit. If they can't be read, some may be there.
          if (try? done.get()) != before { removed.setMayBeCommitted() }
          throw removed
        }
        let applied = try done.get()
        let failed = migrator.migrations.first { !applied.contains($0) } ?? "?"
        throw StoreError(
          .misuse, "the migration \"\(failed)\" of the records failed; the tables are as they were before it",
          cause: error)
      }
      try confirmPresence()
    }
  }

  /// Returns if the files and the disk aren't the reason why a migration failed; otherwise throws the reason.
  private func explain(_ error: any Error) throws {
    if let error = error as? DatabaseError {
      note(error)
      try presence.require(after: error, report)
      if let translated = StoreError(ofFile: error, doing: "migrating the records") { throw translated }
    }
    try requirePresence()
  }
}
