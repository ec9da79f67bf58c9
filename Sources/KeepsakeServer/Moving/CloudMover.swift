#if Cloud && PostgreSQL
import Foundation
import GRDB
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import Synchronization

/// Copies a cloud from the SQLite database of a data folder into PostgreSQL, beside the server that runs on it.
///
/// What has changed since it was copied is in the folder's database (`ChangeCapture`), so that this may end at any
/// moment and be begun again. Each player is copied in one transaction, read back and compared.
final class CloudMover: Sendable {
  private static let attempts = 60
  private static let workers = 8
  private static let page = 400
  /// As many as are copied at once after the fence was built, however slow that is.
  private static let few = 64

  let source: DatabasePool
  private let files: ContentFiles
  private let target: MovedContentTarget
  private var pool: PostgreSQLPool { target.pool }
  private let receiver: CloudMoveProgress.Receiver
  private let state = Mutex((summary: CloudMoveSummary(), progress: CloudMoveProgress(step: .listing)))

  init(
    from source: DatabasePool, _ files: ContentFiles, to target: MovedContentTarget,
    receiver: @escaping CloudMoveProgress.Receiver
  ) {
    (self.source, self.files, self.target, self.receiver) = (source, files, target, receiver)
  }

  var summary: CloudMoveSummary { state.withLock(\.summary) }

  private func report(_ change: (inout CloudMoveProgress) -> Void) {
    receiver(
      state.withLock { state in
        change(&state.progress)
        return state.progress
      })
  }

  // MARK: While players play

  /// Copies everything, until so little changes meanwhile that the rest is a matter of a moment.
  func copyAll() async throws {
    try await listAll()
    var (before, passes) = (Int.max, 0)
    while true {
      let waiting = try await source.read { try ChangeCapture.waiting(in: $0) }
      let rate = state.withLock { $0.progress.rate }
      let isLittle = waiting <= max(Self.few, Int(rate))
      if passes > 0, isLittle || (passes > 2 && waiting > before / 4 * 3) {
        state.withLock { $0.summary.waiting = waiting }
        return
      }
      try await copyCloud()
      try await copyWaiting(.copying, waiting)
      (before, passes) = (waiting, passes + 1)
    }
  }

  /// Lists what isn't listed, so that it is copied.
  private func listAll() async throws {
    if try await source.read({ try ChangeCapture.state(in: $0)?.isListed }) == true { return }
    // It may be another one, after the folder's database was set back to a backup.
    _ = try await pool.runUntilDone([PostgreSQLStatement("DELETE FROM audit")])
    while try ChangeCapture.listMore(in: source) {
      let count = try await source.read { try ChangeCapture.waiting(in: $0) }
      report { $0 = CloudMoveProgress(step: .listing, done: count) }
      try Task.checkCancellation()
    }
  }

  /// Copies what is waiting now, and what comes behind it meanwhile.
  private func copyWaiting(_ step: CloudMoveProgress.Step, _ waiting: Int) async throws {
    let start = ContinuousClock.now
    report { $0 = CloudMoveProgress(step: step, total: waiting) }
    var last: ChangeCapture.Entry?
    while true {
      let entries = try await source.read { [last] in try ChangeCapture.entries(after: last, limit: Self.page, in: $0) }
      guard let end = entries.last else { return }
      last = end
      let copied = try await copy(entries, since: start)
      try await source.write { try ChangeCapture.remove(copied, in: $0) }
    }
  }

  private func copy(
    _ entries: [ChangeCapture.Entry], since start: ContinuousClock.Instant
  ) async throws -> [(entry: ChangeCapture.Entry, count: Int64)] {
    try await withThrowingTaskGroup(of: (entry: ChangeCapture.Entry, count: Int64)?.self) { group in
      var (rest, copied) = (entries[...], [(entry: ChangeCapture.Entry, count: Int64)]())
      func addNext() {
        guard let entry = rest.popFirst() else { return }
        group.addTask { try await self.copy(entry).map { (entry, $0) } }
      }
      for _ in 0..<Self.workers { addNext() }
      while let one = try await group.next() {
        if let one { copied.append(one) }
        report { progress in
          progress.done += 1
          let seconds = (ContinuousClock.now - start).components
          progress.seconds = Double(seconds.seconds) + Double(seconds.attoseconds) / 1e18
        }
        try Task.checkCancellation()
        addNext()
      }
      return copied
    }
  }

  // MARK: One player

  /// Copies an entry's rows, reads them back and compares.
  ///
  /// - Returns: The count at which it was copied; nil if there is nothing to copy any more.
  private func copy(_ entry: ChangeCapture.Entry) async throws -> Int64? {
    var differences = 0
    for attempt in 0..<Self.attempts {
      do {
        let arrived = try await putContents(of: entry)
        guard let (count, digest) = try await copy(entry, arrived) else { return nil }
        let found = try await pool.changing { transaction in
          var reader = PostgreSQLMovedRows(transaction)
          try reader.prefetch(entry.id, entry.kind.tables)
          return try MovedDigest.of(entry.id, entry.kind.tables, in: reader)
        }
        if found == digest {
          state.withLock { state in
            state.summary.copied += 1
            state.summary.rows += digest.rows
            state.summary.bytes += digest.bytes
            state.summary.contents += arrived.count
            state.summary.contentBytes += arrived.bytes
            state.progress.bytes += digest.bytes + arrived.bytes
          }
          return count
        }
        // A code that another player has got meanwhile, or what nobody can explain.
        differences += 1
        guard differences < 5 else { throw Self.difference(entry) }
      } catch is MovedContents.Unknown {
        // It was changed after its large contents were looked for.
        continue
      } catch let error as PostgreSQLError {
        if error.state == .uniqueViolation {
          try await displace(entry)
        } else if error.isConflict {
          try await PostgreSQLPool.pause(after: attempt)
        } else {
          guard error.isPassing else { throw error }
          try await Task.sleep(for: .milliseconds(500))
        }
      }
    }
    throw ServerError(.overloaded, "The database doesn't take a player's rows.")
  }

  private static func difference(_ entry: ChangeCapture.Entry) -> ServerError {
    let id = entry.id.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    return ServerError(
      .damaged, "What was read back isn't what was written, of \(id).")
  }

  private func copy(
    _ entry: ChangeCapture.Entry, _ arrived: MovedContents.Arrived
  ) async throws -> (count: Int64, digest: MovedDigest)? {
    let (source, place) = (source, target.places.first.name)
    return try await pool.transaction { transaction in
      try source.read { db in
        guard let count = try ChangeCapture.count(of: entry, in: db) else { return nil }
        let reader = SQLiteMovedRows(db, lost: arrived.lost, arrived: arrived.names)
        var writer = PostgreSQLMovedRows(transaction, place: place)
        return (count, try MovedDigest.copying(entry.id, entry.kind.tables, from: reader, to: &writer))
      }
    }
  }

  private func putContents(of entry: ChangeCapture.Entry) async throws -> MovedContents.Arrived {
    guard entry.kind == .container else { return MovedContents.Arrived() }
    let named = try await source.read { db in
      try Row.fetchAll(
        db,
        sql: """
          SELECT file, size FROM content
          WHERE container = (SELECT number FROM container WHERE id = ?) AND file IS NOT NULL
          """, arguments: [entry.id]
      ).map { row in
        MovedContentTarget.NamedFile(name: try row.decode(atIndex: 0), size: try row.decode(atIndex: 1))
      }
    }
    return try await target.putAll(named, of: entry.id, in: files)
  }

  /// Removes rows whose keys the entry's rows have, and has those who had them copied again: an earlier copy of them
  /// has what the entry has got since.
  private func displace(_ entry: ChangeCapture.Entry) async throws {
    for table in entry.kind.tables where !table.unique.isEmpty {
      let rows = try await source.read { db in
        var rows: [MovedRow] = []
        try SQLiteMovedRows(db).rows(of: table, entry.id) { rows.append($0) }
        return rows
      }
      let indexes = table.unique.compactMap { name in table.columns.firstIndex { $0.name == name } }
      let same = table.unique.enumerated().map { "\($1) = $\($0 + 2)" }.joined(separator: " AND ")
      for row in rows {
        let values = [.bytes(entry.id)] + indexes.map { row[$0].postgreSQLValue }
        let found = try await pool.runUntilDone([
          PostgreSQLStatement(
            "SELECT \(table.owner) FROM \(table.name) WHERE \(table.owner) <> $1 AND \(same)", values)
        ])[0]
        let others = try found.map { try $0.bytes(0) }
        guard !others.isEmpty else { continue }
        // Before anything of them is removed.
        try await source.write { try ChangeCapture.note(others, in: $0) }
        _ = try await pool.runUntilDone([
          PostgreSQLStatement("DELETE FROM \(table.name) WHERE \(table.owner) <> $1 AND \(same)", values)
        ])
      }
    }
  }

  // MARK: The whole cloud's

  /// Copies the tables that are of no player, and compares them.
  private func copyCloud() async throws {
    let (keys, numbers) = try await source.read { db in
      (try Self.rows(of: .adminKeys, in: SQLiteMovedRows(db)), try Self.numbers(in: SQLiteMovedRows(db)))
    }
    let written = try await pool.changing { transaction in
      var writer = PostgreSQLMovedRows(transaction)
      try transaction.run("DELETE FROM admin_key")
      for key in keys { try writer.add(key, to: .adminKeys, Data()) }
      try writer.flush()
      for number in MovedTable.movedNumbers {
        try transaction.run("DELETE FROM number WHERE name = $1", [.bytes(Data(number.rawValue.utf8))])
      }
      for number in numbers { try writer.add(number, to: .numbers, Data()) }
      try writer.flush()
      return try Self.rows(of: .adminKeys, in: writer) == keys && Self.numbers(in: writer) == numbers
    }
    guard written else {
      throw ServerError(.damaged, "What was read back of the whole cloud's rows isn't what was written.")
    }
    while try await copyAudit() {}
  }

  private static func rows(of table: MovedTable, in reader: some MovedReader) throws -> [MovedRow] {
    var rows: [MovedRow] = []
    try reader.rows(of: table, Data()) { rows.append($0) }
    return rows
  }

  private static func numbers(in reader: some MovedReader) throws -> [MovedRow] {
    let names = Set(MovedTable.movedNumbers.map { MovedValue.bytes(Data($0.rawValue.utf8)) })
    return try rows(of: .numbers, in: reader).filter { names.contains($0[0]) }
  }

  /// Copies some of the audit log, whose rows never change.
  ///
  /// - Returns: Whether there are more.
  private func copyAudit() async throws -> Bool {
    let newest = PostgreSQLStatement("SELECT max(number) FROM audit")
    let last = try await pool.runUntilDone([newest])[0].first?.optionalInt(0) ?? .min
    let rows = try await source.read { db in
      let columns = SQLiteMovedRows.columns(of: .audit)
      return try Row.fetchAll(
        db, sql: "SELECT \(columns) FROM audit WHERE number > ? ORDER BY number LIMIT 500", arguments: [last]
      ).map { try SQLiteMovedRows.values(of: $0) }
    }
    guard !rows.isEmpty else { return false }
    let isSame: Bool
    do {
      isSame = try await append(rows, after: last)
    } catch let error as PostgreSQLError {
      guard error.isPassing else { throw error }
      // It is looked again which rows are there.
      try await Task.sleep(for: .milliseconds(500))
      return true
    }
    guard isSame else { throw ServerError(.damaged, "What was read back of the audit log isn't what was written.") }
    return true
  }

  private func append(_ rows: [MovedRow], after last: Int64) async throws -> Bool {
    try await pool.transaction { transaction in
      var writer = PostgreSQLMovedRows(transaction)
      for row in rows { try writer.add(row, to: .audit, Data()) }
      try writer.flush()
      let columns = MovedTable.audit.columns.map(\.name).joined(separator: ", ")
      let found = try transaction.run("SELECT \(columns) FROM audit WHERE number > $1 ORDER BY number", [.int(last)])
      return try found.map { try PostgreSQLMovedRows.values(of: $0, .audit) } == rows
    }
  }

  // MARK: The last step

  /// Copies what is left after the fence was built, and compares how much there is. If the database has forgotten what
  /// it had, as after a failover, or if it was set back, everything is copied once more.
  func copyRest() async throws {
    try await copyListed()
    if try await difference() == nil { return }
    try await source.write { try ChangeCapture.forgetCopied(in: $0) }
    try await copyListed()
    guard let difference = try await difference() else { return }
    throw ServerError(
      .damaged,
      "The databases don't have \(difference). Play is stopped: run the command again, or use --abandon.")
  }

  private func copyListed() async throws {
    try await listAll()
    for _ in 0..<Self.attempts {
      let waiting = try await source.read { try ChangeCapture.waiting(in: $0) }
      if waiting == 0 { break }
      try await copyWaiting(.finishing, waiting)
    }
    try await copyCloud()
    let waiting = try await source.read { try ChangeCapture.waiting(in: $0) }
    guard waiting == 0 else {
      throw ServerError(.overloaded, "Some players can't be copied.")
    }
  }

  /// Returns what both databases don't have the same of; nil if there is no such thing.
  private func difference() async throws -> String? {
    let there = try MovedTotals(try await pool.runUntilDone(MovedTotals.statements()))
    return try await source.read { try MovedTotals(in: $0) }.difference(from: there)
  }
}
#endif
