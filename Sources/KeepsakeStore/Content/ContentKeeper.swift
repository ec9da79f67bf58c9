import Foundation
import GRDB
package import KeepsakeReplication
import Synchronization

/// The slow half of storing saves: cuts, hashes and compresses them before their transaction, off the game's thread.
///
/// A large save is written ahead of its commit, some MiB at a time, so that neither memory nor a transaction ever holds
/// all of it twice. What was written ahead is held until its commit succeeds or fails; what a crash leaves behind is
/// swept when the store is opened.
final class ContentKeeper: Sendable {
  /// How much is compressed at a time, and how much of a save written ahead goes into one transaction.
  private static let aheadBytes = 8 << 20

  /// Saves that go into one transaction. Later ones may have earlier ones as their base, which are not in the database
  /// yet.
  struct Batch {
    fileprivate var newest: [String: [ContentAlignment.Part]] = [:]
    fileprivate var pending: [ContentHash: PreparedContent] = [:]
    /// The read within which saves are prepared; nil if each begins its own.
    fileprivate var read: Database?
  }

  /// The saves of one commit, as far as they could be prepared, and why the next one couldn't.
  struct Prepared {
    var saves: [PreparedSave] = []
    var failure: (any Error)?
  }

  private let database: StoreDatabase
  private var memory: ContentMemory { database.memory }
  /// The contents of the last save stored in each slot, which the next save probably resembles.
  private let newest = Mutex<[String: [ContentAlignment.Part]]>([:])

  init(database: StoreDatabase) { self.database = database }

  /// Prepares the saves of several commits, in order. A save that can't be prepared fails its own commit. All contents
  /// are held until `release`.
  func prepare(_ commits: [[SaveBytes]], in batch: inout Batch) -> [Prepared] {
    var prepared = commits.map { _ in Prepared() }
    var next = 0
    while next < commits.count {
      // To begin a read takes longer than what a small save reads. Large ones are written in between.
      let small = commits[next...].prefix { saves in saves.allSatisfy { $0.bytes.count <= Segmenter.wholeBytes } }
      guard !small.isEmpty else {
        prepare(commits[next], in: &batch, &prepared[next])
        next += 1
        continue
      }
      defer { next = small.endIndex }
      guard !small.allSatisfy(\.isEmpty) else { continue }
      do {
        try reading(within: nil) { database in
          batch.read = database
          defer { batch.read = nil }
          for index in small.indices { prepare(commits[index], in: &batch, &prepared[index]) }
        }
      } catch {
        for index in small.indices where prepared[index].failure == nil { prepared[index].failure = error }
      }
    }
    return prepared
  }

  private func prepare(_ saves: [SaveBytes], in batch: inout Batch, _ prepared: inout Prepared) {
    do {
      for save in saves { prepared.saves.append(try prepare(save.bytes, of: save.slot, in: &batch)) }
    } catch {
      prepared.failure = error
    }
  }

  /// Prepares a save. All its contents are held until `release`.
  private func prepare(_ bytes: Data, of slot: String, in batch: inout Batch) throws -> PreparedSave {
    if bytes.count <= Segmenter.wholeBytes { return try prepareWhole(bytes, of: slot, in: &batch) }
    let previous = try reading(within: batch.read) { try previousParts(of: slot, in: batch, $0) }
    let (segments, parts) = Self.segments(of: bytes, after: previous)
    return try preparing(parts, of: slot, in: &batch) { save, batch in
      let bases = ContentAlignment(of: parts, in: previous).bases
      var seen: Set<ContentHash> = []
      for (index, segment) in segments.enumerated() where seen.insert(parts[index].hash).inserted {
        let hash = parts[index].hash
        let found = try reading(within: batch.read) {
          try find(hash, from: bases[index], for: segment.count, of: bytes.count, in: batch, $0)
        }
        try prepare(segment, as: hash, found, of: bytes.count, in: &batch, &save)
        if segments.count > 1 { try writeAhead(&save, atLeast: Self.aheadBytes, in: &batch) }
      }
      if segments.count > 1 { try writeAhead(&save, atLeast: 0, in: &batch) }
    }
  }

  /// Prepares a save that isn't cut, whatever the previous one is: everything about it is found out in one read.
  private func prepareWhole(_ bytes: Data, of slot: String, in batch: inout Batch) throws -> PreparedSave {
    let part = Self.part(bytes)
    return try preparing([part], of: slot, in: &batch) { save, batch in
      let found = try reading(within: batch.read) { database in
        let base = ContentAlignment(of: [part], in: try previousParts(of: slot, in: batch, database)).bases[0]
        return try find(part.hash, from: base, for: bytes.count, of: bytes.count, in: batch, database)
      }
      try prepare(bytes, as: part.hash, found, of: bytes.count, in: &batch, &save)
    }
  }

  /// Holds the contents of a save while `body` prepares them, and remembers them as the newest of the slot.
  private func preparing(
    _ parts: [ContentAlignment.Part], of slot: String, in batch: inout Batch,
    _ body: (inout PreparedSave, inout Batch) throws -> Void
  ) throws -> PreparedSave {
    let hashes = parts.map(\.hash)
    memory.hold(hashes)
    var prepared = PreparedSave(hashes: hashes, length: parts.reduce(0) { $0 + $1.length })
    do {
      try body(&prepared, &batch)
    } catch {
      release(prepared)
      failed([prepared])
      throw error
    }
    batch.newest[slot] = parts
    return prepared
  }

  private func reading<Value>(within read: Database?, _ body: (Database) throws -> Value) throws -> Value {
    try StoreError.translating("reading the previous save") {
      if let read { try body(read) } else { try database.read(body) }
    }
  }

  private static func part(_ bytes: Data) -> ContentAlignment.Part {
    ContentAlignment.Part(hash: ContentHash(of: bytes), length: bytes.count)
  }

  /// Cuts where the bytes say so, or where the previous save was cut: if the bytes that determined a cut changed, what
  /// lies between two cuts would resemble nothing that is stored.
  private static func segments(of bytes: Data, after previous: [ContentAlignment.Part]) -> (
    [Data], [ContentAlignment.Part]
  ) {
    var segments = Segmenter.segments(of: bytes, wasCut: previous.isEmpty ? nil : previous.count > 1)
    var parts = segments.map(part)
    guard segments.count > 1, previous.count > 1 else { return (segments, parts) }
    let recuts = ContentAlignment(of: parts, in: previous).recuts(
      minimum: Segmenter.minimum, maximum: Segmenter.maximum)
    for recut in recuts.reversed() {
      let known = Dictionary(zip(segments[recut.range].map(\.startIndex), parts[recut.range])) { first, _ in first }
      var start = segments[recut.range.lowerBound].startIndex
      let pieces = recut.lengths.map { length in
        defer { start += length }
        return bytes[start..<start + length]
      }
      parts.replaceSubrange(
        recut.range,
        with: pieces.map { piece in
          if let part = known[piece.startIndex], part.length == piece.count { part } else { part(piece) }
        })
      segments.replaceSubrange(recut.range, with: pieces)
    }
    return (segments, parts)
  }

  /// Releases what a save holds, once its commit has succeeded or failed.
  func release(_ save: PreparedSave) {
    memory.release(save.hashes)
    memory.release(save.bases)
  }

  /// Removes what was written ahead of commits that failed. If the disk refuses even that, the next opening sweeps it.
  func failed(_ saves: [PreparedSave]) {
    // What the rolled-back transaction had written isn't there.
    database.memory.forgetProven()
    let ahead = saves.filter { $0.hashes.count > 1 }.flatMap(\.hashes)
    guard !ahead.isEmpty else { return }
    _ = try? database.write { try History.collect(ahead, in: StoreTransaction($0, in: database.context)) }
  }

  /// Remembers the saves of a batch that is durable.
  func committed(_ batch: Batch) {
    newest.withLock { newest in newest.merge(batch.newest) { _, last in last } }
  }

  /// What the database knows about a content that is to be stored.
  private enum Found {
    /// It is there already.
    case known
    /// It isn't, and may be encoded against a base.
    case new(ContentBase?)
  }

  private func find(
    _ hash: ContentHash, from previous: ContentHash?, for length: Int, of whole: Int, in batch: Batch,
    _ database: Database
  ) throws -> Found {
    let table = ContentTable(database: database, context: self.database.context)
    // What hasn't changed costs no compression.
    if try batch.pending[hash] != nil || table.has(hash) { return .known }
    return .new(try previous.flatMap { try table.base(from: $0, for: length, of: whole, pending: batch.pending) })
  }

  private func prepare(
    _ plain: Data, as hash: ContentHash, _ found: Found, of whole: Int, in batch: inout Batch,
    _ save: inout PreparedSave
  ) throws {
    guard case .new(let base) = found else {
      save.contents.append(PreparedContent(known: hash, plain: plain))
      return
    }
    let prepared = try PreparedContent(encoding: plain, as: hash, against: base)
    if let base = prepared.encoded?.base {
      // It must not be collected before the commit.
      memory.hold([base])
      save.bases.append(base)
    }
    batch.pending[hash] = prepared
    if whole == plain.count {
      memory.cache.insert(plain, as: hash)
    } else if whole <= PlainCache.maximumBytes / 2 {
      // A copy, because a slice would keep the whole save in memory.
      memory.cache.insert(Data(Array(plain)), as: hash)
    }
    save.contents.append(prepared)
  }

  /// Writes the prepared contents of a large save if they have at least `bytes` bytes.
  private func writeAhead(_ save: inout PreparedSave, atLeast bytes: Int, in batch: inout Batch) throws {
    guard save.contents.reduce(0, { $0 + ($1.encoded?.bytes.count ?? 0) + $1.plain.count }) >= bytes else { return }
    let contents = save.contents
    let context = database.context
    try StoreError.translating("saving") {
      try database.write { database in
        let table = ContentTable(database: database, context: context)
        for content in contents { try table.keep(content) }
      }
    }
    database.checkpointIfDue()
    for content in contents { batch.pending[content.hash] = nil }
    save.contents = []
  }

  /// Returns what the previous save consists of: the one in this batch, else the last one stored here if it is still a
  /// head, else the slot's first head.
  private func previousParts(of slot: String, in batch: Batch, _ database: Database) throws -> [ContentAlignment.Part] {
    if let parts = batch.newest[slot] { return parts }
    let last = newest.withLock { $0[slot] }
    let transaction = StoreTransaction(database, in: self.database.context)
    let heads = try transaction.heads(of: transaction.key(of: slot)).compactMap {
      try transaction.version($0)?.record
    }.filter {
      !$0.contents.isEmpty
    }
    if let last, heads.contains(where: { $0.contents == last.map(\.hash) }) { return last }
    return try heads.first.map(transaction.parts) ?? []
  }
}

/// A save whose contents are hashed and, if they are new, encoded.
package struct PreparedSave: Sendable {
  /// The contents of the save, in order: one, or the segments of a large save.
  package var hashes: [ContentHash]
  /// Total length.
  package var length: Int
  /// The contents that the commit still has to write.
  var contents: [PreparedContent] = []
  /// What is held besides the contents themselves.
  var bases: [ContentHash] = []

  package init(hashes: [ContentHash], length: Int) {
    self.hashes = hashes
    self.length = length
  }
}
