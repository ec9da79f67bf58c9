#if PostgreSQL
import CPostgreSQL
import Dispatch
import Foundation

/// A connection to a database, used by one thread at a time.
///
/// Transactions are sent many at a time, without waiting for one's answer before the next is sent (pipeline mode of
/// libpq): each is what stands between two syncs, which a server commits as a whole, or undoes at the first error.
/// Statements are prepared once for a connection, and values travel in binary form.
package final class PostgreSQLConnection {
  private let connection: OpaquePointer
  private let settings: PostgreSQLSettings
  /// The names of prepared statements, by their texts and the types of their values.
  private var prepared: [Preparation: String] = [:]
  private var nextName = 0
  /// Nil for a server that isn't PostgreSQL itself.
  private var joiner: PostgreSQLJoiner?
  /// Whether it can't be used any more.
  package private(set) var isBroken = false

  private struct Preparation: Hashable {
    var sql: String
    var types: [UInt32]

    init(_ statement: PostgreSQLStatement) {
      (sql, types) = (statement.sql, statement.values.map(\.type))
    }
  }

  /// Connects to the first server that is reached and takes changes. Blocks, for `connectSeconds` for each at most.
  package init(_ settings: PostgreSQLSettings) throws(PostgreSQLError) {
    self.settings = settings
    // Before libpq says what is wrong with it, in which a part of the password may be.
    guard settings.isAddressValid else { throw .invalidAddress }
    guard let connection = Self.withWords(settings, { PQconnectdbParams($0, $1, 1) }) else {
      throw .unreachable("libpq is out of memory")
    }
    self.connection = connection
    guard PQstatus(connection) == CONNECTION_OK else {
      let message = Self.message(of: connection)
      PQfinish(connection)
      isClosed = true
      throw .unreachable(message)
    }
    // What a server has to say besides isn't for the terminal.
    PQsetNoticeProcessor(connection, { _, _ in }, nil)
    guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else {
      isBroken = true
      throw .unreachable(Self.message(of: connection))
    }
    try greet()
  }

  /// Whether a server answers at an address and takes connections, if not this one. Blocks, as connecting does.
  package static func isAnswering(_ settings: PostgreSQLSettings) -> Bool {
    withWords(settings) { PQpingParams($0, $1, 1) == PQPING_OK }
  }

  /// Whether a server answers at an address and doesn't let this program in, as for a wrong password or database. One
  /// that only takes no changes now does let it in. Blocks.
  package static func isRefusing(_ settings: PostgreSQLSettings) -> Bool {
    var settings = settings
    settings.mayOnlyRead = true
    return isAnswering(settings) && (try? PostgreSQLConnection(settings)) == nil
  }

  private static func withWords<Result>(
    _ settings: PostgreSQLSettings,
    _ body: (_ names: [UnsafePointer<CChar>?], _ values: [UnsafePointer<CChar>?]) -> Result
  ) -> Result {
    let words = settings.words
    let names = words.map { strdup($0.name) }
    let values = words.map { strdup($0.value) }
    defer { for text in names + values { free(text) } }
    let pointers = { (texts: [UnsafeMutablePointer<CChar>?]) in texts.map { UnsafePointer($0) } + [nil] }
    return body(pointers(names), pointers(values))
  }

  static let greeting = PostgreSQLStatement("SELECT current_setting('default_transaction_isolation'), version()")

  /// Learns what the server is. Refuses a pooler that has dropped the options of the session: two transactions that
  /// change the same row would both succeed, and none would have a limit.
  private func greet() throws(PostgreSQLError) {
    let row = try ask(Self.greeting).first
    let level = try row?.bytes(0) ?? Data()
    let version = String(decoding: try row?.bytes(1) ?? Data(), as: UTF8.self)
    guard [Data("repeatable read".utf8), Data("serializable".utf8)].contains(level) else {
      isBroken = true
      throw .unexpected(
        """
        its sessions don't have the options that this program asks for; connect to the database itself, or to a pooler \
        that keeps a session for each of its clients
        """)
    }
    guard settings.standIn?.isPostgreSQL ?? Self.isPostgreSQL(version) else { return }
    joiner = PostgreSQLJoiner()
    _ = try ask(Self.tuning)
  }

  /// Runs a statement that changes nothing in the database.
  private func ask(_ statement: PostgreSQLStatement) throws(PostgreSQLError) -> PostgreSQLRows {
    do throws(PostgreSQLError) {
      return try run([statement])[0]
    } catch {
      guard case .unknownOutcome(let message) = error else { throw error }
      throw .unreachable(message)
    }
  }

  /// Has a statement planned once, and not for each value: all look rows up by their keys, and planning one that was
  /// joined takes as long as running it. An older server that lacks a setting goes on without. What is committed is on
  /// the disk when that is said, also if the role or the database is set to say it earlier.
  private static let tuning = PostgreSQLStatement(
    """
    SELECT set_config(
      name, CASE name WHEN 'jit' THEN 'off' WHEN 'synchronous_commit' THEN 'on' ELSE 'force_generic_plan' END, false)
    FROM pg_settings
    WHERE name IN ('jit', 'plan_cache_mode') OR (name = 'synchronous_commit' AND setting = 'off')
    """)

  /// Whether a server is PostgreSQL, and not another database that speaks its protocol, by what it says.
  static func isPostgreSQL(_ version: String) -> Bool {
    // YugabyteDB calls itself PostgreSQL 15.2-YB-2025.1.
    version.hasPrefix("PostgreSQL ") && !version.contains("-YB-")
  }

  private var isClosed = false

  deinit { if !isClosed { PQfinish(connection) } }

  /// The file that becomes readable when the server says something.
  package var file: Int32 { PQsocket(connection) }

  /// Reads what has come, and returns what notices among it say.
  func takeNotices() throws(PostgreSQLError) -> [String] {
    guard !isBroken, PQconsumeInput(connection) == 1 else {
      isBroken = true
      throw .unreachable(Self.message(of: connection))
    }
    var texts: [String] = []
    while let notice = PQnotifies(connection) {
      texts.append(String(cString: notice.pointee.extra))
      PQfreemem(notice)
    }
    return texts
  }

  // MARK: Transactions

  package typealias Outcome = Result<[PostgreSQLRows], PostgreSQLError>

  /// Runs transactions, in one round trip. Each is committed as a whole or not at all, whatever becomes of the others.
  ///
  /// - Parameter finish: Called for each, in their order, as soon as it is known: with what its statements returned, or
  ///   with why nothing of it was done.
  package func run(_ transactions: [[PostgreSQLStatement]], finish: (Int, Outcome) -> Void) {
    var pipeline = Pipeline(start: .now)
    do {
      guard !isBroken else { throw Broken(description: "the connection is broken") }
      let joined = transactions.map(joined)
      try send(joined.map { $0.map(\.statement) }, &pipeline)
      try receive(&pipeline) { index, outcome in
        finish(
          index,
          outcome.flatMap { answers in
            Outcome { () throws(PostgreSQLError) in try PostgreSQLJoiner.split(answers, of: joined[index]) }
          })
      }
    } catch {
      isBroken = true
      let lost: PostgreSQLError = pipeline.isSent ? .unknownOutcome("\(error)") : .unreachable("\(error)")
      for index in pipeline.finished..<transactions.count { finish(index, .failure(lost)) }
    }
  }

  /// Returns what is sent in place of a transaction.
  private func joined(_ statements: [PostgreSQLStatement]) -> [PostgreSQLJoiner.Joined] {
    let statements = settings.standIn?.altered(statements) ?? statements
    return joiner?.join(statements) ?? statements.map { PostgreSQLJoiner.Joined(statement: $0.alone) }
  }

  /// Does the same, and returns all of them.
  package func run(_ transactions: [[PostgreSQLStatement]]) -> [Outcome] {
    var outcomes: [Outcome] = []
    run(transactions) { outcomes.append($1) }
    return outcomes
  }

  /// Runs one transaction.
  package func run(_ statements: [PostgreSQLStatement]) throws(PostgreSQLError) -> [PostgreSQLRows] {
    try run([statements])[0].get()
  }

  /// Whether no transaction is open, so that the next one begins anew.
  var isIdle: Bool { !isBroken && PQtransactionStatus(connection) == PQTRANS_IDLE }

  /// From when on another connection is tried in place of this one, since its server takes no changes any more.
  private var replacement: ContinuousClock.Instant?

  /// Whether a server that takes changes should be looked for.
  var shouldBeReplaced: Bool { replacement.map { $0 <= .now } ?? false }

  /// Goes on with this one for five seconds, since there is no such server.
  func keepForNow() { replacement = .now + .seconds(5) }

  /// Whether something has come that answers nothing. It is most likely that the server has ended the connection.
  var hasUnexpected: Bool {
    var polled = pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0)
    return poll(&polled, 1, 0) != 0
  }

  /// What was sent, and what has come back.
  private struct Pipeline {
    enum Expected {
      case preparation(Preparation)
      case statement(Preparation)
      case sync
    }
    let start: ContinuousClock.Instant
    /// For each transaction, what its answers are; those of preparations come first, as one of their own.
    var expected: [[Expected]] = []
    /// How many transactions are finished.
    var finished = 0
    /// Why statements can't be prepared.
    var refused: [Preparation: PostgreSQLError] = [:]
    /// Whether anything that changes something was handed to libpq.
    var isSent = false
  }
  private struct Broken: Error, CustomStringConvertible {
    var description: String
  }

  private func send(_ transactions: [[PostgreSQLStatement]], _ pipeline: inout Pipeline) throws {
    var preparations: [Pipeline.Expected] = []
    // Apart from the transactions: one that fails must not take the preparation of another one's statement with it.
    for statement in transactions.joined() {
      let preparation = Preparation(statement)
      guard prepared[preparation] == nil else { continue }
      let name = "s\(nextName)"
      nextName += 1
      prepared[preparation] = name
      try check(
        PQsendPrepare(connection, name, statement.sql, Int32(preparation.types.count), preparation.types) == 1)
      // Each by itself, so that one that can't be prepared leaves the others.
      try check(PQpipelineSync(connection) == 1)
      preparations += [.preparation(preparation), .sync]
    }
    pipeline.expected = [preparations]
    for statements in transactions {
      for statement in statements {
        guard let name = prepared[Preparation(statement)] else {
          throw Broken(description: "a statement isn't prepared")
        }
        try send(statement, as: name)
      }
      try check(PQpipelineSync(connection) == 1)
      pipeline.expected.append(statements.map { .statement(Preparation($0)) } + [.sync])
      pipeline.isSent = true
    }
  }

  private func send(_ statement: PostgreSQLStatement, as name: String) throws {
    let values = statement.values.map(\.bytes)
    let formats = [Int32](repeating: 1, count: values.count)
    let lengths = values.map { Int32($0?.count ?? 0) }
    // One buffer for all, since pointers into each of them can't be held at the same time.
    let joined = values.reduce(into: Data()) { $0.append($1 ?? Data()) } + Data([0])
    let sent = joined.withUnsafeBytes { buffer in
      var offset = 0
      let pointers = values.map { value -> UnsafePointer<CChar>? in
        guard let value else { return nil }
        defer { offset += value.count }
        return buffer.baseAddress?.advanced(by: offset).assumingMemoryBound(to: CChar.self)
      }
      return PQsendQueryPrepared(connection, name, Int32(values.count), pointers, lengths, formats, 1)
    }
    try check(sent == 1)
  }

  private func receive(_ pipeline: inout Pipeline, _ finish: (Int, Outcome) -> Void) throws {
    for (index, expected) in pipeline.expected.enumerated() {
      var rows: [PostgreSQLRows] = []
      var failure: PostgreSQLError?
      for answer in expected {
        var result = try next()
        defer { PQclear(result) }
        var status = PQresultStatus(result)
        switch answer {
        case .sync:
          // What fails when the transaction is committed comes before.
          while status == PGRES_FATAL_ERROR {
            failure = failure ?? Self.failure(of: result)
            PQclear(result)
            result = nil
            result = try next(mayEnd: true)
            if result == nil { result = try next() }
            status = PQresultStatus(result)
          }
          guard status == PGRES_PIPELINE_SYNC else { throw unexpected(status) }
          continue  // Nothing more comes of it.
        case .preparation(let preparation):
          guard status != PGRES_COMMAND_OK else { break }
          prepared[preparation] = nil
          pipeline.refused[preparation] = Self.failure(of: result)
        case .statement(let preparation):
          switch status {
          case PGRES_TUPLES_OK, PGRES_COMMAND_OK: rows.append(Self.rows(of: result))
          case PGRES_FATAL_ERROR: failure = failure ?? pipeline.refused[preparation] ?? Self.failure(of: result)
          case PGRES_PIPELINE_ABORTED: break
          default: throw unexpected(status)
          }
        }
        // Each statement's results end with nothing.
        guard try next(mayEnd: true) == nil else { throw Broken(description: "two results of one") }
      }
      guard index > 0 else { continue }
      // A statement whose table is another one now, or that a pooler has forgotten, has to be prepared anew.
      if let state = failure?.state, state == .featureNotSupported || state == .unknownStatement { isBroken = true }
      if failure?.state == .readOnlyTransaction, replacement == nil { replacement = .now }
      if failure?.state == .queryCanceled, ContinuousClock.now - pipeline.start < .seconds(canceledByLocks) {
        failure = .refused(.lockNotAvailable, message: "a statement was canceled before its time")
      }
      pipeline.finished = index
      finish(index - 1, failure.map { .failure($0) } ?? .success(rows))
    }
  }

  /// Within so many seconds no statement is canceled by the limit of statements. A server that gives up waiting for a
  /// lock in the very moment in which it gets it cancels what comes next, and says that somebody has asked for that.
  private var canceledByLocks: Int { min(settings.statementSeconds, 60) }

  private func unexpected(_ status: ExecStatusType) -> Broken {
    Broken(description: "\(String(cString: PQresStatus(status))) \(Self.message(of: connection))")
  }

  /// Returns the next result, sending and receiving meanwhile. Each has its own time: a server that answers isn't lost,
  /// however much was sent.
  ///
  /// - Parameter mayEnd: Whether the end of a statement's results is expected.
  private func next(mayEnd: Bool = false) throws -> OpaquePointer? {
    let deadline = DispatchTime.now().uptimeNanoseconds + UInt64(settings.answerSeconds) * 1_000_000_000
    while PQisBusy(connection) == 1 || PQflush(connection) == 1 {
      let left = Int64(deadline) - Int64(DispatchTime.now().uptimeNanoseconds)
      guard left > 0 else { throw Broken(description: "no answer within \(settings.answerSeconds) s") }
      let flushed = PQflush(connection)
      try check(flushed >= 0)
      var polled = pollfd(
        fd: PQsocket(connection), events: Int16(POLLIN) | (flushed == 1 ? Int16(POLLOUT) : 0), revents: 0)
      // Answers may be here already, which nothing wakes for.
      guard PQisBusy(connection) == 1 || flushed == 1 else { break }
      let number = poll(&polled, 1, Int32(clamping: left / 1_000_000 + 1))
      if number < 0, errno == EINTR { continue }
      try check(number >= 0)
      if polled.revents != 0 { try check(PQconsumeInput(connection) == 1) }
    }
    guard let result = PQgetResult(connection) else {
      if mayEnd { return nil }
      throw Broken(description: "an answer is missing: \(Self.message(of: connection))")
    }
    return result
  }

  private func check(_ isDone: Bool) throws {
    if !isDone { throw Broken(description: Self.message(of: connection)) }
  }

  // MARK: Results

  private static func rows(of result: OpaquePointer?) -> PostgreSQLRows {
    var rows = PostgreSQLRows()
    let columns = PQnfields(result)
    for row in 0..<PQntuples(result) {
      rows.rows.append(
        (0..<columns).map { column in
          if PQgetisnull(result, row, column) == 1 { return nil }
          return PQgetvalue(result, row, column).map { Data(bytes: $0, count: Int(PQgetlength(result, row, column))) }
        })
    }
    rows.command = PQcmdStatus(result).map { String(cString: $0) } ?? ""
    rows.count = PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
    return rows
  }

  private static func failure(of result: OpaquePointer?) -> PostgreSQLError {
    let state = PQresultErrorField(result, Int32(UInt8(ascii: "C"))).map { String(cString: $0) }
    let message = PQresultErrorField(result, Int32(UInt8(ascii: "M"))).map { String(cString: $0) }
    // Without a state it is libpq's own: the connection broke.
    guard let state else { return .unknownOutcome(PQresultErrorMessage(result).map { String(cString: $0) } ?? "") }
    return .refused(.init(state), message: message ?? "")
  }

  private static func message(of connection: OpaquePointer) -> String {
    let text = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
    return text.trimmingCharacters(in: .whitespacesAndNewlines).replacingOccurrences(of: "\n", with: " ")
  }
}
#endif
