import Foundation
import GRDB
import KeepsakeReplication

/// Decides what is kept of a slot's past, and removes the rest together with the contents that nothing needs any more.
///
/// Kept whole are the versions that the rules select, pinned versions, heads, what the last deletes removed, and the
/// ancestors that a merge of heads starts from. Of the others, the record is kept for a long time: the parents of
/// versions must be known here as well as on every other device, or the devices would resolve conflicts differently.
/// The ids of covered versions are kept forever, in the table `covered`.
struct History {
  /// How many of a slot's newest pruned records are kept: some days of autosaves every minute, or years of one save a
  /// day. A device that comes back after more than that sends a save whose ancestor isn't known.
  static let recordsKept = 2_000
  /// How many deletes of a slot can be undone, however much was saved since.
  private static let deletesKept = 10

  var transaction: StoreTransaction
  private var conflictsAreKept = false

  init(transaction: StoreTransaction) {
    self.transaction = transaction
  }

  /// Prunes the slots that this transaction touched.
  static func prune(_ transaction: StoreTransaction) throws {
    var history = History(transaction: transaction)
    try history.pruneLacking()
    let slots = try transaction.touchedSlots.map { (name: $0, heads: try transaction.heads(of: $0)) }
    // Before anything is pruned, which must not take a merge base from any of them.
    for slot in slots {
      transaction.context.commits.setConflict(slot.heads.count > 1, in: Data(slot.name.utf8))
    }
    for (slot, heads) in slots {
      try history.prune(slot, heads)
      // These records were pruned without `prune(_:)`, which would limit their number.
      if transaction.hasReplacedNotDownloaded { try history.dropRecords(of: slot) }
    }
  }

  /// Removes contents that no version needs, left behind by a superseded download.
  static func sweep(_ transaction: StoreTransaction) throws {
    let orphans = try Data.fetchAll(
      transaction.statement(
        """
        SELECT hash FROM content
        WHERE hash NOT IN (SELECT hash FROM content_use) AND hash NOT IN (SELECT base FROM content
        WHERE base IS NOT NULL)
        """))
    let history = History(transaction: transaction)
    try history.collect(orphans.compactMap { ContentHash(bytes: $0) })
  }

  /// Removes those of the contents that nothing needs.
  static func collect(_ contents: [ContentHash], in transaction: StoreTransaction) throws {
    try History(transaction: transaction).collect(contents)
  }

  /// Prunes versions of which only the record arrived, because another device had replaced them before this device
  /// fetched them. Such a version can't be loaded and must not take the place of one that can.
  private mutating func pruneLacking() throws {
    for id in transaction.lacking.sorted() where try transaction.isCovered(id) {
      guard let version = try transaction.version(id) else { continue }
      try transaction.putVersion(version, pruned: true, pinned: false)
      try release(version.record)
    }
  }

  /// Deletes by hash and version, which is how the table is sorted.
  func release(_ record: VersionRecord) throws {
    for hash in record.contents {
      try transaction.run("DELETE FROM content_use WHERE hash = ? AND version = ?", [hash.bytes, record.id.bytes])
    }
  }

  private mutating func prune(_ slot: String, _ heads: [VersionID]) throws {
    let outdated = try outdated(in: slot)
    guard !outdated.isEmpty || heads.count > 1 else { return }
    let needed = try Resolution.needed(by: heads, in: transaction)
    // A version that isn't a head is covered, and the cloud wants only the record of a covered version.
    let dropped = try outdated.filter { !needed.contains($0) }.compactMap(transaction.version)
    try keepWhole(needed)
    try prune(dropped)
    if !dropped.isEmpty { try dropRecords(of: slot) }
  }

  /// Returns the versions that neither the rules nor a pin keeps.
  private func outdated(in slot: String) throws -> [VersionID] {
    let rules = transaction.context.history
    guard rules != .everything else { return [] }
    let sql = """
      SELECT position, saved_at, pinned, tombstone FROM version WHERE slot = ? AND thinned = 0 ORDER BY position DESC
      """
    let versions = try transaction.database.all(sql, slot) { columns in
      (
        position: try columns.integer(0, "position"), savedAt: try columns.integer(1, "saved_at"),
        isPinned: try columns.flag(2, "pinned"), isDelete: try columns.flag(3, "tombstone")
      )
    }
    guard versions.count > rules.newest else { return [] }
    var kept = rules.kept(versions.map(\.savedAt))
    for delete in versions.indices.filter({ versions[$0].isDelete }).prefix(Self.deletesKept) {
      kept[delete] = true
      if let deleted = versions[delete...].firstIndex(where: { !$0.isDelete }) { kept[deleted] = true }
    }
    return try zip(versions, kept).filter { !$1 && !$0.isPinned }.flatMap { version, _ in
      try transaction.identifiers("SELECT id FROM version WHERE position = ?", [version.position])
    }
  }

  /// Restores versions that were pruned and are needed again: the ancestor of an old save that a device sent late.
  private mutating func keepWhole(_ ids: Set<VersionID>) throws {
    for id in ids.sorted() where try transaction.isPruned(id) == true {
      guard let version = try transaction.version(id),
        try version.record.contents.allSatisfy(transaction.hasContent)
      else { continue }
      try transaction.putVersion(version, pruned: false, pinned: false)
    }
  }

  /// Keeps the merge bases of all conflicts whole. A conflict may have lacked its merge base until a save in another
  /// slot came with the same content, which must not be removed with that save. Costs a walk to the ancestors of those
  /// slots in conflict that changed since the last time, and a pass over all heads the first time (`CommitMemory`).
  private mutating func keepConflicts() throws {
    guard !conflictsAreKept else { return }
    conflictsAreKept = true
    let commits = transaction.context.commits
    let slots = try commits.conflicts {
      let sql = "SELECT slot FROM head GROUP BY slot HAVING COUNT(*) > 1"
      return try String.fetchAll(transaction.statement(sql)).map { Data($0.utf8) }
    }
    for slot in slots.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      let pruned = try commits.prunedMergeBases(of: slot) {
        try prunedMergeBases(of: String(decoding: slot, as: UTF8.self))
      }
      try keepWhole(pruned)
    }
  }

  private func prunedMergeBases(of slot: String) throws -> Set<VersionID> {
    try Resolution.needed(by: transaction.heads(of: slot), in: transaction).filter {
      try transaction.isPruned($0) == true
    }
  }

  private func dropRecords(of slot: String) throws {
    transaction.context.commits.forgetMergeBases(of: Data(slot.utf8))
    try transaction.run(
      """
      DELETE FROM version WHERE slot = ?1 AND thinned = 1 AND (acknowledged OR NOT offered) AND id NOT IN (SELECT id
      FROM head WHERE slot = ?1)
        AND position < (
        SELECT position FROM version WHERE slot = ?1 AND thinned = 1 ORDER BY position DESC
        LIMIT 1 OFFSET \(Self.recordsKept - 1))
      """, [slot])
  }

  private mutating func prune(_ versions: [StoredVersion]) throws {
    guard !versions.isEmpty else { return }
    var candidates: [ContentHash] = []
    for var version in versions {
      version.record.metadata.thumbnail = nil
      try transaction.putVersion(version, pruned: true, pinned: false)
      try release(version.record)
      candidates += version.record.contents
    }
    // Unsent versions that were never offered are unknown elsewhere and will not be sent. Others may come back, and
    // stay in the outbox.
    let unsent = versions.filter { !$0.acknowledged && !$0.offered }
    if !unsent.isEmpty { try forget(Set(unsent.map(\.record.id))) }
    try keepConflicts()
    try collect(candidates)
    try ContentCompaction(transaction: transaction).shorten(candidates, collecting: collect)
  }

  /// Removes groups that consist only of these versions from the outbox, so that years offline don't fill it.
  private mutating func forget(_ ids: Set<VersionID>) throws {
    let groups = try transaction.context.commits.groups(onlyOf: ids) { try transaction.outbox(limit: .max) }
    for id in groups {
      guard let group = try transaction.outboxGroup(id), group.isOnly(of: ids) else { continue }
      try transaction.removeFromOutbox(id)
    }
  }

  /// Deletes those of the contents that no version and no delta needs, then their bases likewise.
  private func collect(_ candidates: [ContentHash]) throws {
    var waiting = candidates
    // This ends: each iteration either drops a candidate or deletes a content, which has at most one base.
    while let hash = waiting.popLast() {
      let needed = try Int.fetchOne(
        transaction.statement(
          """
          SELECT 1 WHERE EXISTS (SELECT 1 FROM content_use WHERE hash = ?1)
            OR EXISTS (SELECT 1 FROM content WHERE base = ?1) OR EXISTS (SELECT 1 FROM awaited WHERE hash = ?1)
          """), arguments: [hash.bytes])
      guard needed == nil, !transaction.contents.memory.isHeld(hash),
        let entry = try transaction.contents.entry(hash)
      else { continue }
      try transaction.run("DELETE FROM content WHERE hash = ?", [hash.bytes])
      // No delta can be made against it any more, so whether the cloud has it no longer matters.
      try transaction.run("DELETE FROM cloud_content WHERE hash = ?", [hash.bytes])
      if let base = entry.base { waiting.append(base) }
    }
  }
}
