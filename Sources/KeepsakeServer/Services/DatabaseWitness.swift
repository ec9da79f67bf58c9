#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging
import Synchronization
// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

/// A file beside the database that has its generation, too, so that a start finds out whether an older copy of the
/// database was put back.
///
///     witness     the generation, as a decimal number on one line
///
/// The generation grows in the database first: after a crash, the database is ahead of the file, which means nothing.
final class DatabaseWitness: Sendable {
  /// What the file says.
  enum Reading: Equatable {
    case missing
    case generation(UInt64)
    /// The file isn't what a server wrote.
    case damaged
  }

  /// While the server commits, the generation grows this often: two waits for the disk.
  static let stepMilliseconds: Int64 = 60_000

  private struct State {
    var steppedMilliseconds: Int64?
    /// Whether something may have been committed since the last step.
    var hasCommits = false
  }
  private let file: URL
  private let clock: @Sendable () -> Int64
  private let logger: Logger
  private let state = Mutex(State())
  /// The generation that the file has; held while it is written.
  private let written = Mutex<UInt64>(0)

  init(at file: URL, clock: @escaping @Sendable () -> Int64, logger: Logger) {
    self.file = file
    self.clock = clock
    self.logger = logger
  }

  func read() throws -> Reading {
    guard let bytes = try PrivateFile.read(file) else { return .missing }
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.hasSuffix("\n"), let generation = UInt64(text.dropLast()), generation <= Cursor.maximumSeq else {
      return .damaged
    }
    return .generation(generation)
  }

  /// Writes the generation of the database, which must be on the disk. Never writes an earlier one.
  func write(_ generation: UInt64) throws {
    state.withLock { $0 = State(steppedMilliseconds: clock()) }
    try written.withLock { written in
      guard generation > written else { return }
      try PrivateFile.write(Data("\(generation)\n".utf8), to: file)
      written = generation
    }
  }

  // MARK: Commits

  /// Raises the generation within a transaction that commits something, if that is due.
  ///
  /// - Returns: The generation to write once the transaction is on the disk; nil if it is the same as before.
  func step(in db: Database) throws -> UInt64? {
    let now = clock()
    let isDue = state.withLock { state in
      state.hasCommits = true
      // Also if the clock was set back.
      return state.steppedMilliseconds.map { now < $0 || now &- $0 >= Self.stepMilliseconds } ?? true
    }
    return isDue ? try raise(in: db) : nil
  }

  /// The same for the last transaction before the database is closed, unless nothing was committed since.
  func lastStep(in db: Database) throws -> UInt64? {
    state.withLock { $0.hasCommits } ? try raise(in: db) : nil
  }

  private func raise(in db: Database) throws -> UInt64 {
    let next = min(try CloudNumber.generation.value(in: db) + 1, Cursor.maximumSeq)
    try CloudNumber.generation.set(next, in: db)
    return next
  }

  /// Writes the generation that a transaction has raised, once it is on the disk.
  ///
  /// If the file can't be written, the operator is told: until it can be, an older copy of the database may not be
  /// noticed.
  func committed(_ generation: UInt64) {
    do {
      try write(generation)
    } catch {
      logger.failure("The witness of the database can't be written", error)
    }
  }
}
#endif
