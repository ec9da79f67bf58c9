package import Foundation
package import GRDB

extension RecordsDatabase {
  /// Writes the current state of the tables to one file, durably and atomically. An existing file of that name is
  /// replaced.
  package func snapshot(to url: URL) throws {
    let parent = url.deletingLastPathComponent()
    try refuseOwn(url, in: parent)
    let partial = parent.appendingPathComponent(".keepsake-\(UUID().uuidString).partial")
    do {
      try StoreError.translating("making a snapshot of the records") { try DatabaseCopy.make(of: self, at: partial) }
      try StoreFiles.moveIfPresent(partial, to: url)
      try AtomicFile.syncFolder(parent.path)
    } catch {
      try? StoreFiles.remove(partial)  // The reason to give up is the error that is thrown.
      throw error
    }
  }

  /// Replaces all tables with those of a snapshot, in one transaction, and migrates them to the game's newest schema.
  package func restore(from url: URL, _ migrator: DatabaseMigrator, merged: Set<String> = []) throws {
    try refuseWithin("restored")
    guard let file = try RawFile(url) else { throw StoreError(.missing, "there is no file \(url.path)") }
    guard let header = file.bytes(at: 0, count: RecordsFiles.headerBytes), RecordsFiles.isSound(header) else {
      throw StoreError(
        .damaged, "the file \(url.path) is not a snapshot of records, or its beginning is damaged; nothing was changed")
    }
    for suffix in ["-wal", "-journal"] where StoreFiles.exists(URL(fileURLWithPath: url.path + suffix)) {
      throw StoreError(
        .misuse,
        """
        \(url.lastPathComponent)\(suffix) is next to \(url.path), which is incomplete without it: restore a file that \
        snapshot(to:) made
        """)
    }
    try StoreError.translating("reading the snapshot \(url.path)") {
      let snapshot = try DatabaseQueue(
        path: url.path, configuration: RecordsAudit.configuration("keepsake.records.snapshot"))
      do {
        let refusal = try snapshot.readAround {
          try Self.objection(toSnapshot: $0, at: url, Self.objection(to: migrator, merged: merged))
        }
        if let refusal { throw refusal }
        try replaceAll(by: snapshot)
        try snapshot.close()
      } catch {
        try snapshot.close()
        throw error
      }
    }
    try migrate(migrator, merged: merged)
  }

  private static func objection(toSnapshot database: Database, at url: URL, _ objection: Objection) throws
    -> StoreError?
  {
    if let problem = try RecordsAudit.run(on: database, .everything).all.first {
      return StoreError(.damaged, "the snapshot \(url.path) is damaged (\(problem)); nothing was changed")
    }
    guard try Int.fetchOne(database, sql: "PRAGMA page_size") == PageScanner.pageSize else {
      return StoreError(
        .misuse, "the database \(url.path) is not a snapshot of records: it has another page size; nothing was changed")
    }
    return try objection(database)
  }

  /// Returns an objection to tables with applied migrations that `migrator` doesn't know.
  ///
  /// - Parameter merged: Names of earlier migrations that it merged into others, which GRDB doesn't reveal.
  package static func objection(to migrator: DatabaseMigrator, merged: Set<String> = []) -> Objection {
    { database in
      let unknown = try migrator.appliedIdentifiers(database).subtracting(migrator.migrations).subtracting(merged)
        .sorted()
      guard !unknown.isEmpty else { return nil }
      let names = unknown.prefix(3).map { "\"\($0)\"" }.joined(separator: ", ")
      return StoreError(
        .newerFormat,
        """
        the records were written by a newer release of the game, whose migrations this one doesn't know (\(names)): \
        update the game
        """)
    }
  }

  /// The files beside the database belong to the store: replacing one of them would destroy the store.
  private func refuseOwn(_ url: URL, in parent: URL) throws {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: parent.path, isDirectory: &isFolder), isFolder.boolValue else {
      throw StoreError(.missing, "there is no folder \(parent.path) for a snapshot of the records")
    }
    guard try Self.identity(of: parent) != Self.identity(of: files.folder) else {
      throw StoreError(.misuse, "a snapshot of the records can't be among the store's own files: choose another folder")
    }
    if FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder), isFolder.boolValue {
      throw StoreError(.misuse, "\(url.path) is a folder, but a snapshot of the records is a file")
    }
  }

  /// Returns the folder's identity, independent of its name.
  private static func identity(of folder: URL) throws -> [NSNumber?] {
    do {
      // Follow symbolic links.
      let attributes = try FileManager.default.attributesOfItem(atPath: folder.resolvingSymlinksInPath().path)
      return [attributes[.systemNumber] as? NSNumber, attributes[.systemFileNumber] as? NSNumber]
    } catch {
      throw StoreError(.io, "the folder \(folder.path) can't be examined", cause: error)
    }
  }
}
