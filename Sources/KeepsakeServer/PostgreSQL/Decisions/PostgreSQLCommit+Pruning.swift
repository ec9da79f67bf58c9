#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

// What pruning removes.
extension PostgreSQLCommit {
  mutating func addPruning(_ writes: WriteSet, _ encoded: EncodedRows) {
    if !writes.removed.isEmpty {
      let ids: [PostgreSQLValue] = [.list(writes.removed.keys.map(\.bytes))]
      add(
        """
        INSERT INTO mark (container, seq, mark)
        SELECT container, seq, mark FROM version WHERE container = $1 AND id = ANY($2)
        """, ids)
      add(
        """
        INSERT INTO covered (container, id, pruned)
        SELECT container, id, 1 FROM version WHERE container = $1 AND id = ANY($2)
        ON CONFLICT (container, id) DO UPDATE SET pruned = 1
        """, ids)
      add("DELETE FROM version WHERE container = $1 AND id = ANY($2)", ids)
    }
    for version in writes.rewritten.keys {
      add(
        "UPDATE version SET record = $3 WHERE container = $1 AND id = $2",
        [.bytes(version.bytes), .bytes(encoded.records[version])])
    }
    if !writes.forgotten.isEmpty {
      add("DELETE FROM covered WHERE container = $1 AND id = ANY($2)", [.list(writes.forgotten.map(\.bytes))])
    }
    if let marks = writes.forgottenMarks { forget(marks) }
    if let position = writes.recordedPosition {
      add(
        """
        INSERT INTO past_position (container, milliseconds, seq, devices) VALUES ($1, $2, $3, $4)
        ON CONFLICT (container, milliseconds) DO UPDATE SET seq = excluded.seq, devices = excluded.devices
        """,
        [.int(position.milliseconds), .signed(position.seq), .bytes(PackedRanges(position.devices).bytes)])
    }
    if !writes.forgottenPositions.isEmpty {
      add(
        "DELETE FROM past_position WHERE container = $1 AND milliseconds = ANY($2)",
        [.numbers(writes.forgottenPositions.sorted())])
    }
  }

  /// Removes marks that aren't of cells or versions, between the ranges where they stay: some at a time, so that no
  /// commit takes long.
  private mutating func forget(_ marks: WriteSet.ForgottenMarks) {
    for range in marks.ranges {
      add(
        """
        DELETE FROM mark WHERE container = $1 AND seq IN (
          SELECT seq FROM mark WHERE container = $1 AND seq BETWEEN $2 AND $3 LIMIT $4
        )
        """,
        [.signed(range.lowerBound), .signed(range.upperBound), .int(Int64(ServerLimits.marksForgottenAtOnce))])
    }
  }
}
#endif
