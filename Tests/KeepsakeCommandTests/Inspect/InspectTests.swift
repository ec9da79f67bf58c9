#if Cloud
import FlowerGarden
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeMirror
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

@testable import KeepsakeCommand

@Suite struct InspectTests {
  @Test("a store can be inspected while the game has it open, and isn't changed by that")
  func openStore() throws {
    let world = try SyncedFolder(file: "a", text: "level 1")
    let before = try world.store.read { (try $0.facts(), try $0.outboxCount(), try $0.wallet()) }
    let reader = try StoreReader.open(at: world.state)
    let report = try reader.read { try StoreReport($0, of: reader, path: world.state.path) }
    #expect(report.slots.map(\.slot) == ["file:a"])
    let version = try #require(report.slots.first?.versions.first)
    #expect(version.head && version.downloaded && version.bytes == 7)
    #expect(version.sha256 == ContentHash(of: Data("level 1".utf8)).description)
    #expect(report.contents.map(\.bytes) == [7])
    #expect(report.waitingCommits == 1)
    #expect(report.text.contains(version.id))
    let after = try world.store.read { (try $0.facts(), try $0.outboxCount(), try $0.wallet()) }
    #expect(before == after)
    #expect(throws: StoreError.self) {
      try reader.read { transaction in
        var transaction = transaction
        try transaction.setFacts(DeviceFacts(caughtUp: true))
      }
    }
  }

  @Test("the current and an earlier version of a saved game are shown without the game")
  func savedGame() async throws {
    let store = TemporaryFolder.url("inspect")
    defer { try? FileManager.default.removeItem(at: store) }  // A leftover folder does no harm.
    let garden = try FlowerGarden(store: store)
    try await garden.change(pot: "sill") { $0.plant("tulip", id: "1") }
    try await garden.change(pot: "sill") { $0.plant("rose", id: "2") }
    guard case .archive(let now) = try InspectCommand.look(at: store.path, slot: "pot/sill") else {
      Issue.record("no archive")
      return
    }
    #expect(now.text().contains("tulip") && now.text().contains("rose"))
    let first = try #require(try garden.game.saves.history(of: "pot/sill").last)
    guard
      case .archive(let before) = try InspectCommand.look(
        at: store.path, slot: "pot/sill", version: first.id.description)
    else {
      Issue.record("no archive")
      return
    }
    #expect(before.text().contains("tulip") && !before.text().contains("rose"))
    #expect(throws: CommandFailure.self) { try InspectCommand.look(at: store.path, slot: "pot/none") }
    #expect(throws: CommandFailure.self) { try InspectCommand.look(at: store.path, slot: "pot/sill", version: "x") }
    try garden.game.close()
  }

  @Test("preferences are shown by name and value, as text and as JSON, with unprintable characters escaped")
  func preferences() throws {
    let store = TemporaryFolder.url("inspect")
    defer { try? FileManager.default.removeItem(at: store) }  // A leftover folder does no harm.
    let game = try GameData.open("com.example.garden", at: store)
    game.preferences[PreferenceKey("volume", default: 1.0)] = 0.25
    game.preferences[PreferenceKey("nick", default: "")] = "Ada"
    game.preferences[PreferenceKey("order", default: [0])] = [3, 1]
    game.preferences[PreferenceKey("hat\u{202E}", default: "", synced: true)] = "crown"
    try game.preferences.flush()
    guard case .store(let report) = try InspectCommand.look(at: store.path) else {
      Issue.record("no store")
      return
    }
    #expect(report.preferences.map(\.name) == ["nick", "order", "volume", "hat\u{202E}"])
    #expect(report.preferences.map(\.value) == ["\"Ada\"", "[3, 1]", "0.25", "\"crown\""])
    #expect(report.preferences.map(\.type) == ["string", "[int64]", "double", "string"])
    #expect(report.preferences.map(\.synced) == [false, false, false, true])
    #expect(report.text.contains("\n  volume = 0.25 (double)\n"))
    #expect(report.text.contains("hat\\u{202e} = \"crown\" (string), synced"))
    let again = try JSONDecoder().decode(StoreReport.self, from: JSONEncoder().encode(report))
    #expect(again.preferences == report.preferences)
    try game.close()
  }

  @Test("a store is recognized by its folder, by the folder that it mirrors and by its database file")
  func kinds() throws {
    let world = try SyncedFolder(file: "a", text: "x")
    let database = world.state.appendingPathComponent("store.sqlite")
    for path in [world.state.path, world.folder.path, database.path] {
      guard case .store = try InputKind(of: path) else {
        Issue.record("\(path) is not taken for a store")
        continue
      }
    }
  }

  @Test(
    "missing files, files that aren't saves and other programs' databases are reported as such",
    arguments: [
      ("nothing", CommandFailure.Kind.noInput), ("text", .data), ("empty", .data), ("folder", .noInput),
      ("other.sqlite", .data),
      ("cut.sqlite", .data),
    ])
  func foreign(_ name: String, _ kind: CommandFailure.Kind) async throws {
    let root = TemporaryFolder.url("inspect")
    // A leftover folder does no harm.
    defer { try? FileManager.default.removeItem(at: root) }
    try FileManager.default.createDirectory(
      at: root.appendingPathComponent("folder"), withIntermediateDirectories: true)
    try Data("once upon a time, long before".utf8).write(to: root.appendingPathComponent("text"))
    try Data().write(to: root.appendingPathComponent("empty"))
    var header = Data("SQLite format 3\0".utf8)
    try header.write(to: root.appendingPathComponent("cut.sqlite"))
    header.append(Data(repeating: 0, count: 84))
    header.replaceSubrange(68..<72, with: Data("ELSE".utf8))
    try header.write(to: root.appendingPathComponent("other.sqlite"))
    let failure = #expect(throws: CommandFailure.self) {
      do {
        _ = try InspectCommand.look(at: root.appendingPathComponent(name).path)
      } catch {
        throw CommandFailure(error)
      }
    }
    #expect(failure?.kind == kind, "\(name): \(failure?.message ?? "")")
  }

  @Test("a device or a pipe is refused, and neither blocks the command nor fills the memory")
  func noPlainFile() throws {
    let pipe = TemporaryFolder.url("pipe").path
    try #require(mkfifo(pipe, 0o600) == 0)
    // A leftover pipe does no harm.
    defer { try? FileManager.default.removeItem(atPath: pipe) }
    for path in [pipe, "/dev/zero"] {
      let failure = #expect(throws: CommandFailure.self) { _ = try InspectCommand.look(at: path) }
      #expect(failure?.kind == .data, "\(path)")
    }
  }

  @Test("output that JSON can't represent is a failure")
  func noJSON() {
    struct Unspeakable: Encodable {
      func encode(to encoder: any Encoder) throws { throw CocoaError(.coderInvalidValue) }
    }
    let failure = #expect(throws: CommandFailure.self) { try Output.document(Unspeakable()) }
    #expect(failure?.kind == .software)
  }

  @Test("a failed inspection of a damaged store doesn't advise another one; other advice is kept")
  func advice() {
    let failure = CommandFailure(StoreError(.damaged, "x"))
    #expect(failure.next?.contains("keepsake inspect") == true)
    #expect(failure.withoutInspectAdvice.next == nil)
    #expect(CommandFailure(StoreError(.inUse, "x")).withoutInspectAdvice.next?.contains("stop the game") == true)
  }

  @Test("errors of stores, transports and mirrors have the exit status that scripts rely on")
  func exitCodes() {
    #expect(CommandFailure(StoreError(.inUse, "x")).kind == .temporary)
    #expect(CommandFailure(StoreError(.newerFormat, "x")).kind == .newer)
    #expect(CommandFailure(StoreError(.damaged, "x")).kind == .data)
    #expect(CommandFailure(StoreError(.diskFull, "x")).kind == .io)
    #expect(CommandFailure(TransportFailure(.unreachable, "x")).kind == .unavailable)
    #expect(CommandFailure(TransportFailure(.unauthorized, "x")).kind == .permission)
    #expect(CommandFailure(MirrorError(.folder, "x")).kind == .noInput)
  }

  @Test("unprintable characters are escaped, and sizes are shown with their unit")
  func printable() {
    #expect(Printable.text("a\u{1B}[2Jb\u{202E}c\n") == "a\\u{1b}[2Jb\\u{202e}c\\u{a}")
    #expect(Printable.text("Garden 花園 é") == "Garden 花園 é")
    #expect(Printable.size(1) == "1 byte")
    #expect(Printable.size(1_536) == "1.5 KiB")
  }
}

/// A folder as `keepsake sync` leaves it: one file, and a store in it with the file's contents.
private final class SyncedFolder {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("keepsake-inspect-\(UUID().uuidString)")
  let state: URL
  let store: Store

  init(file: String, text: String) throws {
    state = folder.appendingPathComponent(".keepsake")
    try FileManager.default.createDirectory(at: state, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: folder.appendingPathComponent(file))
    store = try Store.open(at: state)
    let writer = store.writer
    try store.write { transaction in
      var random = SystemRandomNumberGenerator()
      let draft = SaveDraft(
        id: VersionID(using: &random), slot: "file:" + file, parents: .everyHead,
        contents: [try transaction.keepContent(Data(text.utf8))],
        length: text.utf8.count, savedAtMilliseconds: 1)
      try DeviceCommit.apply(CommitDraft(saves: [draft]), now: 1, writer: writer, in: &transaction, using: &random)
    }
  }

  deinit {
    // A leftover folder does no harm.
    try? FileManager.default.removeItem(at: folder)
  }
}
#endif
