import Foundation
import GRDB
import KeepsakeReplication

@testable import KeepsakeStore

/// Cuts the power of a recorded run at many points, and checks what the store makes of what is left.
struct PowerCutTrial {
  /// What a player would have lost.
  enum Loss: Equatable, Sendable, CustomStringConvertible {
    /// The store shows an earlier state than the last that was acknowledged.
    case acknowledged(shown: Int, atLeast: Int)
    /// The store shows a state that it never had, or a part of a commit.
    case unknownState
    /// Opening or reading throws.
    case unreadable(String)
    /// SQLite finds its own structure damaged.
    case damaged(String)

    var description: String {
      switch self {
      case .acknowledged(let shown, let least): "operation \(least) was acknowledged, the store is back at \(shown)"
      case .unknownState: "the store is in a state that it never had"
      case .unreadable(let error): "the store can't be opened and read: \(error)"
      case .damaged(let problem): "the database is damaged: \(problem)"
      }
    }

    var isLostAcknowledgement: Bool { if case .acknowledged = self { true } else { false } }
  }

  /// The results of a trial.
  struct Result: Sendable {
    var syncs = 0
    var cuts = 0
    /// Cuts in the middle of opening what an earlier cut left.
    var recoveryCuts = 0
    /// Cuts whose result the store mistook for damage, and repaired.
    var repairs: [String] = []
    /// Each with the place and seed that reproduce it.
    var losses: [(loss: Loss, place: String)] = []

    var summary: String {
      """
      \(cuts) power cuts, among them before and after each of \(syncs) syncs; \(recoveryCuts) more while the store \
      recovered; \(losses.count) losses, \(repairs.count) taken for damage
      """
    }
  }

  let run: MixedRun
  let seed: UInt64
  /// The folder for the stores that cuts leave.
  let folder: URL
  /// One in this many cuts is followed by cuts of the recovery.
  var recoveryInterval = 25
  var stopsAfterLosses = Int.max
  /// States that were found readable already.
  private var known: Set<ContentHash> = []

  init(run: MixedRun, seed: UInt64, folder: URL) {
    self.run = run
    self.seed = seed
    self.folder = folder
  }

  /// Cuts before and after every sync, and at `samples` points anywhere.
  mutating func cutAtSyncs(andSamples samples: Int) throws -> Result {
    let events = run.recording.events
    let syncs = events.indices.filter { events[$0].isSync }
    var random = SeededRandom(seed: seed)
    let sampled = (0..<samples).map { _ in Int.random(in: 0...events.count, using: &random) }
    var result = try cut(at: syncs.flatMap { [$0, $0 + 1] } + sampled)
    result.syncs = syncs.count
    return result
  }

  /// Cuts after each of these numbers of events.
  mutating func cut(at points: [Int]) throws -> Result {
    let events = run.recording.events
    var result = Result()
    var disk = CutDisk(run.recording)
    var played = 0
    for (number, point) in points.sorted().enumerated() {
      while played < point {
        disk.play(events[played])
        played += 1
      }
      var random = SeededRandom(seed: seed &+ UInt64(number))
      var left = disk.cut(using: &random)
      // The log's index is never synced and may contain any bytes: SQLite must not rely on them.
      if Int.random(in: 0..<4, using: &random) == 0 {
        left[Store.databaseName + "-shm"] = Data(repeating: UInt8.random(in: 0...255, using: &random), count: 32 << 10)
      }
      result.cuts += 1
      let place = "seed \(seed), cut \(number) behind event \(point) of \(events.count)"
      if let loss = try reopen(left, allowed: run.allowed(after: point), place, &result) {
        result.losses.append((loss, place))
        if result.losses.count >= stopsAfterLosses { return result }
      } else if number % recoveryInterval == 0 {
        try cutRecovery(of: left, allowed: run.allowed(after: point), place, &random, &result)
      }
    }
    return result
  }

  /// Opens the store that a cut left, cuts the power at some points of that, and opens the stores that these cuts left.
  private mutating func cutRecovery(
    of left: [String: Data], allowed: ClosedRange<Int>, _ place: String, _ random: inout SeededRandom,
    _ result: inout Result
  ) throws {
    let url = try put(left)
    let recorder = DiskRecorder(initial: left)
    try RecordingFileLayer.record(url, into: recorder) { try Store.open(at: url).close() }
    let recording = recorder.recording
    for _ in 0..<3 {
      var disk = CutDisk(recording)
      let point = Int.random(in: 0...recording.events.count, using: &random)
      for event in recording.events[..<point] { disk.play(event) }
      result.recoveryCuts += 1
      if let loss = try reopen(
        disk.cut(using: &random), allowed: allowed, "\(place), recovery cut behind \(point)", &result)
      {
        result.losses.append((loss, "\(place), recovery cut behind event \(point) of \(recording.events.count)"))
      }
    }
  }

  /// The loss in the store that a cut left; nil if there is none.
  private mutating func reopen(
    _ left: [String: Data], allowed: ClosedRange<Int>, _ place: String, _ result: inout Result
  ) throws -> Loss? {
    let url = try put(left)
    do {
      let store = try Store.open(at: url)
      result.repairs += store.incidents.map { "\($0.kind.rawValue): \($0.message) (\(place))" }
      let (state, problems) = try store.read { transaction in
        (
          try StoreDigest(checking: transaction, known: &known),
          try String.fetchAll(transaction.database, sql: "PRAGMA integrity_check")
        )
      }
      // A store that can be read but not written is of no use.
      try store.save(Data("one more save".utf8), as: 1 << 40, slot: "after")
      try store.close()
      if problems != ["ok"] { return .damaged(problems.joined(separator: "; ")) }
      if run.states[allowed].contains(state) { return nil }
      guard let shown = run.states[..<allowed.lowerBound].lastIndex(of: state) else { return .unknownState }
      return .acknowledged(shown: shown, atLeast: allowed.lowerBound)
    } catch let error as StoreError {
      return .unreadable("\(error)")
    }
  }

  /// A fresh folder with these files.
  private func put(_ left: [String: Data]) throws -> URL {
    let url = folder.appendingPathComponent("left")
    if FileManager.default.fileExists(atPath: url.path) { try FileManager.default.removeItem(at: url) }
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    for (name, bytes) in left { try bytes.write(to: url.appendingPathComponent(name)) }
    return url
  }
}
