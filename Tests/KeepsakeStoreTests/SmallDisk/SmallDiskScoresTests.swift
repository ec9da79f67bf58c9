#if os(Linux)
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// A full and a read-only disk: an acknowledged score remains, and a further one fails with a typed error.
@Suite struct SmallDiskScoresTests {
  @Test("no acknowledged score is lost on a full or read-only disk", .needsPrivateMounts)
  func keepsScores() async throws {
    let failure = try await onThread { try SmallDisk.run("SmallDiskScoresChild") }
    #expect(failure == nil)
  }
}

/// The test that runs on the small disk.
@Suite(.serialized, .partOfAnotherTest(where: SmallDisk.mounted != nil))
struct SmallDiskScoresChild {
  private static func entry(_ number: UInt64) -> ScoreEntry {
    ScoreEntry(
      board: "easy", player: "Ada", order: .ascending, value: .int(Int64(number)), dateMilliseconds: 0,
      id: ScoreID(high: 0, low: number),
      context: SealLab.bytes(number) + Data(count: 8_000))
  }

  private func check(_ store: Store, _ count: UInt64, _ when: Comment) throws {
    let found = try store.read { try $0.topScores(.max, on: "easy", .ascending) }
    let isWhole = found.entries == (1...count).map(Self.entry) && found.objections.isEmpty
    #expect(isWhole, when)
  }

  @Test(arguments: [Seal.Kind.none, .sealed])
  func fillsUp(kind: Seal.Kind) throws {
    let disk = try #require(SmallDisk.mounted)
    let folder = disk.appendingPathComponent("scores")
    defer { try? FileManager.default.removeItem(at: folder) }
    var store = try Store.open(at: folder, seal: SealLab.request(kind))
    var count: UInt64 = 0
    var code: StoreError.Code?
    while code == nil, count < 100_000 {
      let next = Self.entry(count + 1)
      code = errorCode { try store.submit { transaction, _ in try transaction.putScore(next) }.wait() }
      if code == nil { count += 1 }
    }
    #expect(code == .diskFull && count > 20)
    try check(store, count, "full")
    try store.close()
    store = try Store.open(at: folder, seal: SealLab.request(kind))
    #expect(store.incidents.isEmpty)
    try check(store, count, "opened while full")
    try store.close()
    try SmallDisk.remount("ro")
    #expect(errorCode { _ = try Store.open(at: folder, seal: SealLab.request(kind)) } == .notPermitted)
    try SmallDisk.remount("rw")
    store = try Store.open(at: folder, seal: SealLab.request(kind))
    try check(store, count, "after it could not be written")
    try store.close()
  }
}
#endif
