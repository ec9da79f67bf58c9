import Dispatch
package import Foundation
import GRDB
package import KeepsakeReplication
import Synchronization

/// Bytes that a commit brings with it.
package struct SubmittedContent: Sendable {
  package var slot: String
  package var bytes: Data

  package init(slot: String, bytes: Data) {
    self.slot = slot
    self.bytes = bytes
  }
}

/// A content that is in the store as far as the transaction goes.
package struct KeptContent: Hashable, Sendable {
  package var hash: ContentHash
  package var length: Int
}

/// Takes commits at once and makes them durable in order, off the caller's thread: contents are hashed and compressed first,
/// then everything that waits goes into one transaction, one savepoint each.
///
/// At most `maximumWaiting` commits and `maximumWaitingBytes` bytes wait; a further one blocks its caller until there is
/// room, so that a disk slower than the game can't fill the memory.
final class CommitQueue: Sendable {
  static let maximumWaiting = 64
  /// One content of the greatest size fits, so that no commit waits for ever.
  static let maximumWaitingBytes = EncodedContent.maximumContentBytes

  /// One commit on its way.
  struct Job: Sendable {
    var contents: [SubmittedContent]
    /// Runs within the transaction.
    var apply: @Sendable (inout StoreTransaction, [KeptContent]) throws -> Void
    /// Runs on the queue, when the transaction is durable or has failed.
    var finish: @Sendable ((any Error)?) -> Void

    var byteCount: Int { contents.reduce(0) { $0 + $1.bytes.count } }
  }

  private struct Waiting {
    var jobs: [Job] = []
    var bytes = 0
    var running = false
    var closed = false
  }

  private let pool: StoreDatabase
  private let cache: PlainCache
  private let queue = DispatchQueue(label: "keepsake.store.commit", qos: .userInitiated)
  private let waiting = Mutex(Waiting())
  /// Signalled when room was made. NSCondition, because the lock's state above is looked at again after each signal.
  private let room = NSCondition()
  /// The content saved last in each slot, the base of the next. Used on the queue only.
  private let newest = Mutex<[String: ContentHash]>([:])

  init(pool: StoreDatabase, cache: PlainCache) {
    self.pool = pool
    self.cache = cache
  }

  /// Takes a job, in order. Blocks while too much waits.
  func submit(_ job: Job) throws {
    let bytes = job.byteCount
    guard bytes <= Self.maximumWaitingBytes else {
      throw StoreError(.tooLarge, "a save of \(bytes) bytes is larger than \(Self.maximumWaitingBytes) bytes")
    }
    room.lock()
    defer { room.unlock() }
    while true {
      let (taken, starts) = try waiting.withLock { waiting -> (Bool, Bool) in
        guard !waiting.closed else { throw StoreError(.misuse, "the store is closed") }
        guard
          waiting.jobs.isEmpty
            || waiting.jobs.count < Self.maximumWaiting && waiting.bytes + bytes <= Self.maximumWaitingBytes
        else { return (false, false) }
        waiting.jobs.append(job)
        waiting.bytes += bytes
        let starts = !waiting.running
        waiting.running = true
        return (true, starts)
      }
      if starts { queue.async { self.run() } }
      if taken { return }
      room.wait()
    }
  }

  /// Takes no more jobs; those that wait are still done.
  func close() {
    room.lock()
    waiting.withLock { $0.closed = true }
    room.broadcast()
    room.unlock()
  }

  private func run() {
    while let batch = nextBatch() { commit(batch) }
  }

  private func nextBatch() -> [Job]? {
    room.lock()
    defer { room.unlock() }
    let batch = waiting.withLock { waiting -> [Job] in
      let batch = waiting.jobs
      waiting.jobs = []
      waiting.bytes = 0
      if batch.isEmpty { waiting.running = false }
      return batch
    }
    room.broadcast()
    return batch.isEmpty ? nil : batch
  }

  private func commit(_ batch: [Job]) {
    var failures: [Int: any Error] = [:]
    var prepared: [Int: [PreparedContent]] = [:]
    var saved: [String: ContentHash] = [:]
    for (index, job) in batch.enumerated() {
      do {
        prepared[index] = try job.contents.map { content in
          let result = try prepare(content, after: saved[content.slot])
          saved[content.slot] = result.hash
          return result
        }
      } catch {
        failures[index] = error
      }
    }
    do {
      try StoreError.translating("saving") {
        try pool.write { database in
          for (index, job) in batch.enumerated() {
            guard let contents = prepared[index] else { continue }
            if let failure = try apply(job, contents, in: database) { failures[index] = failure }
          }
        }
      }
      newest.withLock { newest in newest.merge(saved) { _, last in last } }
    } catch {
      for index in batch.indices where failures[index] == nil { failures[index] = error }
    }
    // Backwards where it failed, so that what a commit undoes stands as it found it.
    for index in batch.indices.reversed() { if let failure = failures[index] { batch[index].finish(failure) } }
    for index in batch.indices where failures[index] == nil { batch[index].finish(nil) }
  }

  /// One job in a savepoint of its own: what is wrong with it must not take the others along. Throws what ends them all.
  private func apply(_ job: Job, _ contents: [PreparedContent], in database: Database) throws -> (any Error)? {
    do {
      try database.inSavepoint {
        var transaction = StoreTransaction(database, cache: cache)
        for content in contents { try transaction.contents.keep(content) }
        try job.apply(
          &transaction, contents.map { KeptContent(hash: $0.hash, length: $0.plain.count) })
        try History.thin(transaction)
        return .commit
      }
      return nil
    } catch let error as DatabaseError where error.endsTransaction {
      throw error
    } catch let error as DatabaseError {
      return StoreError(error, doing: "saving")
    } catch {
      return error
    }
  }

  /// Hashes and compresses, against the content before it in its slot where that can be read.
  private func prepare(_ content: SubmittedContent, after previous: ContentHash?) throws -> PreparedContent {
    let hash = ContentHash(of: content.bytes)
    let (known, base) = try StoreError.translating("reading the save before") {
      try pool.read { database -> (Bool, (hash: ContentHash, plain: Data)?) in
        // A world that hasn't changed since costs no compression.
        if try ContentTable(database: database, cache: cache).has(hash) { return (true, nil) }
        return (false, try self.base(for: content.slot, after: previous, in: database))
      }
    }
    if known { return PreparedContent(hash: hash, plain: content.bytes, encoded: nil) }
    let encoded = try EncodedContent.encoding(content.bytes, as: hash, against: base)
    cache.insert(content.bytes, as: hash)
    return PreparedContent(hash: hash, plain: content.bytes, encoded: encoded)
  }

  private func base(
    for slot: String, after previous: ContentHash?, in database: Database
  ) throws -> (hash: ContentHash, plain: Data)? {
    let transaction = StoreTransaction(database, cache: cache)
    if let previous {
      // Of the same batch: not in the database yet, and its depth is looked at when it is kept.
      return cache.bytes(of: previous).map { (previous, $0) }
    }
    if let last = newest.withLock({ $0[slot] }), let base = try transaction.contents.usableBase(last) { return base }
    for head in try transaction.heads(of: slot) {
      let hash = try transaction.version(head)?.record.contents.first
      if let hash, let base = try transaction.contents.usableBase(hash) { return base }
    }
    return nil
  }
}

extension DatabaseError {
  /// SQLite may have rolled the whole transaction back by itself, so nothing more can be done in it.
  fileprivate var endsTransaction: Bool {
    switch resultCode {
    case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_NOMEM, .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_BUSY, .SQLITE_INTERRUPT,
      .SQLITE_ABORT, .SQLITE_MISUSE, .SQLITE_READONLY:
      true
    default: false
    }
  }
}
