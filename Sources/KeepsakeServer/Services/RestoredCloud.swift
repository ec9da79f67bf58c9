#if Cloud
package import Foundation
import GRDB
package import KeepsakeReplication
package import Logging

/// What an operator does after a backup was put back: with the data folder of a stopped server, or with a PostgreSQL
/// database, whose servers may be running.
package enum RestoredCloud {
  /// Marks the database as a backup that was put back: at the next start every bank begins a new epoch. Marking it
  /// twice changes nothing.
  ///
  /// - Throws: A `ServerError`; `folderInUse` if a server is running on the folder.
  package static func mark(data: URL) throws {
    let database = try DataFolder.ownDatabase(in: data)
    let folder = try DataFolder(at: data)
    defer { folder.unlock() }
    do {
      let queue = try DatabaseQueue(path: database.path)
      try queue.read(Schema.refuseNewer)
      // A backup may be of an older version.
      try Schema.migrator(files: ContentFiles(folder: folder.contents)).migrate(queue)
      try queue.writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA synchronous = FULL")
        try CloudNumber.isRestored.set(1, in: db)
      }
      try queue.close()
    } catch {
      throw Schema.failure(error, opening: database)
    }
  }

  /// Begins a new epoch of all banks in a PostgreSQL database that was set back to a backup. Each call begins another
  /// one. Servers that run notice within a second.
  ///
  /// The tables of an older version are brought to their newest state before: servers of that version may be unable to
  /// go on.
  ///
  /// - Returns: The epoch.
  package static func beginEpoch(
    database: String, logger: Logger = Logger(label: "keepsake.server")
  ) async throws -> UInt64 {
    #if PostgreSQL
    return try await CloudDatabase.with(database, mayMigrate: true, concernsPlayers: false, logger: logger) { storage in
      while true {
        let now = storage.clock()
        if let begun = try await storage.beginEpoch(after: storage.bankEpoch, now: now) { return begun }
        // A server has begun one in between: what is said here may be about a later restore.
      }
    }
    #else
    throw CloudDatabase.missing
    #endif
  }

  /// Ends the wait of banks for devices that haven't shown what they were granted.
  ///
  /// The database is opened as at a start: if it was put back or marked since, a new epoch begins before.
  ///
  /// - Parameters:
  ///   - database: The address of the PostgreSQL database that the cloud is in, whose servers may be running; nil for
  ///     one in the folder.
  ///   - player: Whose bank to release; nil for all.
  /// - Returns: How many banks had waited, and how many can't be read.
  /// - Throws: A `ServerError`; `folderInUse` if a server is running on the folder that the database is in.
  package static func release(
    data: URL, database address: String? = nil, player: PlayerID?, logger: Logger = Logger(label: "keepsake.server")
  ) async throws -> (released: Int, unreadable: Int) {
    #if PostgreSQL
    if let address {
      return try await CloudDatabase.with(address, mayMigrate: false, concernsPlayers: true, logger: logger) {
        try await release(player, in: $0)
      }
    }
    #else
    guard address == nil else { throw CloudDatabase.missing }
    #endif
    let database = try DataFolder.ownDatabase(in: data)
    let folder = try DataFolder(at: data)
    defer { folder.unlock() }
    let storage = try SQLiteCloudStorage(
      database: database, contents: folder.contents, witness: folder.witness, clock: ServerConfiguration.systemClock,
      logger: logger)
    let result: Result<(Int, Int), any Error>
    do {
      result = .success(try await release(player, in: storage))
    } catch {
      result = .failure(error)
    }
    try await storage.close()
    return try result.get()
  }

  private static func release(_ player: PlayerID?, in storage: some CloudStorage) async throws -> (Int, Int) {
    let rules = BankRules(epoch: storage.bankEpoch)
    if let player {
      guard let place = try await storage.place(of: player) else { throw ServerError.unknownPlayer(player) }
      return (try await storage.releaseBank(of: place.container, rules: rules) == nil ? 0 : 1, 0)
    }
    var (released, unreadable) = (0, 0)
    var place: ContainerID?
    repeat {
      let page = try await storage.releaseBanks(after: place, rules: rules)
      (released, unreadable) = (released + page.seqs.count, unreadable + page.unreadable)
      place = page.next
    } while place != nil
    return (released, unreadable)
  }
}
#endif
