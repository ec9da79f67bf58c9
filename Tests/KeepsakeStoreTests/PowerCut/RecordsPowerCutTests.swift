import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Power cuts at every moment of the life of the game's own tables, on the disk that `CutDisk` simulates.
@Suite(.serialized, .hangLimit) struct RecordsPowerCutTests {
  /// Points between the syncs; a tenth of those of the store.
  private static let samples = PowerCutTests.samples / 10
  /// One in this many cuts is followed by cuts of the opening after it.
  private static let openingInterval = 20

  private struct Result {
    var cuts = 0
    var cutsOfOpenings = 0
    var losses: [String] = []
    /// Cuts whose result was mistaken for damage.
    var repairs: [String] = []
  }

  @Test(
    "after a power cut the game's own tables are as after the last write or migration that returned, or a later one")
  func survives() async throws {
    let (run, result) = try await onThread {
      let folder = try TemporaryFolder.inMemory()
      let run = try RecordsRun.play(TestDepth.powerCutRecords, seed: 21, in: folder.url)
      return (run, try Self.cut(run, samples: Self.samples, seed: 22, in: folder.url))
    }
    let states = Set(run.states).count
    print("records: \(states) states, \(result.cuts) power cuts, \(result.cutsOfOpenings) more while they were opened")
    for text in (result.losses + result.repairs).prefix(5) { Issue.record("\(text)") }
    #expect(result.losses.isEmpty && result.repairs.isEmpty)
    #expect(
      states > TestDepth.powerCutRecords * 7 / 10 && result.cuts > TestDepth.powerCutRecords * 2
        && result.cutsOfOpenings > result.cuts / 8)
  }

  @Test("power cuts detect a log that isn't synced at each commit", arguments: RecordsRun.Mistake.allCases)
  func findsMistakes(mistake: RecordsRun.Mistake) async throws {
    let result = try await onThread {
      let folder = try TemporaryFolder.inMemory()
      let run = try RecordsRun.play(60, seed: 23, in: folder.url, mistake: mistake)
      return try Self.cut(run, samples: 100, seed: 24, in: folder.url, stopsAfterLosses: 4)
    }
    #expect(result.losses.count > 3)
  }

  /// Cuts before and after each sync, and at `samples` points anywhere.
  private static func cut(
    _ run: RecordsRun, samples: Int, seed: UInt64, in folder: URL, stopsAfterLosses: Int = .max
  ) throws -> Result {
    let events = run.recording.events
    var random = SeededRandom(seed: seed)
    let points =
      events.indices.filter { events[$0].isSync }.flatMap { [$0, $0 + 1] }
      + (0..<samples).map { _ in Int.random(in: 0...events.count, using: &random) }
    var result = Result()
    var disk = CutDisk(run.recording)
    var played = 0
    for (number, point) in points.sorted().enumerated() where result.losses.count < stopsAfterLosses {
      for event in events[played..<point] { disk.play(event) }
      played = point
      var random = SeededRandom(seed: seed &+ UInt64(number))
      let left = disk.cut(using: &random)
      let place = "seed \(seed), cut \(number) behind event \(point) of \(events.count)"
      let allowed = run.allowed(after: point)
      result.cuts += 1
      let isSound = try look(at: left, allowed, place, in: folder, &result)
      guard isSound, number % openingInterval == 0 else { continue }
      let recorder = DiskRecorder(initial: left)
      let url = try put(left, in: folder)
      try RecordingFileLayer.record(url, into: recorder) { try RecordsDatabase.open(in: url) { _ in }.close() }
      for _ in 0..<3 {
        var opening = CutDisk(recorder.recording)
        let place2 = Int.random(in: 0...recorder.count, using: &random)
        for event in recorder.recording.events[..<place2] { opening.play(event) }
        result.cutsOfOpenings += 1
        _ = try look(
          at: opening.cut(using: &random), allowed, "\(place), then behind event \(place2) of opening", in: folder,
          &result)
      }
    }
    return result
  }

  private static func look(
    at left: [String: Data], _ allowed: [ContentHash?], _ place: String, in folder: URL, _ result: inout Result
  ) throws -> Bool {
    let url = try put(left, in: folder)
    let told = Shared<[StoreIncident]>([])
    let before = result.losses.count + result.repairs.count
    do {
      let records = try RecordsDatabase.open(in: url) { told.value += [$0] }
      let state = try RecordsRun.digest(records)
      let isAllowed = allowed.contains(state)
      // If not even the first opening had returned, there may be nothing yet.
      let isNew =
        try allowed.contains(nil)
        && records.reading { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM sqlite_master") } == 0
      if !isAllowed, !isNew {
        result.losses.append("the tables are in another state than the last that was certain (\(place))")
      }
      let problems = try records.reading { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
      if problems != ["ok"] { result.losses.append("\(problems.first ?? "") (\(place))") }
      try records.write { try $0.execute(sql: "CREATE TABLE one_more (id); INSERT INTO one_more VALUES (1)") }
      try records.close()
    } catch let error as StoreError {
      result.losses.append("\(error) (\(place))")
    }
    result.repairs += told.value.map { "\($0.kind.rawValue): \($0.message) (\(place))" }
    return result.losses.count + result.repairs.count == before
  }

  private static func put(_ left: [String: Data], in folder: URL) throws -> URL {
    let url = folder.appendingPathComponent("left")
    if FileManager.default.fileExists(atPath: url.path) { try FileManager.default.removeItem(at: url) }
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    for (name, bytes) in left { try bytes.write(to: url.appendingPathComponent(name)) }
    return url
  }
}
