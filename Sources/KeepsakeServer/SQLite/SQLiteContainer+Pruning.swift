#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// What pruning reads and writes.
extension SQLiteContainer {
  func loadPruning(_ reads: ReadSet, _ reached: [DeviceID: UInt64], into snapshot: inout Snapshot) throws {
    if let wanted = reads.slotNames { snapshot.slotNames = try slotNames(wanted) }
    if reads.visits { snapshot.visits = try visits(reached) }
    if reads.pastPositions {
      let pruned = try rows("SELECT id FROM covered WHERE container = ? AND pruned = 1", [number])
      snapshot.pruned = try Set(pruned.map { try identifier($0.decode(atIndex: 0)) })
      snapshot.pastPositions = try rows(
        "SELECT milliseconds, seq, devices FROM pastPosition WHERE container = ? ORDER BY milliseconds", [number]
      ).map {
        PastPosition(
          milliseconds: try $0.decode(atIndex: 0), seq: unsigned(try $0.decode(atIndex: 1)),
          devices: try PackedRanges(bytes: $0.decode(atIndex: 2)).ranges)
      }
    }
  }

  private func slotNames(_ wanted: ReadSet.SlotNames) throws -> [ExactText] {
    let names = try rows("SELECT DISTINCT slot FROM version WHERE container = ?", [number]).map {
      ExactText(String(decoding: try $0.decode(Data.self, atIndex: 0), as: UTF8.self))
    }
    let later = names.filter { name in wanted.after.map { $0 < name } ?? true }
    return Array(later.sorted().prefix(wanted.limit))
  }

  private func visits(_ reached: [DeviceID: UInt64]) throws -> [DeviceID: DeviceVisits] {
    var visits = reached.mapValues { DeviceVisits(reached: $0) }
    for row in try rows("SELECT id, created, seen FROM device WHERE container = ?", [id]) {
      let device: DeviceID = try identifier(row.decode(atIndex: 0))
      // A visit is recorded once in a while, so that the last one may be later.
      let seen = try row.decode(Int64.self, atIndex: 2).addingClamped(ServerLimits.visitMilliseconds)
      visits[device] = DeviceVisits(
        reached: reached[device] ?? 0, firstMilliseconds: try row.decode(atIndex: 1), lastMilliseconds: seen)
    }
    return visits
  }

  /// Writes what was pruned.
  func commitPruning(_ writes: WriteSet, _ encoded: EncodedRows) throws {
    for version in writes.removed.keys {
      let found = try row(
        "DELETE FROM version WHERE container = ? AND id = ? RETURNING seq, mark", [number, version.bytes])
      guard let found else { continue }
      try run("INSERT OR REPLACE INTO covered (container, id, pruned) VALUES (?, ?, 1)", [number, version.bytes])
      try keep(mark: found.decode(atIndex: 1), of: found.decode(atIndex: 0))
    }
    for version in writes.rewritten.keys {
      try run(
        "UPDATE version SET record = ? WHERE container = ? AND id = ?",
        [encoded.records[version], number, version.bytes])
    }
    for version in writes.forgotten {
      try run("DELETE FROM covered WHERE container = ? AND id = ?", [number, version.bytes])
    }
    for range in writes.forgottenMarks?.ranges ?? [] { try forgetMarks(range) }
    if let position = writes.recordedPosition {
      try run(
        "INSERT OR REPLACE INTO pastPosition (container, milliseconds, seq, devices) VALUES (?, ?, ?, ?)",
        [number, position.milliseconds, signed(position.seq), PackedRanges(position.devices).bytes])
    }
    for time in writes.forgottenPositions {
      try run("DELETE FROM pastPosition WHERE container = ? AND milliseconds = ?", [number, time])
    }
  }

  /// Removes marks that aren't of cells or versions, between the ranges where they stay: some at a time, so that no
  /// commit takes long.
  private func forgetMarks(_ range: ClosedRange<UInt64>) throws {
    try run(
      """
      DELETE FROM mark WHERE container = ?1 AND seq IN (
        SELECT seq FROM mark WHERE container = ?1 AND seq BETWEEN ?2 AND ?3 LIMIT ?4
      )
      """,
      [number, signed(range.lowerBound), signed(range.upperBound), ServerLimits.marksForgottenAtOnce])
  }
}

extension SQLiteCloudStorage {
  func containersToPrune(after place: PrunablePage.Place?, now: Int64, limit: Int) async throws -> PrunablePage {
    let rules = PruningRules()
    var after: Int64 = 0
    if case .number(let number) = place { after = number }
    return try await reading { [after] db in
      // Those that weren't looked at for a while, and that have changed since what they have was last forgotten.
      let rows = try Row.fetchAll(
        db.cachedStatement(
          sql: """
            SELECT number, id, seq > 0 AND NOT EXISTS (
              SELECT 1 FROM pastPosition WHERE pastPosition.container = number AND milliseconds > ?2
            ) AND NOT EXISTS (
              SELECT 1 FROM pastPosition
              WHERE pastPosition.container = number AND pastPosition.seq = container.seq AND milliseconds <= ?3
            )
            FROM container WHERE number > ?1 ORDER BY number LIMIT ?4
            """),
        arguments: [
          after, now.addingClamped(-rules.stepMilliseconds),
          now.addingClamped(-rules.rememberedMilliseconds).addingClamped(-2 * rules.stepMilliseconds), limit,
        ])
      var page = PrunablePage()
      for row in rows {
        page.next = .number(try row.decode(atIndex: 0))
        guard try row.decode(Bool.self, atIndex: 2), let id = ContainerID(bytes: try row.decode(atIndex: 1)) else {
          continue
        }
        page.containers.append(id)
      }
      if rows.count < limit { page.next = nil }
      return page
    }
  }
}
#endif
