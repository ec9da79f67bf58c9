#if Cloud
import Dispatch
import Foundation
import GRDB
import Synchronization

/// What SQLite does at most: the bytes of saves put into one table, with nothing around them.
///
/// The same database as the server's: a write-ahead log, a wait for the disk at each commit, one writer that takes
/// everything that waits into one commit.
package enum BareUpsert {
  package struct Result: Sendable {
    /// How long each upsert took, until it was durable.
    package var milliseconds: [Double]
    package var seconds: Double
  }

  private final class Job: Sendable {
    let writer: Int
    let bytes: Data
    let done = DispatchSemaphore(value: 0)

    init(_ writer: Int, _ bytes: Data) { (self.writer, self.bytes) = (writer, bytes) }
  }

  private static let slots = 8

  /// Measures with as many writers as there are devices, each of which waits for its upsert before the next one.
  ///
  /// - Parameters:
  ///   - sizes: The numbers of bytes, one of which is chosen at random.
  ///   - seconds: How long to measure.
  /// - Throws: A `DatabaseError` if a temporary database can't be written.
  package static func measure(writers: Int, sizes: [Int], seconds: Double) throws -> Result {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("keepsake-upsert-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // A folder left behind in the temporary files does no harm.
    defer { try? FileManager.default.removeItem(at: folder) }
    let pool = try DatabasePool(path: folder.appendingPathComponent("upsert.sqlite").path)
    try pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA synchronous = FULL")
      try db.execute(
        sql: "CREATE TABLE save (device INTEGER, slot INTEGER, bytes BLOB, PRIMARY KEY (device, slot)) WITHOUT ROWID")
    }
    let queue = Mutex<[Job]>([])
    let waiting = DispatchSemaphore(value: 0)
    let isEnded = Atomic(false)
    let isDone = Atomic(false)
    let times = Mutex<[Double]>([])
    let ended = DispatchGroup()
    let began = ContinuousClock.now
    for writer in 0..<writers {
      ended.enter()
      let thread = Thread {
        var own: [Double] = []
        // What the bytes are doesn't matter to SQLite.
        let bodies = sizes.map { Data(repeating: UInt8.random(in: .min ... .max), count: $0) }
        while !isEnded.load(ordering: .relaxed), let bytes = bodies.randomElement() {
          let began = ContinuousClock.now
          let job = Job(writer, bytes)
          queue.withLock { $0.append(job) }
          waiting.signal()
          job.done.wait()
          own.append((ContinuousClock.now - began) / .milliseconds(1))
        }
        times.withLock { $0 += own }
        ended.leave()
      }
      thread.stackSize = 512 << 10
      thread.start()
    }
    let failure = Mutex<(any Error)?>(nil)
    let committing = Thread {
      while !isDone.load(ordering: .acquiring) {
        waiting.wait()
        let jobs = queue.withLock { queue in
          let jobs = Array(queue.prefix(ServerLimits.transactionsPerCommit))
          queue.removeFirst(jobs.count)
          return jobs
        }
        guard !jobs.isEmpty else { continue }
        do {
          try pool.write { db in try upsert(jobs, in: db) }
        } catch {
          failure.withLock { $0 = $0 ?? error }
        }
        for job in jobs { job.done.signal() }
      }
    }
    committing.start()
    Thread.sleep(forTimeInterval: seconds)
    isEnded.store(true, ordering: .relaxed)
    ended.wait()
    isDone.store(true, ordering: .releasing)
    waiting.signal()
    let passed = (ContinuousClock.now - began) / .seconds(1)
    try pool.close()
    if let error = failure.withLock({ $0 }) { throw error }
    return Result(milliseconds: times.withLock { $0 }, seconds: passed)
  }

  private static func upsert(_ jobs: [Job], in db: Database) throws {
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO save (device, slot, bytes) VALUES (?, ?, ?)
        ON CONFLICT (device, slot) DO UPDATE SET bytes = excluded.bytes
        """)
    for job in jobs {
      try statement.execute(arguments: [job.writer, Int.random(in: 0..<slots), job.bytes])
    }
  }
}
#endif
