import Foundation
import GRDB
import KeepsakePlatform
import KeepsakeStore
import TestSupport
import Testing

@testable import Keepsake

@Suite struct GameDataTests {
  private static let volume = PreferenceKey("volume", default: 1.0)

  let device: Device

  init() throws { device = try Device() }

  @Test("a folder can't be opened twice, the error says what to do, and it can be opened again once it is closed")
  func exclusive() throws {
    let game = try device.open()
    let error = #expect(throws: StoreError.self) { try device.open() }
    #expect(
      error?.code == .inUse
        && error?.message.hasSuffix(": use one GameData for the whole game, or close() the first") == true)
    try game.close()
    try game.close()
    try device.open().close()
  }

  @Test("data is stored in the platform's folders, and names that could lead elsewhere are refused")
  func places() throws {
    #if os(Linux)
    #expect(try StorageFolders.xdg(.data, ["XDG_DATA_HOME": "/data", "HOME": "/home/a"]).path == "/data")
    #expect(
      try StorageFolders.xdg(.data, ["XDG_DATA_HOME": "relative", "HOME": "/home/a"]).path == "/home/a/.local/share")
    #expect(gameErrorCode { _ = try StorageFolders.xdg(.data, [:]) } == .misuse)
    #endif
    for (kind, path) in zip(StorageFolders.Kind.allCases, ["/d", "/c", "/s", "/k"]) {
      let variables = ["XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k"]
      #expect(try StorageFolders.xdg(kind, variables).path == path)
    }
    let portable = try StorageFolders("com.example.space", under: device.folder.url)
    let cache = try portable.folder(for: .cache)
    #expect(FileManager.default.fileExists(atPath: cache.path) && cache.path.hasPrefix(device.folder.url.path))
    #expect(StorageFolders.Kind.allCases.filter(\.isBackedUp) == [.data, .settings])
    #expect(
      storeErrorCode { _ = try StorageFolders("a", under: URL(fileURLWithPath: "/proc/nowhere")).folder(for: .data) }
        == .notPermitted)
    for name in [
      "", ".", "..", "../x", "a/b", "a\\b", "a:b", "x\u{0}", ".hidden", "dot.", String(repeating: "n", count: 300),
    ] {
      #expect(gameErrorCode { _ = try GameData.open(name) } == .misuse, "\(name)")
      #expect(gameErrorCode { _ = try GameData.open("com.example.space", profile: name) } == .misuse, "\(name)")
    }
    #expect(try StorageFolders("com.example.space").profile("Ä b").path.hasSuffix("/com.example.space/Ä b"))
  }

  @Test("each system has its own folders, and each kind of file its own folder on it", arguments: HostSystem.allCases)
  func places(on system: HostSystem) throws {
    let folders = try StorageFolders("com.example.space")
    let variables = ["HOME": "/home/a", "LOCALAPPDATA": "/Users/a/Local"]
    let places = try StorageFolders.Kind.allCases.map { try folders.url(for: $0, on: system, variables).path }
    #expect(Set(places).count == places.count)
    let data = try folders.url(for: .data, on: system, variables).path
    #expect(data.hasSuffix("/com.example.space"))
    let cache = try folders.url(for: .cache, on: system, variables).path
    switch system {
    case .linux, .android:
      #expect(data == "/home/a/.local/share/com.example.space" && cache == "/home/a/.cache/com.example.space")
    case .windows:
      #expect(data == "/Users/a/Local/com.example.space" && cache == "/Users/a/Local/com.example.space/.cache")
      #expect(gameErrorCode { _ = try folders.url(for: .data, on: system, ["HOME": "/home/a"]) } == .misuse)
    case .macOS, .iOS, .tvOS, .watchOS, .visionOS:
      #expect(cache.hasSuffix("/com.example.space/.cache"))
    }
  }

  @Test("every call on a closed game throws `closed`, its streams end, and values are shown as they were")
  func closed() async throws {
    let game = try device.open()
    let changes = game.changes
    try game.progress.record(2, for: .level)
    try game.wallet.earn(7, .gems, for: "start")
    game.preferences[Self.volume] = 0.5
    let notes = try TemporaryFolder()
    let file = try game.files.track(notes.url.appendingPathComponent("notes.txt"))
    try file.write(Data("a".utf8))
    // Queued, and durable when the data is closed.
    try game.checkpoint { try $0.earn(5, .gems, for: "queued") }
    try game.close()
    let calls: [(String, () throws -> Void)] = [
      ("capture", { try game.saves.capture(World(), to: .main) }), ("load", { _ = try game.saves.load(.main) }),
      ("delete", { try game.saves.delete(.main) }), ("history", { _ = try game.saves.history(of: .main) }),
      ("conflict", { _ = try game.saves.conflict(.main) }),
      ("status", { _ = try game.saves.status(of: .main) }),
      ("checkpoint", { try game.checkpoint { try $0.save(World(), to: .main) } }),
      ("earn", { try game.wallet.earn(1, .gems, for: "x") }), ("spend", { try game.wallet.spend(1, .gems, for: "x") }),
      ("ledger", { _ = try game.wallet.ledger() }), ("record", { try game.progress.record(3, for: .level) }),
      ("set", { try game.preferences.set(1, for: Self.volume) }), ("file", { try file.capture() }),
      ("submit", { try game.scores.submit(1, to: Board("easy", order: .descending)) }),
      ("records", { try game.records.write { try $0.execute(sql: "SELECT 1") } }),
      ("reseal", { try game.reseal() }), ("rescue", { try game.rescue(to: TemporaryFolder.url()) }),
    ]
    for (name, call) in calls { #expect(gameErrorCode(call) == .closed, "\(name)") }
    for call in [{ try await game.cloud.sync() }, { try await game.cloud.fetchChanges(within: .seconds(1)) }] {
      let error = await #expect(throws: GameDataError.self) { try await call() }
      #expect([.closed, .notConnected].contains(error?.code))
    }
    #expect(game.progress[.level] == 2)
    #expect(game.wallet[.gems].total == 12)
    #expect(game.preferences[Self.volume] == 0.5)
    #expect(game.incidents.isEmpty)
    // What can't throw reports an incident.
    game.preferences[Self.volume] = 1
    #expect(game.preferences[Self.volume] == 0.5)
    #expect(game.incidents.map(\.kind) == [.failedCommit])
    for await change in changes { Issue.record("\(change)") }
  }

  @Test("data belongs to the game that opened it first, until it is renamed")
  func belongsToGame() throws {
    try device.open().close()
    let renamed = "com.example.renamed"
    func open(_ id: String) throws { try GameData.open(id, at: device.url).close() }
    #expect(gameErrorCode { try open(renamed) } == .otherGame("com.example.space"))
    #expect(
      gameErrorCode { try GameData.rename("com.example.other", to: renamed, at: device.url) }
        == .otherGame("com.example.space"))
    #expect(gameErrorCode { try GameData.rename("com.example.space", to: "..", at: device.url) } == .misuse)
    #expect(storeErrorCode { try GameData.rename("a", to: "b", at: TemporaryFolder.url()) } == .missing)
    try open("com.example.space")
    // A game may call it at each start.
    for _ in 0..<2 { try GameData.rename("com.example.space", to: renamed, at: device.url) }
    #expect(gameErrorCode { try open("com.example.space") } == .otherGame(renamed))
    try open(renamed)
    // Data from before identifiers were stored.
    let old = device.folder.url.appendingPathComponent("old")
    try Store.open(at: old).close()
    try GameData.open(renamed, at: old).close()
    #expect(gameErrorCode { try GameData.open("com.example.space", at: old).close() } == .otherGame(renamed))
  }

  @Test("one call writes a file, and one reads it; missing, damaged and too new files have different results")
  func files() throws {
    let url = device.folder.url.appendingPathComponent("world.save")
    #expect(try Archive.read(World.self, from: url) == nil)
    try Archive.write(World(level: 12), to: url)
    #expect(try Archive.read(World.self, from: url)?.level == 12)
    var bytes = try Data(contentsOf: url)
    bytes[bytes.count / 2] ^= 4
    try bytes.write(to: url)
    #expect {
      try Archive.read(World.self, from: url)
    } throws: { ($0 as? ArchiveError)?.code == .damaged }
    try Archive.write(Newer(), to: url)
    #expect {
      try Archive.read(Older.self, from: url)
    } throws: { ($0 as? ArchiveError)?.code == .tooNew }
    var limits = ArchiveLimits.standard
    limits.archiveBytes = 10
    #expect {
      try Archive.read(Newer.self, from: url, limits: limits)
    } throws: { ($0 as? ArchiveError)?.code == .limit }
    #expect(throws: StoreError.self) { try Archive.read(World.self, from: device.folder.url) }
    #expect(throws: StoreError.self) { try Archive.write(World(), to: url.appendingPathComponent("below a file")) }
  }
}
