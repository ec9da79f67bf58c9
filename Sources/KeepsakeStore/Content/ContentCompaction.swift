import Foundation
import GRDB
import KeepsakeReplication

/// Lets go of contents that nothing but other contents needs.
///
/// Of a past that was thinned the contents stay as long as newer ones lean on them. When there are enough of them in a row, the one above is
/// encoded anew, against what is still needed below, and the row can go. So a store grows with the versions that it keeps, not with those
/// that it has seen, at the cost of one more compression in sixteen saves.
struct ContentCompaction {
  /// So many in a row may wait to be let go.
  static let longestRow = 16

  let transaction: StoreTransaction

  /// Looks at what lies below each of `hashes`, contents that no version needs any more.
  ///
  /// `collecting` deletes contents that are needed no more, and their bases likewise.
  func shorten(_ hashes: [ContentHash], collecting: ([ContentHash]) throws -> Void) throws {
    for hash in hashes {
      guard try isOnlyBase(hash), let dependent = try onlyDependent(of: hash) else { continue }
      let below = try transaction.contents.chain(from: hash)
      // Where nothing below is needed, the full frame is the base: it may serve for long before another one has to be written.
      let end = try below.firstIndex { try !isOnlyBase($0.hash) || onlyDependent(of: $0.hash) == nil } ?? below.count - 1
      guard end >= Self.longestRow else { continue }
      try encodeAnew(dependent, against: below[end].hash)
      try collecting([hash])
    }
  }

  private func encodeAnew(_ hash: ContentHash, against base: ContentHash) throws {
    let contents = transaction.contents
    do {
      let plain = try contents.plain(hash)
      let limit = DecodingCost.limit(plain: plain.count, of: plain.count)
      var base = try contents.base(from: base, for: plain.count, limit: limit)
      base?.isNearest = false
      try contents.insert(.encoding(plain, as: hash, against: base))
    } catch let error as StoreError where error.code == .damaged {
      // What can't be read stays as it is, for whoever may still repair it.
      return
    }
  }

  private func isOnlyBase(_ hash: ContentHash) throws -> Bool {
    guard !transaction.contents.memory.isHeld(hash), try transaction.contents.has(hash) else { return false }
    let statement = try transaction.statement("SELECT 1 FROM content_use WHERE hash = ?")
    return try Int.fetchOne(statement, arguments: [hash.bytes]) == nil
  }

  /// A base of several earns its place.
  private func onlyDependent(of hash: ContentHash) throws -> ContentHash? {
    let statement = try transaction.statement("SELECT hash FROM content WHERE base = ? LIMIT 2")
    let dependents = try Data.fetchAll(statement, arguments: [hash.bytes])
    return dependents.count == 1 ? ContentHash(bytes: dependents[0]) : nil
  }
}
