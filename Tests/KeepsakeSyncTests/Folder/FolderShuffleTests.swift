import Foundation
import TestSupport
import Testing

@testable import KeepsakeSync

/// Three devices, each with its own copy of the folder, and between them what brings files from one to another.
@Suite("A badly synced folder", .hangLimit) struct FolderShuffleTests {
  static let rounds = TestDepth.folderRounds
  static let firstSeed: UInt64 = 2038

  @Test("devices end up the same and never show half a checkpoint, whatever happens to files on their way")
  func shuffle() async throws {
    _ = try await play(BadSyncProgram.happenings) { _ in try BadSyncProgram() }
  }

  @Test("the same in iCloud: files that arrive when they are asked for, and that are removed again")
  func iCloud() async throws {
    let counts = try await play(ICloudStandIn.happenings) { seed in try ICloudStandIn(seed: seed) }
    #expect(counts[.restarts, default: 0] == 0, "a device starts over, though nothing is lost in iCloud")
  }

  private func play(
    _ happenings: Set<FolderWorld.Happening>, _ carrier: @escaping @Sendable (UInt64) throws -> any FolderCarrier
  ) async throws -> [FolderWorld.Happening: Int] {
    let expected = happenings.union(FolderWorld.ofDevices)
    let counts = try await onThread {
      var counts: [FolderWorld.Happening: Int] = [:]
      let worlds = max(1, (Self.rounds + FolderWorld.rounds - 1) / FolderWorld.rounds)
      // Further worlds, until each of these has happened: the test would cover less than it claims.
      for number in 0..<100 {
        let isComplete = expected.allSatisfy { counts[$0, default: 0] > 0 }
        guard number < worlds || !isComplete else { break }
        let seed = Self.firstSeed + UInt64(number)
        var world = try FolderWorld(seed: seed, carrier(seed))
        try world.run()
        #expect(world.report.problems == [], "seed \(seed)")
        counts.merge(world.report.counts, uniquingKeysWith: +)
      }
      return counts
    }
    for what in expected {
      #expect(counts[what, default: 0] > 0, "from seed \(Self.firstSeed): never \(what)")
    }
    print(
      """
      folder shuffle, \(Self.rounds) rounds: \(counts.map { "\($0.key) \($0.value)" }.sorted().joined(separator: ", "))
      """)
    return counts
  }
}
