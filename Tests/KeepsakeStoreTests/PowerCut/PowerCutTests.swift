import Foundation
import TestSupport
import Testing

@testable import KeepsakeStore

/// Power cuts at every moment of a store's life, on a disk that loses, tears and reorders what was not synced: see
/// docs/TESTING.md.
@Suite(.serialized, .hangLimit) struct PowerCutTests {
  /// How many operations the long run has.
  static let operations = TestDepth.powerCutOperations
  /// How many points of the long run are sampled between the syncs; `make power` sets 5,000.
  static let samples = TestDepth.powerCuts

  @Test(
    "after a power cut at any point the store opens without a repair, in the last acknowledged state or a later one")
  func survivesPowerCuts() async throws {
    let (states, events, result) = try await onThread {
      let folder = try TemporaryFolder.inMemory()
      let run = try MixedRun.play(MixedOperation.run(of: Self.operations, seed: 1), in: folder.url)
      var trial = PowerCutTrial(run: run, seed: 2, folder: folder.url)
      let result = try trial.cutAtSyncs(andSamples: Self.samples)
      return (Set(run.states).count, run.recording.events.count, result)
    }
    print("\(Self.operations) operations, \(states) states, \(events) writes and syncs: \(result.summary)")
    for (loss, place) in result.losses.prefix(5) { Issue.record("\(loss) (\(place))") }
    #expect(result.losses.isEmpty)
    // A torn log is normal after a power cut. A recovery would mean a slow start, and an exchange of everything with
    // the cloud.
    for repair in result.repairs.prefix(5) { Issue.record("mistaken for damage: \(repair)") }
    #expect(result.repairs.isEmpty)
    // Otherwise the operations would hardly change anything.
    #expect(states > Self.operations * 4 / 5)
    #expect(result.syncs > Self.operations * 4 / 5 && result.recoveryCuts > result.cuts / 16)
  }

  @Test("after a power cut during the creation of a store, the store opens without a repair")
  func survivesCutsOfCreation() async throws {
    let result = try await onThread {
      let folder = try TemporaryFolder.inMemory()
      let run = try MixedRun.play(MixedOperation.run(of: 3, seed: 3), in: folder.url)
      var trial = PowerCutTrial(run: run, seed: 4, folder: folder.url)
      trial.recoveryInterval = 10
      let points = (0...run.acknowledged[0]).flatMap { Array(repeating: $0, count: TestDepth.creationCuts) }
      return try trial.cut(at: points)
    }
    print("while the store is made: \(result.cuts) power cuts, \(result.recoveryCuts) more while it recovered")
    for (loss, place) in result.losses.prefix(5) { Issue.record("\(loss) (\(place))") }
    #expect(result.losses.isEmpty)
    // A torn log is normal after a power cut. A recovery would mean a slow start, and an exchange of everything with
    // the cloud.
    for repair in result.repairs.prefix(5) { Issue.record("mistaken for damage: \(repair)") }
    #expect(result.repairs.isEmpty)
  }

  @Test(
    "power cuts detect a store that acknowledges a commit before it is durable", arguments: MixedRun.Mistake.allCases)
  func findsMistakes(mistake: MixedRun.Mistake) async throws {
    let result = try await onThread {
      let folder = try TemporaryFolder.inMemory()
      let run = try MixedRun.play(MixedOperation.run(of: 60, seed: 5), in: folder.url, mistake: mistake)
      var trial = PowerCutTrial(run: run, seed: 6, folder: folder.url)
      trial.stopsAfterLosses = 20
      return try trial.cutAtSyncs(andSamples: 300)
    }
    print("planted \(mistake): \(result.losses.count) losses in \(result.cuts) power cuts")
    #expect(result.losses.contains { $0.loss.isLostAcknowledgement })
    // This mistake loses whole commits and damages nothing, and the cuts must not report otherwise. Without a sync for
    // each commit the torn end of the log contains several, which looks like a damaged log.
    if mistake == .acknowledgesEarly {
      for (loss, place) in result.losses where !loss.isLostAcknowledgement { Issue.record("\(loss) (\(place))") }
    }
  }

  @Test(
    "power cuts detect a store that forgets to sync its log, its database or its folder",
    arguments: ForgottenSync.allCases)
  func findsForgottenSyncs(forgotten: ForgottenSync) async throws {
    let result = try await onThread {
      let folder = try TemporaryFolder.inMemory()
      var run = try MixedRun.play(MixedOperation.run(of: 60, seed: 7), in: folder.url)
      run.recording = forgotten.forgetting(in: run.recording)
      var trial = PowerCutTrial(run: run, seed: 8, folder: folder.url)
      trial.stopsAfterLosses = 20
      return try trial.cutAtSyncs(andSamples: 300)
    }
    print("forgotten sync of \(forgotten): \(result.losses.count) losses in \(result.cuts) power cuts")
    #expect(result.losses.count >= 3)
  }

  enum ForgottenSync: CaseIterable, Sendable {
    case log, database, folder

    func forgetting(in recording: DiskRecording) -> DiskRecording {
      let names = recording.names
      return recording.without { event in
        switch (self, event) {
        case (.folder, .syncFolder): true
        case (.log, .sync(let file)): names[file]?.hasSuffix("-wal") == true
        case (.database, .sync(let file)): names[file] == Store.databaseName
        default: false
        }
      }
    }
  }
}
