#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import ServiceLifecycle
import Synchronization

/// Learns what other servers do with the same database: how far containers have come to which streams listen here, and
/// what is of the whole cloud. Sweeps what has expired.
///
/// Others are heard within milliseconds. As long as none can be, as in a database that has no LISTEN, and with each
/// heartbeat anyway, it looks itself how far the containers have come.
final class PostgreSQLWatch: Service {
  private static let sweepInterval = Duration.seconds(60)
  /// Of looks at what is of the whole cloud, and at the containers as long as no server can be heard.
  static let lookInterval = Duration.milliseconds(500)
  private static let positionsAtOnce = 1_000

  /// Where servers hear each other.
  private let storage: PostgreSQLStorage
  /// All databases in which players are.
  private let storages: [PostgreSQLStorage]
  /// Called after each look at what is of the whole cloud in the first one.
  private let refreshed: @Sendable () async throws -> Void
  /// Called as often as the databases are swept.
  private let swept: @Sendable () async throws -> Void
  private let events: EventHub
  private let heartbeatSeconds: Int
  private let notices = PostgreSQLNotices()
  private struct State {
    var isListening = false
    /// In which databases something may have been missed.
    var mustLook: Set<Int>
    /// Whether the database has no notices.
    var isMute = false
  }
  private let state: Mutex<State>

  convenience init(_ storage: PostgreSQLStorage, _ events: EventHub, heartbeatSeconds: Int) {
    self.init([storage], events, heartbeatSeconds: heartbeatSeconds)
  }

  /// - Parameters:
  ///   - storages: The first one is where servers hear each other.
  ///   - refreshed: Called after each look at what is of the whole cloud in the first one.
  ///   - swept: Called as often as the databases are swept.
  init(
    _ storages: [PostgreSQLStorage], _ events: EventHub, heartbeatSeconds: Int,
    refreshed: @escaping @Sendable () async throws -> Void = {},
    swept: @escaping @Sendable () async throws -> Void = {}
  ) {
    let storage = storages[0]
    (self.storage, self.storages, self.events) = (storage, storages, events)
    (self.refreshed, self.swept) = (refreshed, swept)
    self.heartbeatSeconds = heartbeatSeconds
    state = Mutex(State(mustLook: Set(storages.indices)))
    events.relay { [notices, weak self] relayed in
      guard let self, !state.withLock(\.isMute) else { return }
      notices.add(relayed) { texts in
        let statements = texts.map {
          PostgreSQLStatement("SELECT pg_notify($1, $2)::text", [.text(PostgreSQLNotices.channel), .text($0)])
        }
        do {
          _ = try await storage.run(statements)
        } catch {
          if (error as? PostgreSQLError)?.isMissing == true { return self.fallSilent(error) }
          storage.logger.failure("Other servers can't be told of changes", error)
        }
      }
    }
  }

  func run() async throws {
    let listener = PostgreSQLListener(storage.pool.settings, channel: PostgreSQLNotices.channel) { event in
      switch event {
      case .heard(let text): for relayed in self.notices.read(text) { self.events.receive(relayed) }
      case .listening: self.state.withLock { $0.isListening = true }
      case .missing(let error): self.fallSilent(error)
      case .lost(let error):
        let wasListening = self.state.withLock { state in
          defer { (state.isListening, state.mustLook) = (false, Set(self.storages.indices)) }
          return state.isListening
        }
        if wasListening {
          self.storage.logger.failure("Other servers can't be heard; their changes are looked for", error)
        }
      }
    }
    await cancelWhenGracefulShutdown {
      await self.repeatAll()
    }
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        listener.close()
        continuation.resume()
      }
    }
  }

  /// Looks and sweeps until it is cancelled, in each database by itself: one that is down, or doesn't answer, must keep
  /// nobody from knowing what is in the others.
  private func repeatAll() async {
    await withTaskGroup(of: Void.self) { group in
      for (index, storage) in storages.enumerated() {
        let logger = storage.logger
        group.addTask {
          await self.repeating(every: Self.lookInterval, "What other servers changed can't be looked for", logger) {
            do {
              try await self.look($0, at: index)
            } catch {
              storage.isAnswering.store(false, ordering: .relaxed)
              throw error
            }
          }
        }
        group.addTask {
          await self.repeating(every: Self.sweepInterval, "What has expired can't be swept", logger) { _ in
            if !self.isOutdated(storage) { try await storage.sweep(now: storage.clock()) }
          }
        }
      }
      group.addTask {
        await self.repeating(every: Self.sweepInterval, "What is unfinished can't be mended", self.storage.logger) {
          _ in
          if !self.isOutdated(self.storage) { try await self.swept() }
        }
      }
    }
  }

  /// Goes on without notices.
  private func fallSilent(_ error: any Error) {
    let isFirst = state.withLock { state in
      defer { state.isMute = true }
      return !state.isMute
    }
    if isFirst {
      storage.logger.notice(
        "This database has no LISTEN: what other servers change is looked for", metadata: ["reason": "\(error)"])
    }
  }

  /// - Parameter body: Takes how many times it was called before.
  private func repeating(
    every interval: Duration, _ failure: Logger.Message, _ logger: Logger,
    _ body: @Sendable (_ number: Int) async throws -> Void
  ) async {
    var number = 0
    while !Task.isCancelled {
      do { try await Task.sleep(for: interval) } catch { return }
      defer { number += 1 }
      do {
        try await body(number)
      } catch {
        logger.failure(failure, error)
      }
    }
  }

  /// Whether newer servers, or those that know more shards, have changed a database so that this one can't use it.
  private func isOutdated(_ one: PostgreSQLStorage) -> Bool { storage.isOutdated || one.isOutdated }

  /// Looks into one of the databases.
  ///
  /// - Parameters:
  ///   - number: How many looks there were before.
  ///   - index: Of the database.
  func look(_ number: Int, at index: Int = 0) async throws {
    let storage = storages[index]
    let perSecond = Int(Duration.seconds(1) / Self.lookInterval)
    // Also if this look fails: the next one makes up for it.
    if number % (heartbeatSeconds * perSecond) == 0 { state.withLock { _ = $0.mustLook.insert(index) } }
    if number % perSecond == 0 {
      try await storage.refresh()
      storage.isAnswering.store(true, ordering: .relaxed)
    }
    if isOutdated(storage) { return }
    if index == 0, number % perSecond == 0 { try await refreshed() }
    let mustLook = state.withLock { state in
      let mustLook = state.mustLook.remove(index) != nil
      if !state.isListening || state.isMute { state.mustLook.insert(index) }
      return mustLook
    }
    guard mustLook else { return }
    do {
      try await lookAtPositions(in: storage)
    } catch {
      state.withLock { _ = $0.mustLook.insert(index) }
      throw error
    }
  }

  /// How far containers have come to which streams listen here, and which of these have to end.
  private func lookAtPositions(in storage: PostgreSQLStorage) async throws {
    let listened = events.listened
    for start in stride(from: 0, to: listened.count, by: Self.positionsAtOnce) {
      let page = listened[start..<min(start + Self.positionsAtOnce, listened.count)]
      let devices = page.flatMap { one in one.devices.map { (container: one.container, device: $0) } }
      let marks = Dictionary(page.map { ($0.container.deletedMark, $0.container) }) { $1 }
      let answers = try await storage.read([
        PostgreSQLStatement("SELECT id, seq FROM container WHERE id = ANY($1)", [.list(page.map(\.container.bytes))]),
        PostgreSQLStatement(
          """
          SELECT container, device FROM retired
          WHERE (container, device) IN (SELECT * FROM unnest($1::bytea[], $2::bytea[]))
          """, [.list(devices.map(\.container.bytes)), .list(devices.map(\.device.bytes))]),
        PostgreSQLStatement(
          "SELECT container FROM retired WHERE device = '' AND container = ANY($1)", [.list(Array(marks.keys))]),
      ])
      for row in answers[1] { events.receive(.ended(try row.identifier(0), try row.identifier(1))) }
      for row in answers[2] {
        if let container = marks[try row.bytes(0)] { events.receive(.ended(container, nil)) }
      }
      for row in answers[0] { events.receive(.moved(try row.identifier(0), try row.unsigned(1))) }
    }
  }
}

extension PostgreSQLStorage {
  func watching(_ events: EventHub, heartbeatSeconds: Int) -> (any Service)? {
    PostgreSQLWatch(self, events, heartbeatSeconds: heartbeatSeconds)
  }

  func probe() async throws {
    try requireCurrent()
    let row = try await run([PostgreSQLStatement("SELECT current_setting('transaction_read_only')")])[0].first
    guard try row?.text(0) != "on" else {
      throw PostgreSQLError.refused(.readOnlyTransaction, message: "The database takes no changes.")
    }
  }

  func observeCommits(_ body: @escaping CommitObserver) { observer.withLock { $0 = body } }

  var waitingCommits: Int { pool.waitingCount }
}
#endif
