#if Cloud
import Foundation
import KeepsakeMirror
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake sync --folder`: no server, only a folder that the devices share.
@Suite struct SharedFolderSyncTests {
  /// Provides an empty shared folder, and another location to move it to.
  private func withShared(_ body: (URL, URL) async throws -> Void) async throws {
    let root = TemporaryFolder.url("shared")
    let shared = root.appendingPathComponent("Dropbox")
    try FileManager.default.createDirectory(at: shared, withIntermediateDirectories: true)
    // A leftover folder does no harm.
    defer { try? FileManager.default.removeItem(at: root) }
    try await body(shared, root.appendingPathComponent("aside"))
  }

  private func failure(of folder: SyncFolder, with place: SyncLocation? = nil) async -> CommandFailure? {
    do {
      try await folder.sync(with: place)
      return nil
    } catch {
      return CommandFailure(error)
    }
  }

  @Test("each version has the name of the device that made it, so that it has one color after every start of a sync")
  func device() async throws {
    try await withShared { shared, _ in
      let folder = try SyncFolder(shared: shared)
      for level in 1...3 {
        try folder.write("level \(level)", to: "a")
        try await folder.sync()
      }
      let reader = try StoreReader.open(at: folder.state)
      let (report, graph) = try reader.read {
        (try SlotReport("file:a", in: $0), try HistoryGraph(of: "file:a", in: $0))
      }
      #expect(report.versions.map(\.device) == Array(repeating: DeviceName.current, count: 3))
      #expect(Set(report.versions.map(\.writer)).count == 3 && graph.makers.count == 1)
    }
  }

  @Test("what could not be synced is counted in English")
  func counts() {
    for (troubled, words) in [(1, "1 file could not be synced"), (2, "2 files could not be synced")] {
      var lines: [String] = []
      var end = SyncReporter.End(MirrorCounts())
      end.troubled = troubled
      SyncReporter(json: false) { lines.append($0) }.end(end)
      #expect(lines.last?.hasSuffix("; " + words) == true, "\(lines)")
    }
  }

  @Test("two devices that share a folder have the same saves, and agree on a save that both changed")
  func twoFolders() async throws {
    try await withShared { shared, _ in
      let (one, two) = (try SyncFolder(shared: shared), try SyncFolder(shared: shared))
      try one.write("level 1", to: "slot 1/world.sav")
      try one.write(String(repeating: "a large one ", count: 100_000), to: "large")
      try one.write("", to: "empty")
      let lines = try await one.sync()
      #expect(lines.first?["sharedFolder"] as? String == shared.path)
      let end = try #require(lines.last)
      // Nothing was sent over a network, so no number of sent bytes is reported.
      #expect(end["captured"] as? Int == 3 && end["waitingCommits"] as? Int == 0 && end["sentBytes"] == nil)
      let placed = try await two.sync()
      #expect(placed.count { $0["event"] as? String == "placed" } == 3)
      #expect(try two.files() == one.files())

      try one.write("from one", to: "slot 1/world.sav")
      try two.write("from two", to: "slot 1/world.sav")
      var told: [[String: any Sendable]] = []
      for folder in [one, two, one] { told += try await folder.sync() }
      #expect(told.contains { $0["event"] as? String == "conflict" })
      #expect(try two.files() == one.files())

      try two.write("played on", to: "slot 1/world.sav")
      try two.remove("empty")
      for folder in [two, one] { try await folder.sync() }
      #expect(try one.files().keys.sorted() == ["large", "slot 1/world.sav"])
      #expect(try one.files()["slot 1/world.sav"] == "played on")
      let report = try StoreReader.open(at: one.state).read { try SlotReport("file:slot 1/world.sav", in: $0) }
      #expect(report.versions.count == 4 && !report.conflict)
    }
  }

  @Test("saves in a folder that this device makes a cloud are nobody's to judge; in one that has saves, they are")
  func newCloud() async throws {
    try await withShared { shared, _ in
      func open() async throws -> (isNew: Bool, caughtUp: Bool) {
        let root = TemporaryFolder.url("state")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        let state = try SyncState(folder: root.path, named: nil)
        let store = try Store.open(at: state.url)
        defer { #expect(throws: Never.self) { try store.close() } }
        let way = try await SyncWay.open(.folder(shared), apartFrom: [root], state: state, store: store)
        return (way.isNew, try store.read { try $0.facts().caughtUp })
      }
      #expect(try await open() == (true, true))
      #expect(try await open() == (false, false))

      // The other device's save stays the newest, though this one's is younger.
      let (one, two) = (try SyncFolder(shared: shared), try SyncFolder(shared: shared))
      try one.write("long played", to: "a")
      try await one.sync()
      try two.write("just begun", to: "a")
      for folder in [two, one] { try await folder.sync() }
      #expect(try one.files() == ["a": "long played"])
    }
  }

  @Test("while the command runs on two devices, changes in one folder reach the other, until it is stopped")
  func running() async throws {
    try await withShared { shared, _ in
      let (one, two) = (try SyncFolder(shared: shared), try SyncFolder(shared: shared))
      try one.write("before", to: "a")
      for folder in [one, two] { try await folder.sync() }
      try one.write("played on", to: "a")
      let stops = (AsyncStream.makeStream(of: Int32.self), AsyncStream.makeStream(of: Int32.self))
      async let first = one.sync(once: false, stop: stops.0.stream)
      async let second = two.sync(once: false, stop: stops.1.stream)
      try await until("arriving") { try two.files()["a"] == "played on" }
      try one.write("while both run", to: "b")
      try await until("arriving there") { try two.files()["b"] == "while both run" }
      try two.write("and back", to: "b")
      try await until("arriving here") { try one.files()["b"] == "and back" }
      for stop in [stops.0.continuation, stops.1.continuation] {
        stop.yield(15)
        stop.finish()
      }
      let (ours, theirs) = try await (first, second)
      #expect(ours.last?["event"] as? String == "end" && theirs.last?["event"] as? String == "end")
    }
  }

  @Test("a missing or emptied shared folder deletes nothing, and sync continues when the folder is back")
  func away() async throws {
    try await withShared { shared, aside in
      let (one, two) = (try SyncFolder(shared: shared), try SyncFolder(shared: shared))
      #expect(await failure(of: one, with: .folder(aside))?.kind == .noInput)
      #expect(
        !FileManager.default.fileExists(atPath: aside.path), "it may be the mount point of a disk that isn't mounted")
      try one.write("hundred hours", to: "a")
      for folder in [one, two] { try await folder.sync() }
      try FileManager.default.moveItem(at: shared, to: aside)
      try one.write("hundred and one", to: "a")
      #expect(await failure(of: one)?.kind == .unavailable)
      try FileManager.default.createDirectory(at: shared, withIntermediateDirectories: true)
      #expect(await failure(of: one)?.kind == .unavailable)
      #expect(try FileManager.default.contentsOfDirectory(atPath: shared.path).isEmpty)
      #expect(try one.files() == ["a": "hundred and one"])
      try FileManager.default.removeItem(at: shared)
      try FileManager.default.moveItem(at: aside, to: shared)
      for folder in [one, two] { try await folder.sync() }
      #expect(try two.files() == ["a": "hundred and one"])
    }
  }

  @Test("another player's shared folder is refused, and the saves of the two aren't mixed")
  func otherPlayer() async throws {
    try await withShared { shared, aside in
      let mine = try SyncFolder(shared: shared)
      try mine.write("mine", to: "a")
      try await mine.sync()
      try FileManager.default.createDirectory(at: aside, withIntermediateDirectories: true)
      let theirs = try SyncFolder(shared: aside)
      try theirs.write("theirs", to: "b")
      try await theirs.sync()
      let refused = await failure(of: mine, with: .folder(aside))
      #expect(refused?.kind == .permission && refused?.next?.contains("--app-key") == false)
      #expect(try mine.files() == ["a": "mine"])
      try await theirs.sync()
      #expect(try theirs.files() == ["b": "theirs"])
    }
  }

  @Test("saves that are synced with a server aren't synced with a shared folder, nor the other way round")
  func otherKind() async throws {
    try await withShared { shared, _ in
      // Nothing listens at this address: the command refuses before it connects.
      let url = try #require(URL(string: "http://127.0.0.1:9"))
      let first = try SyncFolder(shared: shared)
      try first.write("mine", to: "a")
      try await first.sync()
      #expect(await failure(of: first, with: .server(url, appKey: "key", entry: .register))?.kind == .data)
      let second = try SyncFolder(shared: shared)
      var random = SystemRandomNumberGenerator()
      let credentials = CloudCredentials(
        url: url, device: DeviceID(using: &random), player: PlayerID(using: &random),
        container: ContainerID(using: &random), token: "token"
      )
      try SyncState(folder: second.root.path, named: nil).keep(credentials)
      #expect(await failure(of: second)?.kind == .data)
      #expect(try second.files().isEmpty)
    }
  }

  @Test("a shared folder inside or around the saves, also through a link, is refused and not written to")
  func insideEachOther() async throws {
    try await withShared { shared, aside in
      let manager = FileManager.default
      let saves = shared.deletingLastPathComponent().appendingPathComponent("Games/Saves")
      let inside = saves.appendingPathComponent("slots")
      try manager.createDirectory(at: inside, withIntermediateDirectories: true)
      try manager.createSymbolicLink(at: aside, withDestinationURL: saves)
      let elsewhere = shared.appendingPathComponent("state")
      // Only opens the connection: a sync of such a folder would never end.
      func failure(sharing place: URL, state named: URL? = nil) async throws -> CommandFailure? {
        let state = try SyncState(folder: saves.path, named: named?.path)
        let store = try Store.open(at: state.url)
        defer { #expect(throws: Never.self) { try store.close() } }
        do {
          _ = try await SyncWay.open(.folder(place), apartFrom: [saves], state: state, store: store)
          return nil
        } catch {
          return CommandFailure(error)
        }
      }
      for place in [saves, inside, saves.deletingLastPathComponent(), aside, aside.appendingPathComponent("slots")] {
        #expect(try await failure(sharing: place)?.kind == .data, "\(place.path)")
      }
      #expect(try await failure(sharing: shared, state: elsewhere)?.kind == .data)
      #expect(try manager.contentsOfDirectory(atPath: inside.path).isEmpty)
      // A folder whose path only begins with the same text is a different one.
      let beside = URL(fileURLWithPath: saves.path + " shared")
      try manager.createDirectory(at: beside, withIntermediateDirectories: true)
      #expect(try await failure(sharing: beside) == nil)
    }
  }

  @Test("the command requires a server or a folder, and refuses both together")
  func options() async throws {
    try await withShared { shared, _ in
      let folder = try SyncFolder(shared: shared)
      try folder.write("mine", to: "a")
      let path = folder.root.path
      for wrong in [
        [], ["--cloud", "http://127.0.0.1:9"], ["--app-key", "key"],
        ["--folder", shared.path, "--cloud", "http://127.0.0.1:9"],
        ["--folder", shared.path, "--app-key", "key"], ["--folder", shared.path, "--pair"],
        ["--folder", shared.path, "--join", "CODE"],
      ] {
        #expect(await status(of: SyncCommand.self, [path, "--once"] + wrong) == 64, "\(wrong)")
      }
      #expect(await status(of: SyncCommand.self, [path, "--once", "--json", "--folder", shared.path]) == 0)
      let other = try SyncFolder(shared: shared)
      try await other.sync()
      #expect(try other.files() == ["a": "mine"])
    }
  }
}
#endif
