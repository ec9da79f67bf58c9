#if Cloud
import Foundation
import KeepsakeReplication
import Logging
import Synchronization

/// Whether a server can take requests, as a load balancer or a supervisor asks.
final class ServerHealth: Sendable {
  enum Problem: String, Sendable {
    /// It is stopping: requests in progress are finished, and no others should come.
    case draining
    /// The database doesn't accept a transaction, or not in time.
    case database
    /// The data folder doesn't accept a file.
    case disk
  }
  /// For this long an examination counts, so that asking often costs nothing.
  private static let validSeconds = 1
  private static let probeBytes = 4_096

  private struct State {
    var isDraining = false
    var examined: (at: ContinuousClock.Instant, problems: [Problem])?
    /// The examination in progress, shared by all who ask.
    var underWay: Task<[Problem], Never>?
    /// A transaction that was begun by an earlier examination hasn't ended yet.
    var isStuck = false
  }
  private let folder: URL
  private let patienceSeconds: Int
  private let logger: Logger
  private let transaction: @Sendable () async throws -> Void
  private let state = Mutex(State())

  /// - Parameters:
  ///   - folder: The data folder.
  ///   - patienceSeconds: How long a transaction may take.
  ///   - transaction: Makes a transaction that changes nothing.
  init(
    folder: URL, patienceSeconds: Int, logger: Logger, transaction: @escaping @Sendable () async throws -> Void
  ) {
    (self.folder, self.patienceSeconds) = (folder, patienceSeconds)
    (self.logger, self.transaction) = (logger, transaction)
  }

  /// Records that the server is stopping.
  func drain() { state.withLock { $0.isDraining = true } }

  /// Returns what keeps the server from taking requests; nothing if it is ready.
  func problems() async -> [Problem] {
    let (known, task) = state.withLock { state -> ([Problem]?, Task<[Problem], Never>?) in
      if let examined = state.examined, .now - examined.at < .seconds(Self.validSeconds) {
        return (examined.problems, nil)
      }
      if let task = state.underWay { return (nil, task) }
      let task = Task { await self.examine() }
      state.underWay = task
      return (nil, task)
    }
    let found = if let known { known } else { await task?.value ?? [] }
    return state.withLock { $0.isDraining } ? [.draining] + found : found
  }

  private func examine() async -> [Problem] {
    let before = state.withLock { $0.examined?.problems ?? [] }
    var problems: [Problem] = []
    do {
      try probeDisk()
    } catch {
      problems.append(.disk)
      // Once, and not each time that somebody asks.
      if !before.contains(.disk) { logger.failure("The data folder accepts no file: not ready", error) }
    }
    if await !answers() {
      problems.append(.database)
      if !before.contains(.database) { logger.error("The database makes no transaction in time: not ready") }
    }
    if problems.isEmpty, !before.isEmpty { logger.notice("Ready again") }
    state.withLock { state in
      state.examined = (.now, problems)
      state.underWay = nil
    }
    return problems
  }

  /// Writes and removes a file, because a number of free bytes says nothing about quotas and read-only mounts.
  private func probeDisk() throws {
    let file = folder.appendingPathComponent("probe")
    defer { try? FileManager.default.removeItem(at: file) }
    try PrivateFile.write(Data(repeating: 0, count: Self.probeBytes), to: file)
  }

  /// Whether the database makes a transaction in time. One that is stuck isn't waited for, and no other is begun.
  private func answers() async -> Bool {
    guard
      state.withLock({ state in
        defer { state.isStuck = true }
        return !state.isStuck
      })
    else { return false }
    let (results, continuation) = AsyncStream<Bool>.makeStream()
    Task {
      do {
        try await transaction()
        continuation.yield(true)
      } catch {
        logger.failure("The database accepts no transaction", error)
        continuation.yield(false)
      }
      state.withLock { $0.isStuck = false }
    }
    let limit = Task {
      try await Task.sleep(for: .seconds(patienceSeconds))
      continuation.yield(false)
    }
    defer { limit.cancel() }
    return await results.first { _ in true } ?? false
  }
}
#endif
