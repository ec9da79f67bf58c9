#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

// What is read of contents.
extension PostgreSQLLoad {
  mutating func addContents(_ hashes: Set<ContentHash>) {
    add(
      "SELECT hash, base, size, suspect FROM content WHERE container = $1 AND hash = ANY($2)",
      [.list(hashes.map(\.bytes))]
    ) { rows, snapshot in
      for row in rows {
        snapshot.contents[try row.hash(0)] = Snapshot.Content(
          base: try row.optionalHash(1), size: try row.int(2), isSuspect: try row.int(3) == 1)
      }
    }
  }

  /// Those of them that are small enough for a response.
  mutating func addFrames(_ hashes: Set<ContentHash>) {
    add(
      """
      SELECT hash, length, base, bytes FROM content
      WHERE container = $1 AND hash = ANY($2) AND size <= $3 AND file IS NULL
      """, [.list(hashes.map(\.bytes)), .int(Int64(CloudAcceptance.inlineContentBytes))]
    ) { rows, snapshot in
      snapshot.known.frames.formUnion(hashes)
      for row in rows {
        let hash = try row.hash(0)
        snapshot.frames[hash] = EncodedContent(
          hash: hash, length: Int(try row.int(1)), base: try row.optionalHash(2),
          bytes: try row.optionalBytes(3) ?? Data())
      }
    }
  }

  /// Contents of heads that are small enough for a response, with those of their bases that the device can't have; no
  /// further ones once there are as many bytes as are read for one.
  ///
  /// - Parameter hashes: In the order of the changes, each once.
  mutating func addFrames(ofHeads hashes: [ContentHash], over replaced: Set<ContentHash>, fromStart: Bool) {
    let small = "content.container = $1 AND content.size <= $3 AND content.file IS NULL"
    add(
      """
      WITH RECURSIVE frame AS (
        SELECT content.hash, base, size, place, 1::bigint AS depth
        FROM unnest($2) WITH ORDINALITY AS asked (hash, place) JOIN content ON content.hash = asked.hash WHERE \(small)
        UNION SELECT content.hash, content.base, content.size, place, frame.depth + 1
        FROM content JOIN frame ON content.hash = frame.base
        WHERE \(small) AND frame.depth < $4 AND ($5::bigint = 1 OR frame.base = ANY($6))
      ), counted AS (
        SELECT hash, sum(size) OVER (ORDER BY place, depth, hash) - size AS before FROM (
          SELECT hash, min(size) AS size, min(place) AS place, min(depth) AS depth FROM frame GROUP BY hash
        ) AS once
      )
      SELECT content.hash, length, base, bytes FROM content JOIN counted ON content.hash = counted.hash
      WHERE content.container = $1 AND before < $7
      """,
      [
        .list(hashes.map(\.bytes)), .int(Int64(CloudAcceptance.inlineContentBytes)), .int(Self.chainRead),
        fromStart ? 1 : 0, .list(replaced.map(\.bytes)), .int(Self.framesRead),
      ]
    ) { rows, snapshot in
      // Whatever doesn't come isn't here, too large, or more than is read for one response.
      snapshot.known.frames.formUnion(hashes)
      for row in rows {
        let hash = try row.hash(0)
        let frame = EncodedContent(
          hash: hash, length: Int(try row.int(1)), base: try row.optionalHash(2),
          bytes: try row.optionalBytes(3) ?? Data())
        snapshot.frames[hash] = frame
        snapshot.known.frames.insert(hash)
        if let base = frame.base, fromStart || replaced.contains(base) { snapshot.known.frames.insert(base) }
      }
    }
  }

  /// Of the contents that go into a response, at most about this many bytes are read to find those that fit.
  private static let framesRead = Int64(4 * CloudAcceptance.inlineTotalBytes)
  /// The most bases that are followed for one of them.
  private static let chainRead: Int64 = 32

  mutating func addSuspects() {
    add(
      "SELECT hash FROM content WHERE container = $1 AND suspect = 1 ORDER BY hash LIMIT $2",
      [.int(Int64(ServerLimits.suspectsAtOnce))]
    ) { rows, snapshot in snapshot.suspects = try rows.map { try $0.hash(0) } }
  }

  /// The heads that need a content, directly or as a base. Looks at every head.
  mutating func addHeads(needing hash: ContentHash) {
    var leaning: Set<ContentHash> = [hash]
    add(
      """
      WITH RECURSIVE needing AS (
        SELECT $2::bytea AS hash
        UNION SELECT content.hash FROM content JOIN needing ON content.base = needing.hash WHERE content.container = $1
      ) SELECT hash FROM needing
      """, [.bytes(hash.bytes)]
    ) { rows, _ in leaning.formUnion(try rows.map { try $0.hash(0) }) }
    add("SELECT id, seq, slot, record FROM version WHERE container = $1 AND head = 1") { rows, snapshot in
      let heads = try rows.map { try $0.version(hasAccepted: false).record }
      snapshot.needing[hash] = heads.filter { !leaning.isDisjoint(with: $0.contents) }.map(\.id).sorted()
    }
  }

  // MARK: Room

  /// Adds the versions that hold contents, of these slots or of all.
  mutating func addHolders(of slots: Set<ExactText>?) {
    add(
      """
      SELECT id, seq, slot, record, head FROM version
      WHERE container = $1 AND holds = 1 AND ($2::bytea[] IS NULL OR slot = ANY($2::bytea[]))
      """, [.list(slots?.map { Data($0.text.utf8) })]
    ) { rows, snapshot in
      for row in rows {
        let record = try row.version(hasAccepted: false).record
        snapshot.room.holders[record.id] = Snapshot.Room.Holder(slot: record.slot, contents: Set(record.contents))
        snapshot.coverage[record.id] = try row.int(4) == 0
      }
    }
  }

  /// Adds contents with all their bases; all contents if it is nil.
  mutating func addRoom(of hashes: Set<ContentHash>?) {
    let columns = "hash, base, size, taken, holders, leaning"
    let reader: Reader = { rows, snapshot in
      for row in rows {
        snapshot.room.contents[try row.hash(0)] = Snapshot.Room.Content(
          base: try row.optionalHash(1), size: try row.int(2), takenMilliseconds: try row.int(3),
          holders: Int(try row.int(4)), leaning: Int(try row.int(5)))
      }
    }
    guard let hashes else { return add("SELECT \(columns) FROM content WHERE container = $1", [], reader) }
    add(
      """
      WITH RECURSIVE room AS (
        SELECT \(columns) FROM content WHERE container = $1 AND hash = ANY($2)
        UNION SELECT \(columns.split(separator: ", ").map { "content.\($0)" }.joined(separator: ", "))
        FROM content JOIN room ON content.hash = room.base WHERE content.container = $1
      ) SELECT \(columns) FROM room
      """, [.list(hashes.map(\.bytes))], reader)
  }
}
#endif
