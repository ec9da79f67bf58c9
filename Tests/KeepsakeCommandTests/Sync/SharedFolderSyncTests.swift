#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake sync --folder`: no server, only a folder that the devices share.
@Suite struct SharedFolderSyncTests {
  /// An empty shared folder, and another place to put it aside.
  private func withShared(_ body: (URL, URL) async throws -> Void) async throws {
    let root = TemporaryFolder.url("shared")
    let shared = root.appendingPathComponent("Dropbox")
    try FileManager.default.createDirectory(at: shared, withIntermediateDirectories: true)
    // A folder of a test that stays behind harms nobody.
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

  @Test(
    "two devices that share a folder have the same saves, byte for byte, and what both changed ends the same on both")
  func twoFolders() async throws {
    try await withShared { shared, _ in
      let (one, two) = (try SyncFolder(shared: shared), try SyncFolder(shared: shared))
      try one.write("level 1", to: "slot 1/world.sav")
      try one.write(String(repeating: "a large one ", count: 100_000), to: "large")
      try one.write("", to: "empty")
      let lines = try await one.sync()
      #expect(lines.first?["shared"] as? String == shared.path)
      let end = try #require(lines.last)
      // Nothing went over a wire, and nothing is said of one.
      #expect(end["captured"] as? Int == 3 && end["waiting"] as? Int == 0 && end["bytesSent"] == nil)
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

  @Test("while it runs, what changes in one folder is in the other, until it is stopped")
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

  @Test("a shared folder that isn't there, or has been emptied, deletes nothing; when it is back all goes on")
  func away() async throws {
    try await withShared { shared, aside in
      let (one, two) = (try SyncFolder(shared: shared), try SyncFolder(shared: shared))
      #expect(await failure(of: one, with: .folder(aside))?.kind == .noInput)
      #expect(
        !FileManager.default.fileExists(atPath: aside.path), "it may be the mount point of a disk that isn't here")
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

  @Test("the folder of another player is refused, and nothing of the two is mixed")
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

  @Test("saves of a server's player aren't synced with a folder, nor the other way round")
  func otherKind() async throws {
    try await withShared { shared, _ in
      // Nobody listens there: it is refused before anybody is asked.
      let url = try #require(URL(string: "http://127.0.0.1:9"))
      let first = try SyncFolder(shared: shared)
      try first.write("mine", to: "a")
      try await first.sync()
      #expect(await failure(of: first, with: .server(url, appKey: "key", joinCode: nil))?.kind == .data)
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

  @Test(
    "a shared folder inside of the saves, around them or through a link to them is refused, and nothing is put there")
  func insideEachOther() async throws {
    try await withShared { shared, aside in
      let manager = FileManager.default
      let saves = shared.deletingLastPathComponent().appendingPathComponent("Games/Saves")
      let inside = saves.appendingPathComponent("slots")
      try manager.createDirectory(at: inside, withIntermediateDirectories: true)
      try manager.createSymbolicLink(at: aside, withDestinationURL: saves)
      let elsewhere = shared.appendingPathComponent("state")
      // Opened only: what it is about would go on for ever.
      func failure(sharing place: URL, state named: URL? = nil) async throws -> CommandFailure? {
        let state = try SyncState(folder: saves.path, named: named?.path)
        let store = try Store.open(at: state.url)
        defer { #expect(throws: Never.self) { try store.close() } }
        do {
          _ = try await SyncWay.open(.folder(place), saves: saves.path, state: state, store: store)
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
      // One whose name only begins like it is another one.
      let beside = URL(fileURLWithPath: saves.path + " shared")
      try manager.createDirectory(at: beside, withIntermediateDirectories: true)
      #expect(try await failure(sharing: beside) == nil)
    }
  }

  @Test("the command takes a server or a folder, not both and not neither")
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
