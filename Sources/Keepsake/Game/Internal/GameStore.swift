import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The store as the parts of a game's data use it: once it is closed, every call throws `GameDataError.Code.closed`.
struct GameStore: Sendable {
  /// For adoption and sync, which close it, or end with it.
  let base: Store

  var url: URL { base.url }
  var writer: WriterID { base.writer }
  var isClosed: Bool { base.isClosed }

  func read<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value { try whileOpen { try base.read(body) } }

  func write<Value>(_ body: (inout StoreTransaction) throws -> Value) throws -> Value {
    try whileOpen { try base.write(body) }
  }

  func submit(
    _ commit: GameCommit, finished: @escaping @Sendable (Result<GameCommit.Outcome, any Error>) -> Void,
    within limit: Duration?
  ) throws -> PendingCommit<GameCommit.Outcome> {
    try whileOpen { try base.submit(commit, finished: finished, within: limit) }
  }

  func submit(
    _ move: SlotMove, finished: @escaping @Sendable (Result<SaveLineage, any Error>) -> Void
  ) throws -> PendingCommit<SaveLineage> {
    try whileOpen { try base.submit(move, finished: finished) }
  }

  func submit<Value: Sendable>(
    _ saves: [SaveBytes] = [], finished: @escaping @Sendable (Result<Value, any Error>) -> Void = { _ in },
    within limit: Duration? = nil,
    _ body: @escaping @Sendable (inout StoreTransaction, [PreparedSave]) throws -> Value
  ) throws -> PendingCommit<Value> {
    try whileOpen { try base.submit(saves, finished: finished, within: limit, body) }
  }

  func reseal() throws {
    guard !base.isClosed else { throw GameDataError.closed }
    try whileOpen { try base.reseal() }
  }

  func changeCount() throws -> UInt64? { try whileOpen { try base.changeCount() } }

  /// Runs `body`, and translates the error of a closed store.
  func whileOpen<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as StoreError where error.code == .misuse && base.isClosed {
      throw GameDataError.closed
    }
  }
}
