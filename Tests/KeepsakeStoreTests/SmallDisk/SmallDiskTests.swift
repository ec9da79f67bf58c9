#if os(Linux)
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// A player's disk is really full: saving throws `diskFull`, everything that was ever acknowledged is there, and saving
/// works again when there is room.
@Suite struct SmallDiskTests {
  @Test("nothing that was acknowledged is lost on a full or read-only disk", .needsPrivateMounts)
  func keepsEverything() async throws {
    let failure = try await onThread { try SmallDisk.run("SmallDiskChild") }
    #expect(failure == nil)
  }
}

/// The test that runs on the small disk.
@Suite(.serialized, .partOfAnotherTest(where: SmallDisk.mounted != nil))
struct SmallDiskChild {
  private static let saveBytes = 40_000
  /// Saves from this number on are small, and in a slot of their own.
  private static let smallest: UInt64 = 10_000
  private static let level = CellKey(collection: "progress", key: "level")
  private let disk: URL
  private var folder: URL { disk.appendingPathComponent("store") }
  private var filler: URL { disk.appendingPathComponent("filler") }

  init() throws { disk = try #require(SmallDisk.mounted) }

  private static func bytes(_ number: UInt64) -> Data {
    var random = SeededRandom(seed: number)
    return random.bytes(number > smallest ? 10 : saveBytes)
  }

  /// Fills the disk to the last byte.
  private func fill() throws {
    if !FileManager.default.fileExists(atPath: filler.path) { try Data().write(to: filler) }
    let handle = try FileHandle(forWritingTo: filler)
    try handle.seekToEnd()
    for size in [65_536, 4_096, 512, 1] {
      do {
        while true { try handle.write(contentsOf: Data(count: size)) }
      } catch {
        // Full.
      }
    }
    try handle.close()
  }

  /// Makes a save that no cloud has acknowledged, so that the next opening has something to write, too.
  private func save(_ number: UInt64, in store: Store) throws {
    try store.save(Self.bytes(number), as: number, slot: number > Self.smallest ? "small" : "main", acknowledged: false)
  }

  /// The last save for which there was room. History is pruned, so this may take many saves.
  private func saveUntilFull(after first: UInt64, in store: Store) -> UInt64 {
    var number = first
    while number < first + 1_000 {
      let code = errorCode { try save(number + 1, in: store) }
      if let code {
        #expect(code == .diskFull)
        return number
      }
      number += 1
    }
    Issue.record("the disk doesn't get full")
    return number
  }

  /// The last value for which there was room.
  private func recordUntilFull(in store: Store) -> Int64 {
    var level: Int64 = 0
    while level < 1_000 {
      let state = CellState(value: .max(.int(level + 1)))
      let code = errorCode { try store.write { try $0.setCell(CellUpdate(key: Self.level, state: state)) } }
      if let code {
        #expect(code == .diskFull)
        return level
      }
      level += 1
    }
    Issue.record("the disk doesn't get full")
    return level
  }

  private func check(_ store: Store, _ newest: UInt64, _ small: UInt64, _ level: Int64, _ when: Comment) throws {
    try store.read { transaction throws in
      #expect(try transaction.heads(of: "main") == [id(newest)], when)
      #expect(try transaction.heads(of: "small") == (small > Self.smallest ? [id(small)] : []), when)
      #expect(try transaction.cell(Self.level) == (level > 0 ? CellState(value: .max(.int(level))) : nil), when)
      let history = try transaction.history(of: "main")
      #expect(history.count == min(Int(newest), 20), when)
      for version in history {
        let isSame = try transaction.plainContent(version.record.contents[0]) == Self.bytes(version.record.id.low)
        #expect(isSame, "\(when): save \(version.record.id)")
      }
    }
  }

  private func isOffered(_ number: UInt64, in store: Store) throws -> Bool {
    try store.read { try #require(try $0.version(id(number))).offered }
  }

  @Test(arguments: [Seal.Kind.none, .signed, .sealed])
  func fillsUp(kind: Seal.Kind) throws {
    defer { for url in [folder, filler] { try? FileManager.default.removeItem(at: url) } }
    func open() throws -> Store { try Store.open(at: folder, seal: SealLab.request(kind)) }
    var store = try open()
    try Data(count: 2 << 20).write(to: filler)
    let number = saveUntilFull(after: 0, in: store)
    #expect(number > 5)
    try fill()
    // Smaller saves, and then values, still fit into the part of the log that the failed save had taken: until not even
    // those do.
    let small = saveUntilFull(after: Self.smallest, in: store)
    let level = recordUntilFull(in: store)
    try check(store, number, small, level, "full")
    for _ in 0..<3 { #expect(errorCode { try save(number + 1, in: store) } == .diskFull) }
    try check(store, number, small, level, "still full")
    try store.close()
    try fill()

    store = try open()
    try check(store, number, small, level, "opened while full")
    #expect(store.incidents.isEmpty)
    #expect(try !isOffered(number, in: store))
    try fill()
    #expect(errorCode { try save(number + 1, in: store) } == .diskFull)
    try check(store, number, small, level, "opened while full, after a save that failed")

    try FileManager.default.removeItem(at: filler)
    try save(number + 1, in: store)
    // The write that opening had no room for was made before this one: a copy of the store may contain the save that
    // was replaced.
    #expect(try isOffered(number, in: store))
    #expect(try !isOffered(number + 1, in: store))
    try check(store, number + 1, small, level, "with room again")
    try store.close()

    // Closed while there was room, and opened when there is none: first as it was closed, then as a copy that lacks the
    // files that SQLite made beside it.
    for suffix in ["", "-wal", "-shm"] {
      let file = folder.appendingPathComponent(Store.databaseName + suffix)
      if !suffix.isEmpty, FileManager.default.fileExists(atPath: file.path) {
        try FileManager.default.removeItem(at: file)
      }
      try fill()
      store = try open()
      try check(store, number + 1, small, level, "begun on a full disk\(suffix)")
      #expect(store.incidents.isEmpty)
      try fill()
      #expect(errorCode { try save(number + 2, in: store) } == .diskFull)
      try store.close()
      // Otherwise what the next one needs would never be there again.
      try FileManager.default.removeItem(at: filler)
      try open().close()
    }

    try SmallDisk.remount("ro")
    #expect(errorCode { _ = try open() } == .notPermitted)
    try SmallDisk.remount("rw")
    store = try open()
    #expect(store.incidents.isEmpty)
    try check(store, number + 1, small, level, "after it could not be written")
    try store.close()
  }
}
#endif
