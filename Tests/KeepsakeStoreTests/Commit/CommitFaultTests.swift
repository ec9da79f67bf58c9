import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

extension HistoryRules {
  /// Each save prunes the one before it.
  static let newestOnly = HistoryRules(newest: 1, hourly: 0, daily: 0, weekly: 0)
}

extension Store {
  /// Checks the store after commits that failed: it is as if only the saves `numbers` had been made, in this order,
  /// each of which replaces the one before it.
  func expectOnly(_ numbers: [UInt64], _ location: Testing.SourceLocation = #_sourceLocation) throws {
    let folder = try TemporaryFolder()
    let other = try Store.open(at: folder.store, history: database.context.history, writer: writer)
    defer { try? other.close() }
    for number in numbers { _ = try other.submit(GameCommit(number)).wait() }
    #expect(try portrait() == other.portrait(), sourceLocation: location)
  }

  /// The slot's heads and history, and what waits for the cloud.
  private func portrait() throws -> [String] {
    memory.forgetPlain()
    return try read { transaction throws in
      let view = try Resolution.view(of: "main", in: transaction)
      var lines = ["heads \(try transaction.heads(of: "main"))\(view.isConflict ? ", in conflict" : "")"]
      for record in try transaction.history(of: "main").map(\.record) {
        let text = String(decoding: try transaction.plainBytes(of: record), as: UTF8.self)
        lines.append("\(record.id) replaces \(record.covers): \(text)")
      }
      return lines + (try transaction.outbox(limit: .max).map { "waiting \($0.versions)" })
    }
  }
}

/// Nothing remains of a commit that failed, neither in the store nor in what the store remembers.
@Suite struct CommitFaultTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Makes the change of a row fail that `steps` counts down to zero at. SQLite then refuses that statement alone.
  private func refuse(in store: Store, at steps: Shared<Int>) throws {
    try store.write { transaction throws in
      let database = transaction.database
      database.add(
        function: DatabaseFunction("refused_step", argumentCount: 0) { _ in
          steps.value -= 1
          if steps.value == 0 { throw DatabaseError(resultCode: .SQLITE_CONSTRAINT, message: "refused") }
          return nil
        })
      for table in ["version", "covered", "head", "content", "content_use", "outbox", "fact", "performed"] {
        for event in ["INSERT", "UPDATE", "DELETE"] {
          try database.execute(
            sql: """
              CREATE TEMP TRIGGER refusing_\(table)_\(event) BEFORE \(event) ON main.\(table)
              BEGIN SELECT refused_step(); END
              """)
        }
      }
    }
  }

  @Test(
    "a commit that fails at any of its steps leaves nothing behind, and the next one replaces the last durable save")
  func everyStep() throws {
    let store = try Store.open(at: folder.store, history: .newestOnly, writer: WriterID(1))
    defer { try? store.close() }
    let steps = Shared(0)
    try refuse(in: store, at: steps)
    _ = try store.submit(GameCommit(1)).wait()
    var durable: [UInt64] = [1]
    var failures = 0
    for step in 1...500 {
      // Both share a transaction, and at most one of them fails.
      let gate = Gate()
      let blocker = try store.submit { _, _ in gate.pass() }
      gate.waitForArrival()
      let numbers = [UInt64(2 * step), UInt64(2 * step + 1)]
      let pending = try numbers.map { try store.submit(GameCommit($0)) }
      steps.value = step
      gate.open()
      try blocker.wait()
      let before = failures
      for (number, commit) in zip(numbers, pending) {
        do {
          let saved = try commit.wait().versions[0].record
          #expect(saved.covers == durable.suffix(1).map(id), "save \(number), at step \(step)")
          durable.append(number)
        } catch is StoreError {
          failures += 1
        }
      }
      steps.value = 0
      #expect(failures <= before + 1, "step \(step)")
      #expect(try store.read { try $0.heads(of: "main") } == durable.suffix(1).map(id), "step \(step)")
      if failures == before { break }
    }
    #expect(failures > 10)
    try store.expectOnly(durable)
  }
}
