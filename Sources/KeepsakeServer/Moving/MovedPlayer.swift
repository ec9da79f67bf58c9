#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// One player on the way from one PostgreSQL database into another.
///
/// It is copied and compared, and then removed if it is still as it was copied. Until that, and after an error, both
/// databases have it: whoever moves players keeps requests from the new one until this has ended. Receipts are unique
/// within a database only.
struct MovedPlayer {
  private static let attempts = 20

  let container: ContainerID
  let source: (pool: PostgreSQLPool, places: ContentPlaces)
  let target: MovedContentTarget
  /// Where large contents are on the way.
  let folder: URL

  /// Moves the player.
  ///
  /// - Throws: `ServerError` with `overloaded` if the player doesn't stop changing, `missing` if there is none.
  func move() async throws {
    for attempt in 0..<Self.attempts {
      do {
        let revision = try await copy()
        if try await remove(ifAt: revision) { return }
      } catch is MovedContents.Unknown {
        // A large content was named after they were looked for.
      }
      try await PostgreSQLPool.pause(after: attempt)
    }
    throw ServerError(.overloaded, "A player changes all the time and can't be moved; try again later.")
  }

  /// Copies everything of the player, in place of what is there, and compares it.
  ///
  /// - Returns: The revision that was copied.
  func copy() async throws -> Int64 {
    let arrived = try await putContents()
    let (owner, settings, place) = (container.bytes, target.pool.settings, target.places.first.name)
    let (revision, digest) = try await source.pool.changing { reading in
      let row = try reading.run("SELECT revision FROM container WHERE id = $1", [.bytes(owner)]).first
      guard let revision = try row?.int(0) else {
        throw ServerError(.missing, "There is no such player in the database.")
      }
      let reader = PostgreSQLMovedRows(reading, lost: arrived.lost, arrived: arrived.names)
      // Both transactions belong to this thread.
      let digest = try PostgreSQLTransaction.run(on: PostgreSQLConnection(settings)) { writing in
        var writer = PostgreSQLMovedRows(writing, place: place)
        return try MovedDigest.copying(owner, MovedTable.ofPlayer, from: reader, to: &writer)
      }
      return (revision, digest)
    }
    let found = try await target.pool.changing { transaction in
      try MovedDigest.of(owner, MovedTable.ofPlayer, in: PostgreSQLMovedRows(transaction))
    }
    guard found == digest else {
      throw ServerError(.damaged, "What was read back of a player isn't what was written.")
    }
    return revision
  }

  /// Removes the player from the first database, if it is as it was copied.
  private func remove(ifAt revision: Int64) async throws -> Bool {
    let owner = container.bytes
    return try await source.pool.changing { transaction in
      let moved = try transaction.run(
        "UPDATE container SET revision = revision + 1 WHERE id = $1 AND revision = $2",
        [.bytes(owner), .int(revision)])
      if moved.count == 0 {
        // Also if the removal was done, and nobody was told.
        return try transaction.run("SELECT 1::bigint FROM container WHERE id = $1", [.bytes(owner)]).first == nil
      }
      var writer = PostgreSQLMovedRows(transaction)
      try writer.begin(owner, MovedTable.ofPlayer)
      try writer.finish(owner)
      return true
    }
  }

  private func putContents() async throws -> MovedContents.Arrived {
    var arrived = MovedContents.Arrived()
    for content in try await CloudReturn.named(container.bytes, source.pool) {
      guard let place = content.place else {
        arrived.lost.insert(Data(content.name.utf8))
        continue
      }
      let key = try ContentKey(content.name, of: container)
      let file = folder.appendingPathComponent("moving-\(UInt64.random(in: .min ... .max))")
      defer { unlink(file.path) }
      guard try await MovedContentTarget.fetch(key, content.count, in: source.places.named(place), to: file) else {
        arrived.lost.insert(Data(content.name.utf8))
        continue
      }
      _ = try await target.put(file, count: content.count, named: content.name, of: container)
      arrived.names.insert(Data(content.name.utf8))
      arrived.count += 1
      arrived.bytes += content.count
    }
    return arrived
  }
}
#endif
