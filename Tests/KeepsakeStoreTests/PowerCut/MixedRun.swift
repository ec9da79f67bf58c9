import Foundation
import GRDB
import KeepsakeReplication
import Synchronization

@testable import KeepsakeStore

/// A run of mixed operations on a store: the events of the disk, how many of them there were when each operation began
/// and was acknowledged, and the store's state after each.
struct MixedRun: Sendable {
  /// Planted mistakes, which the power cuts have to find.
  enum Mistake: String, CaseIterable, Sendable {
    /// An operation counts as acknowledged when it was submitted.
    case acknowledgesEarly
    /// SQLite never waits for the disk.
    case synchronousOff
    /// SQLite waits at checkpoints only.
    case synchronousNormal

    fileprivate var pragma: String? {
      switch self {
      case .acknowledgesEarly: nil
      case .synchronousOff: "PRAGMA synchronous = OFF"
      case .synchronousNormal: "PRAGMA synchronous = NORMAL"
      }
    }
  }

  var recording: DiskRecording
  /// How many events there were when an operation began. The first operation is opening the store.
  var begun: [Int]
  /// How many events there were when an operation was acknowledged.
  var acknowledged: [Int]
  /// The store's state after each operation.
  var states: [StoreDigest]

  /// Plays `operations` twice: recorded, as a game would, and one by one in another store, which gives the states
  /// between them.
  static func play(_ operations: [MixedOperation], in folder: URL, mistake: Mistake? = nil) throws -> MixedRun {
    let recorder = DiskRecorder()
    let recorded = folder.appendingPathComponent("recorded")
    try FileManager.default.createDirectory(at: recorded, withIntermediateDirectories: true)
    let notes = Notes(recorder, count: 1 + operations.reduce(0) { $0 + $1.count })
    try RecordingFileLayer.record(recorded, into: recorder) {
      var player = Player(url: recorded, mistake: mistake, notes: notes)
      try player.play(operations)
    }
    var reference = Player(url: folder.appendingPathComponent("reference"))
    try reference.play(operations)
    return MixedRun(
      recording: recorder.recording, begun: notes.begun, acknowledged: notes.acknowledged, states: reference.states)
  }

  /// The states that a store may show after a power cut after the first `events` events: from the last acknowledged
  /// operation to the last that had begun.
  func allowed(after events: Int) -> ClosedRange<Int> {
    let lower = acknowledged.lastIndex { $0 <= events } ?? 0
    return lower...max(lower, begun.lastIndex { $0 <= events } ?? 0)
  }
}

/// When the operations of a run began and were acknowledged, as numbers of events of the disk.
private final class Notes: Sendable {
  private let recorder: DiskRecorder
  private let places: Mutex<(begun: [Int], acknowledged: [Int])>

  init(_ recorder: DiskRecorder, count: Int) {
    self.recorder = recorder
    places = Mutex((Array(repeating: .max, count: count), Array(repeating: .max, count: count)))
  }

  var begun: [Int] { places.withLock { $0.begun } }
  var acknowledged: [Int] { places.withLock { $0.acknowledged } }

  func begin(_ operation: Int) { places.withLock { $0.begun[operation] = recorder.count } }
  func acknowledge(_ operation: Int) { places.withLock { $0.acknowledged[operation] = recorder.count } }
}

/// Performs the operations on one store. With `notes` it plays as a game would; without, it performs one operation
/// after the other, and records the states.
private struct Player {
  let url: URL
  var mistake: MixedRun.Mistake?
  var notes: Notes?
  var states: [StoreDigest] = []
  private var done = 0

  init(url: URL, mistake: MixedRun.Mistake? = nil, notes: Notes? = nil) {
    self.url = url
    self.mistake = mistake
    self.notes = notes
  }

  mutating func play(_ operations: [MixedOperation]) throws {
    notes?.begin(0)
    var store = try open()
    // Otherwise it is drawn at random, and both stores have to have the same.
    try store.write { try $0.setWallet(WalletState(chain: ChainID(high: 1, low: 2))) }
    try finish(1, store)
    for operation in operations {
      switch operation {
      case .commit(let commit): try submit([commit], to: store)
      case .burst(let commits):
        if notes == nil {
          for commit in commits { try submit([commit], to: store) }
        } else {
          try submit(commits, to: store)
        }
      case .reopen:
        notes?.begin(done)
        try store.close()
        store = try open()
        try finish(1, store)
      default:
        notes?.begin(done)
        try perform(operation, on: store)
        try finish(1, store)
      }
    }
    try store.close()
  }

  private func open() throws -> Store {
    let store = try Store.open(at: url, writer: WriterID(1))
    if let pragma = mistake?.pragma {
      try store.database.pool.writeWithoutTransaction { try $0.execute(sql: pragma) }
    }
    return store
  }

  private mutating func submit(_ commits: [MixedCommit], to store: Store) throws {
    var pending: [PendingCommit<Void>] = []
    // The first of several waits in its transaction until all others are submitted, so that which commits share a
    // transaction is the same in each run.
    let hasBegun = DispatchSemaphore(value: 0)
    let allSubmitted = DispatchSemaphore(value: 0)
    do {
      defer { allSubmitted.signal() }
      for (index, commit) in commits.enumerated() {
        let number = done + index
        notes?.begin(number)
        let commit = try store.submit(
          commit.contents, finished: { _ in hasBegun.signal() },
          { transaction, kept in
            if index == 0 {
              hasBegun.signal()
              allSubmitted.wait()
            }
            try commit.apply(to: &transaction, kept)
          })
        if mistake == .acknowledgesEarly {
          notes?.acknowledge(number)
        } else {
          // When the commit ends, before anything that follows it.
          commit.observe { [notes] result in if case .success = result { notes?.acknowledge(number) } }
        }
        pending.append(commit)
        if index == 0 { hasBegun.wait() }
      }
    }
    for commit in pending { try commit.wait() }
    try finish(commits.count, store, acknowledges: false)
  }

  private mutating func finish(_ count: Int, _ store: Store, acknowledges: Bool = true) throws {
    if acknowledges { notes?.acknowledge(done) }
    done += count
    if notes == nil { states.append(try store.read { try StoreDigest(of: $0) }) }
  }

  private func perform(_ operation: MixedOperation, on store: Store) throws {
    switch operation {
    case .settle:
      try store.write { transaction in
        for group in try transaction.outbox(limit: .max) {
          for id in group.versions {
            guard var version = try transaction.version(id) else { continue }
            (version.acknowledged, version.offered) = (true, true)
            try transaction.putVersion(version)
          }
          try transaction.removeFromOutbox(group.id)
        }
      }
    case .receive(let slot, let bytes, let number):
      try store.submit([(slot: slot, bytes: bytes)]) { try $0.put(number, slot: slot, $1) }.wait()
    case .stage(let number):
      try store.write { try $0.stage([CloudChange(seq: number, item: .version(record(number)))]) }
    case .clearStaged: try store.write { try $0.clearStaged() }
    case .checkpoint(let truncates):
      try store.database.pool.writeWithoutTransaction { _ = try $0.checkpoint(truncates ? .truncate : .passive) }
    case .commit, .burst, .reopen: break
    }
  }
}
