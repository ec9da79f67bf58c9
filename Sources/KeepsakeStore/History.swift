import Foundation
import GRDB
import KeepsakeReplication

/// Decides what is kept of a slot's past, and lets go of the rest with the contents that nobody needs any more.
///
/// Kept are the newest versions, heads, the ancestors that a merge of heads starts from, and what others may still ask this
/// store about. Ids of covered versions are kept for ever, by the table `covered`.
struct History {
  /// The newest versions of a slot that stay, whatever else holds.
  static let newestKept = 20

  var transaction: StoreTransaction

  /// Thins the slots that this transaction touched.
  static func thin(_ transaction: StoreTransaction) throws {
    var history = History(transaction: transaction)
    for slot in transaction.touchedSlots.sorted() { try history.thin(slot) }
  }

  /// Lets go of contents that no version needs, left behind by a download that was overtaken.
  static func sweep(_ transaction: StoreTransaction) throws {
    let orphans = try Data.fetchAll(
      transaction.statement(
        """
        SELECT hash FROM content
        WHERE hash NOT IN (SELECT hash FROM content_use) AND hash NOT IN (SELECT base FROM content WHERE base IS NOT NULL)
        """))
    let history = History(transaction: transaction)
    try history.collect(orphans.compactMap { ContentHash(bytes: $0) })
  }

  private mutating func thin(_ slot: String) throws {
    let count = try Int.fetchOne(
      transaction.statement("SELECT COUNT(*) FROM version WHERE slot = ?"), arguments: [slot])
    guard let count, count > Self.newestKept else { return }
    let versions = try transaction.history(of: slot)
    let heads = try Set(transaction.heads(of: slot))
    let pinned = ancestors(of: heads, among: versions)
    var dropped: [StoredVersion] = []
    for version in versions.dropFirst(Self.newestKept) {
      let id = version.record.id
      // A version that was offered but not acknowledged may be met again; one that was never offered and is covered is known
      // to nobody else and will not be sent.
      let owed = !version.acknowledged && version.offered
      if heads.contains(id) || pinned.contains(id) || owed { continue }
      dropped.append(version)
    }
    try drop(dropped)
  }

  /// What the heads cover directly, and the versions from which several heads come.
  private func ancestors(of heads: Set<VersionID>, among versions: [StoredVersion]) -> Set<VersionID> {
    var records: [VersionID: VersionRecord] = [:]
    for version in versions { records[version.record.id] = version.record }
    var pinned: Set<VersionID> = []
    // How many heads come from a version. A kept past is small (thinning runs each time), so walking it is cheap.
    var descendants: [VersionID: Int] = [:]
    for head in heads {
      let covers = records[head]?.covers ?? []
      pinned.formUnion(covers)
      guard heads.count > 1 else { continue }
      var reached = Set(covers)
      var waiting = covers
      while let next = waiting.popLast() {
        descendants[next, default: 0] += 1
        for earlier in records[next]?.covers ?? [] where reached.insert(earlier).inserted { waiting.append(earlier) }
      }
    }
    // Of those shared, the nearest: not covered by another that is shared.
    let shared = Set(descendants.filter { $0.value > 1 }.keys)
    var beneath: Set<VersionID> = []
    for id in shared { beneath.formUnion(records[id]?.covers ?? []) }
    return pinned.union(shared.subtracting(beneath))
  }

  private mutating func drop(_ versions: [StoredVersion]) throws {
    guard !versions.isEmpty else { return }
    var candidates: [ContentHash] = []
    let ids = Set(versions.map(\.record.id))
    for version in versions {
      let id = version.record.id.bytes
      try transaction.run("DELETE FROM version WHERE id = ?", [id])
      for hash in version.record.contents {
        try transaction.run("DELETE FROM content_use WHERE hash = ? AND version = ?", [hash.bytes, id])
        candidates.append(hash)
      }
    }
    if versions.contains(where: { !$0.acknowledged }) { try forget(ids) }
    try collect(candidates)
  }

  /// Takes versions that will not be sent out of the outbox: years offline must not fill it.
  private mutating func forget(_ ids: Set<VersionID>) throws {
    for var group in try transaction.outbox(limit: Int.max) where group.versions.contains(where: ids.contains) {
      group.versions.removeAll(where: ids.contains)
      if group.versions.isEmpty, group.cells.isEmpty {
        try transaction.removeFromOutbox(group.id)
      } else {
        try transaction.updateOutbox(group)
      }
    }
  }

  /// Deletes those of the contents that no version and no delta needs, and then their bases likewise.
  private func collect(_ candidates: [ContentHash]) throws {
    let awaited = try awaitedContents()
    var waiting = candidates
    // Ends: each turn either drops a candidate or deletes a content, which has one base at most.
    while let hash = waiting.popLast() {
      let needed = try Int.fetchOne(
        transaction.statement(
          """
          SELECT 1 WHERE EXISTS (SELECT 1 FROM content_use WHERE hash = ?1)
            OR EXISTS (SELECT 1 FROM content WHERE base = ?1)
          """), arguments: [hash.bytes])
      guard needed == nil, !awaited.contains(hash), let entry = try transaction.contents.entry(hash) else { continue }
      try transaction.run("DELETE FROM content WHERE hash = ?", [hash.bytes])
      // No delta can be made against it any more, so it no longer matters that the cloud has it.
      try transaction.run("DELETE FROM cloud_content WHERE hash = ?", [hash.bytes])
      if let base = entry.base { waiting.append(base) }
    }
  }

  /// Contents of versions that were received but not yet shown.
  private func awaitedContents() throws -> Set<ContentHash> {
    var hashes: Set<ContentHash> = []
    for change in try transaction.staged() {
      if case .version(let record) = change.item { hashes.formUnion(record.contents) }
    }
    return hashes
  }
}
