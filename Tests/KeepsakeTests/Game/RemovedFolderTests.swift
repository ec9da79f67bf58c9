import Foundation
import GRDB
import KeepsakeSimulation
import KeepsakeStore
import TestSupport
import Testing

@testable import Keepsake

/// The game's folder, or a file in it, is taken away while the game runs: by a cleaner, a script, a person.
@Suite(.hangLimit) struct RemovedFolderTests {
  /// What happens to the folder.
  enum Removal: CaseIterable {
    case removed, moved, replacedByStore, replacedByFile, replacedByLink, databaseRemoved, logRemoved, lockRemoved
    case databaseReplaced, logReplaced

    /// Does it. Whatever the game's own files are then called, `kept` has them, if any program can still find them.
    func happen(to folder: URL, kept: URL, other: URL) throws {
      let files = FileManager.default
      func file(_ name: String) -> URL { folder.appendingPathComponent(name) }
      switch self {
      case .removed: try files.removeItem(at: folder)
      case .moved: try files.moveItem(at: folder, to: kept)
      case .replacedByStore:
        try files.moveItem(at: folder, to: kept)
        try files.moveItem(at: other, to: folder)
      case .replacedByFile:
        try files.moveItem(at: folder, to: kept)
        try Data("not a folder".utf8).write(to: folder)
      case .replacedByLink:
        try files.moveItem(at: folder, to: kept)
        try files.createSymbolicLink(at: folder, withDestinationURL: other)
      case .databaseRemoved: try files.removeItem(at: file("store.sqlite"))
      case .logRemoved: try files.removeItem(at: file("store.sqlite-wal"))
      case .lockRemoved: try files.removeItem(at: file("lock"))
      case .databaseReplaced: try Self.replace(file("store.sqlite"))
      case .logReplaced: try Self.replace(file("store.sqlite-wal"))
      }
    }

    /// Replaces a file by a copy of itself, as some programs that edit or restore files do.
    private static func replace(_ file: URL) throws {
      let bytes = try Data(contentsOf: file)
      try FileManager.default.removeItem(at: file)
      try bytes.write(to: file)
    }

    /// Whether what the game committed can still be opened under another name.
    var isKept: Bool { [.moved, .replacedByStore, .replacedByFile, .replacedByLink].contains(self) }
  }

  private static let volume = PreferenceKey("volume", default: 1.0)

  let device: Device
  let kept: URL
  let other: URL

  init() throws {
    device = try Device()
    kept = device.folder.url.appendingPathComponent("kept")
    other = device.folder.url.appendingPathComponent("other")
  }

  private func open(_ url: URL) throws -> GameData {
    try GameData.open("com.example.space", at: url, environment: device.clock.environment)
  }

  /// Makes a store that isn't the game's, and returns its files.
  private func makeOther() throws -> [String: Data] {
    let game = try open(other)
    try game.saves.capture(World(level: 77), to: .main).wait()
    try game.close()
    return try contents(of: other)
  }

  private func contents(of folder: URL) throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      contents[name] = try Data(contentsOf: folder.appendingPathComponent(name))
    }
    return contents
  }

  @Test(
    "every commit throws `removed` once the files are gone, and an incident reports it", arguments: Removal.allCases)
  func refuses(_ removal: Removal) throws {
    _ = try makeOther()
    let game = try device.open()
    try game.saves.capture(World(level: 2), to: .main).wait()
    try game.wallet.earn(5, .gems, for: "start")
    try removal.happen(to: device.url, kept: kept, other: other)
    #expect(storeErrorCode { try game.saves.capture(World(level: 3), to: .main).wait() } == .removed)
    #expect(storeErrorCode { try game.wallet.earn(1, .gems, for: "late") } == .removed)
    #expect(storeErrorCode { try game.progress.record(9, for: .level).wait() } == .removed)
    #expect(storeErrorCode { _ = try game.checkpoint { try $0.earn(1, .gems, for: "late") }.wait() } == .removed)
    #expect(game.incidents.filter { $0.kind == .removed }.count == 1)
    #expect(storeErrorCode { try game.close(within: Patience.limit) } == .removed)
    // Closed all the same.
    try game.close()
    #expect(gameErrorCode { try game.saves.capture(World(), to: .main).wait() } == .closed)
    guard removal.isKept else { return }
    let found = try open(kept)
    defer { end(found) }
    #expect(try found.saves.load(.main) == World(level: 2))
    #expect(found.wallet[.gems].total == 5)
    #expect(found.incidents.isEmpty)
  }

  @Test("the game's own tables refuse a commit, too, once their file is gone")
  func records() throws {
    let game = try device.open()
    try game.records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER)") }
    try FileManager.default.removeItem(at: device.url)
    #expect(
      storeErrorCode { try game.records.write { try $0.execute(sql: "INSERT INTO thing VALUES (1)") } } == .removed)
    #expect(game.incidents.filter { $0.kind == .removed }.count == 1)
    #expect(storeErrorCode { try game.close(within: Patience.limit) } == .removed)
  }

  @Test("tables that are first used after the files are gone aren't opened in what has come there")
  func lateRecords() throws {
    let before = try makeOther()
    let game = try device.open()
    try Removal.replacedByStore.happen(to: device.url, kept: kept, other: other)
    #expect(
      storeErrorCode { try game.records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER)") } }
        == .removed)
    #expect(storeErrorCode { try game.close(within: Patience.limit) } == .removed)
    #expect(try contents(of: device.url) == before)
  }

  @Test("a store that has come to the folder is neither read nor changed, down to the last byte")
  func leavesOther() throws {
    let before = try makeOther()
    let game = try device.open()
    try game.records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER)") }
    try game.saves.capture(World(level: 2), to: .main).wait()
    try Removal.replacedByStore.happen(to: device.url, kept: kept, other: other)
    for level in 3..<8 {
      #expect(storeErrorCode { try game.saves.capture(World(level: level), to: .main).wait() } == .removed)
    }
    // Reads that need further connections must not be of the other store.
    let levels = Shared<[Int?]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      // A read may fail, too.
      guard let world = try? game.saves.load(.main) else { return }
      levels.value += [world.level]
    }
    #expect(levels.value.allSatisfy { $0 == 2 })
    #expect(storeErrorCode { try game.close(within: Patience.limit) } == .removed)
    #expect(try contents(of: device.url) == before)
  }

  @Test("the same folder can't be opened again while the game that lost it is open, and can once that is closed")
  func secondOpening() throws {
    let game = try device.open()
    try FileManager.default.removeItem(at: device.url)
    #expect(storeErrorCode { _ = try open(device.url) } == .inUse)
    #expect(storeErrorCode { try game.close(within: Patience.limit) } == .removed)
    try open(device.url).close()
  }

  @Test("a folder that comes back is saved to again")
  func comesBack() throws {
    let game = try device.open()
    defer { end(game) }
    try FileManager.default.moveItem(at: device.url, to: kept)
    #expect(storeErrorCode { try game.saves.capture(World(level: 3), to: .main).wait() } == .removed)
    try FileManager.default.moveItem(at: kept, to: device.url)
    try game.saves.capture(World(level: 4), to: .main).wait()
    #expect(try game.saves.load(.main) == World(level: 4))
  }

  // MARK: The way out

  @Test("`rescue` saves everything that was committed in a new folder")
  func rescues() throws {
    let game = try device.open()
    for level in 2..<5 { try game.saves.capture(World(level: level), to: .main).wait() }
    try game.wallet.earn(5, .gems, for: "start")
    try game.progress.record(4, for: .level)
    game.preferences[Self.volume] = 0.5
    try game.preferences.flush()
    try game.records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER); INSERT INTO thing VALUES (8)") }
    let versions = try game.saves.history(of: .main).map(\.id)
    try FileManager.default.removeItem(at: device.url)
    #expect(storeErrorCode { try game.saves.capture(World(level: 9), to: .main).wait() } == .removed)
    try game.rescue(to: kept)
    #expect(storeErrorCode { try game.close(within: Patience.limit) } == .removed)
    let found = try open(kept)
    defer { end(found) }
    #expect(try found.saves.load(.main) == World(level: 4))
    #expect(try found.saves.history(of: .main).map(\.id) == versions)
    #expect(found.wallet[.gems].total == 5)
    #expect(found.progress[.level] == 4)
    #expect(found.preferences[Self.volume] == 0.5)
    #expect(try found.records.read { try Int.fetchOne($0, sql: "SELECT number FROM thing") } == 8)
    #expect(found.incidents.isEmpty)
    try found.saves.capture(World(level: 9), to: .main).wait()
    #expect(try found.saves.conflict(.main) == nil)
  }

  @Test("`rescue` never writes over anything: not over a store, a file or a full folder")
  func occupied() throws {
    let before = try makeOther()
    let game = try device.open()
    try game.saves.capture(World(level: 2), to: .main).wait()
    try Removal.replacedByStore.happen(to: device.url, kept: kept, other: other)
    #expect(gameErrorCode { try game.rescue(to: device.url) } == .occupied)
    #expect(gameErrorCode { try game.rescue(to: kept) } == .occupied)
    let file = device.folder.url.appendingPathComponent("file")
    try Data("mine".utf8).write(to: file)
    #expect(gameErrorCode { try game.rescue(to: file) } == .occupied)
    #expect(try Data(contentsOf: file) == Data("mine".utf8))
    #expect(storeErrorCode { try game.close(within: Patience.limit) } == .removed)
    #expect(gameErrorCode { try game.rescue(to: other) } == .closed)
    #expect(try contents(of: device.url) == before)
    // Nothing half done is left.
    let names = try FileManager.default.contentsOfDirectory(atPath: device.folder.url.path)
    #expect(names.filter { $0.hasPrefix(".keepsake-") } == [])
  }

  // MARK: At any moment

  @Test("at any moment, a save that is acknowledged is where the folder went, and one begun afterwards throws")
  func randomMoments() async throws {
    var random = SeededGenerator(seed: 17)
    for round in 0..<TestDepth.removals {
      let removal = try #require(Removal.allCases.randomElement(using: &random))
      let delay = Double.random(in: 0...0.02, using: &random)
      try await onThread { try Self.round(round, removal, delay) }
    }
  }

  private static func round(_ round: Int, _ removal: Removal, _ delay: Double) throws {
    let test = try RemovedFolderTests()
    _ = try test.makeOther()
    let game = try test.device.open()
    let (acknowledged, isGone) = (Shared(1), Shared(false))
    let saving = WatchedThread {
      var level = 1
      while true {
        level += 1
        let wasGone = isGone.value
        do {
          try game.saves.capture(World(level: level), to: .main).wait(within: Patience.limit)
        } catch let error as StoreError where error.code == .removed {
          return
        }
        #expect(!wasGone, "round \(round), \(removal): acknowledged after the files were gone")
        acknowledged.value = level
      }
    }
    Thread.sleep(forTimeInterval: delay)
    try removal.happen(to: test.device.url, kept: test.kept, other: test.other)
    isGone.value = true
    try saving.value()
    let rescued = test.device.folder.url.appendingPathComponent("rescued")
    try game.rescue(to: rescued)
    #expect(storeErrorCode { try game.close(within: Patience.limit) } == .removed)
    for folder in removal.isKept ? [rescued, test.kept] : [rescued] {
      let found = try test.open(folder)
      // The save that threw may be there or not.
      let level = try found.saves.load(.main)?.level ?? 1
      #expect(
        (acknowledged.value...acknowledged.value + 1).contains(level),
        "round \(round), \(removal): \(level) in \(folder.lastPathComponent), acknowledged \(acknowledged.value)")
      end(found)
    }
  }
}
