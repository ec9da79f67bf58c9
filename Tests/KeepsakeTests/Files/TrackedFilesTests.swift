import Foundation
import GRDB
import Keepsake
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

/// A file that the game's own code writes: each of its states can be restored.
@Suite struct TrackedFilesTests {
  let device: Device
  private var url: URL { device.folder.url.appendingPathComponent("level.dat") }

  init() throws { device = try Device() }

  private func put(_ text: String) throws { try Data(text.utf8).write(to: url) }
  private var text: String? { (try? Data(contentsOf: url)).map { String(decoding: $0, as: UTF8.self) } }

  @Test("each version of a file is kept over restarts and restored byte for byte, and restoring can be undone")
  func versions() throws {
    var game = try device.open()
    try put("one")
    var file = try game.files.track(url)
    for state in ["two", "three"] {
      try put(state)
      #expect(try file.hasChanged())
      try file.capture().wait()
      #expect(try !file.hasChanged())
    }
    try game.close()

    game = try device.open()
    defer { end(game) }
    try put("written while the game was away")
    file = try game.files.track(url)
    let history = try file.history()
    #expect(history.count == 4 && history.allSatisfy { $0.slot == "level.dat" })
    let states = try history.map { String(decoding: try file.data(of: $0.id), as: UTF8.self) }
    #expect(states == ["written while the game was away", "three", "two", "one"])
    try put("not captured yet")
    try file.restore(history[3].id)
    #expect(text == "one")
    #expect(try !file.hasChanged())
    // The replaced content was kept.
    let before = try #require(try file.history().first { try file.data(of: $0.id) == Data("not captured yet".utf8) })
    try file.restore(before.id)
    #expect(text == "not captured yet")
    #expect(try game.files.names() == ["level.dat"])
  }

  @Test("a file isn't written if its current content can't be kept first")
  func lostBefore() throws {
    let game = try device.open()
    defer { end(game) }
    try put("one")
    let file = try game.files.track(url)
    try file.capture().wait()
    try put("drawn by hand")
    // Another connection begins a write transaction, and doesn't end it.
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(
      path: device.url.appendingPathComponent(Store.databaseName).path, configuration: configuration)
    try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }
    #expect(storeErrorCode { try file.write(Data("generated".utf8)) } == .inUse)
    #expect(text == "drawn by hand")
    try other.inDatabase { try $0.execute(sql: "ROLLBACK") }
    try other.close()
    try file.write(Data("generated".utf8)).wait()
    let states = try file.history().map { String(decoding: try file.data(of: $0.id), as: UTF8.self) }
    #expect(states == ["generated", "drawn by hand", "one"])
  }

  @Test("calls with a slot that is named like a file's versions are refused, and leave the versions unchanged")
  func apartFromSaves() throws {
    let game = try device.open()
    defer { end(game) }
    try put("one")
    let file = try game.files.track(url)
    let slot = Slot<World>("\u{1}file/level.dat")
    let real = try file.history()
    #expect(gameErrorCode { try game.saves.capture(World(), to: slot) } == .misuse)
    #expect(gameErrorCode { try game.saves.delete(slot) } == .misuse)
    #expect(gameErrorCode { _ = try game.saves.load(slot) } == .misuse)
    #expect(gameErrorCode { try game.saves.setMetadata(SaveMetadata(title: "x"), of: slot) } == .misuse)
    #expect(gameErrorCode { try game.checkpoint { try $0.save(World(), to: slot) } } == .misuse)
    try game.saves.capture(World(), to: .main).wait()
    #expect(gameErrorCode { try game.saves.copy(.main, to: slot) } == .misuse)
    #expect(gameErrorCode { try game.saves.capture(World(), to: Slot("\u{1}else")) } == .misuse)
    #expect(try file.history() == real)
    try put("two")
    try file.capture().wait()
    #expect(try file.history().count == 2)
  }

  @Test("capturing a file that hasn't changed adds no version")
  func unchanged() throws {
    let game = try device.open()
    defer { end(game) }
    try put("same")
    let file = try game.files.track(url)
    let first = try file.capture().wait()
    try put("same")
    #expect(try file.capture().wait().id == first.id)
    #expect(try file.history().count == 1)
  }

  @Test("versions of files aren't listed as saves, and those of a local file aren't queued for a cloud")
  func staysHere() throws {
    let game = try device.open()
    try put("mine")
    let file = try game.files.track(url, syncs: false)
    try file.write(Data("more".utf8)).wait()
    try game.saves.capture(World(level: 2), to: .main).wait()
    #expect(try game.saves.list().map(\.name) == ["main"])
    try game.close()
    let store = try Store.open(at: device.url)
    defer { try? store.close() }
    try store.read { transaction throws in
      let groups = try transaction.outbox(limit: 100)
      let slots = try groups.flatMap(\.versions).map { try transaction.version($0)?.record.slot }
      #expect(slots == ["main"])
      #expect(try transaction.unacknowledgedVersions().count == 1)
    }
  }

  @Test("versions of a local file survive the repair of the store, and still aren't queued for a cloud")
  func afterDamage() throws {
    var game = try device.open()
    try put("mine")
    try game.files.track(url, syncs: false).write(Data("more".utf8)).wait()
    try game.saves.capture(World(level: 2), to: .main).wait()
    try game.close()
    // One row is no longer valid: all others are copied into a new database.
    let database = device.url.appendingPathComponent("store.sqlite")
    var bytes = try Data(contentsOf: database)
    let place = try #require(bytes.range(of: Data("wallet".utf8)))
    bytes.replaceSubrange(place, with: Data("wallEt".utf8))
    try bytes.write(to: database)
    game = try device.open()
    #expect(game.incidents.contains { $0.kind == .recovered })
    let file = try game.files.track(url)
    #expect(try file.history().count == 2)
    try game.close()
    let store = try Store.open(at: device.url)
    defer { try? store.close() }
    try store.read { transaction throws in
      let slots = try transaction.outbox(limit: 100).flatMap(\.versions).map {
        try transaction.version($0)?.record.slot
      }
      #expect(slots == ["main"])
    }
  }

  @Test("a file is written as a whole, and its previous content is kept as a version")
  func writes() throws {
    let game = try device.open()
    defer { end(game) }
    let file = try game.files.track(url)
    #expect(try file.history().isEmpty && file.hasChanged())
    try file.write(Data("first".utf8)).wait()
    try put("changed by hand")
    try file.write(Data("second".utf8)).wait()
    #expect(text == "second")
    #expect(
      try file.history().map { String(decoding: try file.data(of: $0.id), as: UTF8.self) } == [
        "second", "changed by hand", "first",
      ])
  }

  @Test("folders, links, devices, invalid names and missing files throw typed errors, and nothing is kept of them")
  func mistakes() throws {
    let game = try device.open()
    defer { end(game) }
    let folder = device.folder.url.appendingPathComponent("folder")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let link = device.folder.url.appendingPathComponent("link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: URL(fileURLWithPath: "/etc/passwd"))
    for bad in [folder, link, URL(fileURLWithPath: "/dev/zero")] {
      #expect(gameErrorCode { try game.files.track(bad) } == .misuse, "\(bad.path)")
    }
    try put("x")
    for name in ["", "a\u{1}b", "line\nbreak", String(repeating: "n", count: 2_000)] {
      #expect(gameErrorCode { try game.files.track(url, as: name) } == .misuse, "\(name.prefix(20))")
    }
    let file = try game.files.track(url)
    #expect(
      gameErrorCode { try game.files.track(device.folder.url.appendingPathComponent("other"), as: "level.dat") }
        == .misuse)
    try FileManager.default.removeItem(at: url)
    #expect(gameErrorCode { try file.capture() } == .missing)
    #expect(gameErrorCode { _ = try file.data(of: VersionID(high: 1, low: 2)) } == .missing)
    #expect(gameErrorCode { try file.restore(VersionID(high: 1, low: 2)) } == .missing)
    #expect(try file.history().count == 1)
    #expect(try game.files.names() == ["level.dat"])
    try file.restore(try file.history()[0].id)
    #expect(text == "x")
    // Untracking makes the name available to another file.
    game.files.untrack(file)
    try game.files.track(device.folder.url.appendingPathComponent("other"), as: "level.dat")
  }

  @Test("a file above the size limit is refused, and a write that fails adds no version")
  func limits() throws {
    let game = try device.open()
    defer { end(game) }
    #expect(FileManager.default.createFile(atPath: url.path, contents: nil))
    let handle = try FileHandle(forWritingTo: url)
    try handle.truncate(atOffset: 257 << 20)
    try handle.close()
    #expect(gameErrorCode { try game.files.track(url) } == .tooLarge)
    let nowhere = URL(fileURLWithPath: "/proc/nowhere/level.dat")
    let file = try game.files.track(nowhere)
    #expect(storeErrorCode { try file.write(Data("x".utf8)) } == .missing)
    #expect(try file.history().isEmpty)
  }
}
