#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeServer
import KeepsakeStore
import KeepsakeSync
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeCommand
@testable import KeepsakeMirror

/// Whole runs of `keepsake sync --once` against a real server.
@Suite struct SyncSessionTests {
  @Test("a second device receives every save, and both devices agree on a save that both changed")
  func twoFolders() async throws {
    try await Self.withServer { server in
      let (one, two) = (try SyncFolder(server), try SyncFolder(server))
      try one.write("level 1", to: "slot 1/world.sav")
      try one.write("", to: "empty")
      let first = try await one.sync(pair: true)
      let code = try #require(first.first { $0["event"] as? String == "pairing" }?["pairingCode"] as? String)
      try await two.sync(join: code)
      #expect(try two.files() == one.files())
      #expect(try two.files().count == 2)

      try one.write("from one", to: "slot 1/world.sav")
      try two.write("from two", to: "slot 1/world.sav")
      for folder in [one, two, one] { try await folder.sync() }
      #expect(try two.files() == one.files())
      let standing = try #require(try one.files()["slot 1/world.sav"])
      #expect(["from one", "from two"].contains(standing))

      try two.write("played on", to: "slot 1/world.sav")
      try two.remove("empty")
      for folder in [two, one] { try await folder.sync() }
      #expect(try one.files() == ["slot 1/world.sav": "played on"])
      let report = try StoreReader.open(at: one.state).read { try SlotReport("file:slot 1/world.sav", in: $0) }
      #expect(report.versions.count == 4, "every version is in the history")
      #expect(!report.conflict)
    }
  }

  @Test("a running sync reports once for each captured version which other devices have it")
  func seen() async throws {
    try await Self.withServer { server in
      let (one, two) = (try SyncFolder(server), try SyncFolder(server))
      try one.write("level 1", to: "world.sav")
      let code = try #require(
        try await one.sync(pair: true).first { $0["event"] as? String == "pairing" }?["pairingCode"] as? String)
      try await two.sync(join: code)
      let (stops, stop) = AsyncStream<Int32>.makeStream()
      let printed = Printed()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await one.syncOn(stop: stops) { printed.add($0) } }
        try await until { printed.count("ready") == 1 }
        try one.write("level 2", to: "world.sav")
        try await until { printed.count("captured") == 1 }
        try await until("the first is seen") {
          try await two.sync()
          return printed.count("seen") == 1
        }
        try one.write("level 3", to: "world.sav")
        try await until { printed.count("captured") == 2 }
        try await until("the second is seen") {
          try await two.sync()
          return printed.count("seen") == 2
        }
        stop.yield(15)
        try await group.waitForAll()
      }
      let lines = try printed.lines.map {
        try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
      }
      let (kept, seen) = (
        lines.filter { $0["event"] as? String == "captured" }, lines.filter { $0["event"] as? String == "seen" }
      )
      #expect(seen.map { $0["version"] as? String } == kept.map { $0["version"] as? String })
      #expect(
        seen.allSatisfy {
          $0["path"] as? String == "world.sav" && $0["deviceNames"] as? [String] == [ProcessInfo.processInfo.hostName]
        })
    }
  }

  @Test("a file that a new device already has doesn't replace the cloud's save of that name, and both are kept")
  func firstLaunch() async throws {
    try await Self.withServer { server in
      let (one, two) = (try SyncFolder(server), try SyncFolder(server))
      try one.write("hundred hours", to: "a")
      let first = try await one.sync(pair: true)
      let code = try #require(first.first { $0["event"] as? String == "pairing" }?["pairingCode"] as? String)
      // Newer by its date, which must not count.
      try two.write("fresh start", to: "a")
      let lines = try await two.sync(join: code)
      #expect(try two.files() == ["a": "hundred hours"])
      #expect(lines.contains { $0["event"] as? String == "conflict" }, "the conflict is reported")
      try await one.sync()
      #expect(try one.files() == ["a": "hundred hours"])
      let report = try StoreReader.open(at: one.state).read { try SlotReport("file:a", in: $0) }
      #expect(report.versions.count == 2, "both versions are kept")
    }
  }

  @Test("a restored version reaches the other device")
  func restore() async throws {
    try await Self.withServer { server in
      let (one, two) = (try SyncFolder(server), try SyncFolder(server))
      try one.write("good", to: "a")
      let first = try await one.sync(pair: true)
      let code = try #require(first.first { $0["event"] as? String == "pairing" }?["pairingCode"] as? String)
      try await two.sync(join: code)
      try two.write("ruined", to: "a")
      for folder in [two, one] { try await folder.sync() }
      let history = try StoreReader.open(at: one.state).read { try $0.history(of: "file:a") }
      let good = try #require(history.last?.record.id)
      let store = try Store.open(at: one.state)
      _ = try RestoreCommand.restore(good.description, of: "file:a", in: store)
      try store.close()
      for folder in [one, two] { try await folder.sync() }
      #expect(try one.files() == ["a": "good"])
      #expect(try two.files() == ["a": "good"])
    }
  }

  @Test("a save made while the server is unreachable is kept on the device, and the sync fails as unavailable")
  func offline() async throws {
    let folder = try await Self.withServer { server in
      let folder = try SyncFolder(server)
      try await folder.sync()
      return folder
    }
    try folder.write("made offline", to: "a")
    let failure = await #expect(throws: CommandFailure.self) {
      do { try await folder.sync() } catch { throw CommandFailure(error) }
    }
    #expect(failure?.kind == .unavailable)
    let history = try StoreReader.open(at: folder.state).read { try $0.history(of: "file:a") }
    #expect(history.count == 1)
  }

  @Test("a wrong pairing code and a wrong app key are permission failures, and no save is lost")
  func refusedAccount() async throws {
    try await Self.withServer { server in
      let folder = try SyncFolder(server)
      try folder.write("mine", to: "a")
      let wrongCode = await #expect(throws: CommandFailure.self) {
        do { try await folder.sync(join: "AAAAAAAA") } catch { throw CommandFailure(error) }
      }
      #expect(wrongCode?.kind == .permission)
      #expect(wrongCode?.next == "get a new code with keepsake sync --pair on the other device")
      let wrongKey = await #expect(throws: CommandFailure.self) {
        do { try await folder.sync(key: "wrong") } catch { throw CommandFailure(error) }
      }
      #expect(wrongKey?.kind == .permission)
      try await folder.sync()
      #expect(try folder.files() == ["a": "mine"])
    }
  }

  @Test("the credentials and their folder are accessible only to their owner")
  func credentials() async throws {
    try await Self.withServer { server in
      let folder = try SyncFolder(server)
      try await folder.sync()
      let file = folder.state.appendingPathComponent("credentials.json")
      let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      #expect(try FileManager.default.attributesOfItem(atPath: folder.state.path)[.posixPermissions] as? Int == 0o700)
    }
  }

  @Test("a missing folder, or another one at its location, is refused and deletes no save")
  func otherFolder() async throws {
    try await Self.withServer { server in
      let folder = try SyncFolder(server, stateElsewhere: true)
      try folder.write("hundred hours", to: "a")
      try await folder.sync()
      let id = try folder.ids()
      #expect(id.state != nil && id.state == id.folder)

      // Like the mount point of a memory stick that isn't mounted.
      try folder.takeAway()
      #expect(await Self.failure(of: folder) == .noInput)
      try folder.write("of another game", to: "b")
      try FileManager.default.createDirectory(at: folder.reserved, withIntermediateDirectories: true)
      try Data("another".utf8).write(to: folder.reserved.appendingPathComponent("folder"))
      #expect(await Self.failure(of: folder) == .noInput)
      let versions = try StoreReader.open(at: folder.state).read { transaction in
        try transaction.slots().flatMap { try transaction.history(of: $0) }.map(\.record.tombstone)
      }
      #expect(versions == [false], "nothing was deleted or added")

      try folder.bringBack()
      try await folder.sync()
      #expect(try folder.files() == ["a": "hundred hours"])
      #expect(try folder.ids() == id)
    }
  }

  @Test("a state without a folder id recognizes its folder by the saves in it, and refuses an empty one")
  func stateWithoutID() async throws {
    try await Self.withServer { server in
      let folder = try SyncFolder(server, stateElsewhere: true)
      try folder.write("mine", to: "a")
      try folder.write("mine too", to: "b")
      try await folder.sync()
      try FileManager.default.removeItem(at: folder.state.appendingPathComponent("folder"))
      try FileManager.default.removeItem(at: folder.reserved)
      try folder.takeAway()
      #expect(await Self.failure(of: folder) == .noInput)
      #expect(try folder.ids() == SyncFolder.IDs())
      try folder.bringBack()
      try folder.remove("b")
      try await folder.sync()
      let id = try folder.ids()
      #expect(id.state != nil && id.state == id.folder)
      #expect(try folder.files() == ["a": "mine"])
    }
  }

  @Test("a state without saves restores the id of its folder, and a new state uses the id that the folder has")
  func halfTied() async throws {
    try await Self.withServer { server in
      let folder = try SyncFolder(server, stateElsewhere: true)
      try await folder.sync()
      let id = try folder.ids()
      try FileManager.default.removeItem(at: folder.reserved)
      try await folder.sync()
      #expect(try folder.ids() == id)
      try FileManager.default.removeItem(at: folder.state)
      try await folder.sync()
      #expect(try folder.ids() == id, "the folder keeps its id for the other states")
    }
  }

  @Test("a sync that is stopped before it is complete is a temporary failure")
  func stopped() async throws {
    try await Self.withServer { server in
      let folder = try SyncFolder(server)
      try folder.write("never stands still for long enough", to: "a")
      let failure = await #expect(throws: CommandFailure.self) {
        do {
          try await folder.sync(
            settle: 3_600_000,
            stop: AsyncStream { signals in
              signals.yield(15)
              signals.finish()
            })
        } catch {
          throw CommandFailure(error)
        }
      }
      #expect(failure?.kind == .temporary)
    }
  }

  @Test("a second sync of a folder at the same time is refused as a temporary failure")
  func twice() async throws {
    try await Self.withServer { server in
      let folder = try SyncFolder(server)
      try await folder.sync()
      let store = try Store.open(at: folder.state)
      let failure = await #expect(throws: CommandFailure.self) {
        do { try await folder.sync() } catch { throw CommandFailure(error) }
      }
      #expect(failure?.kind == .temporary)
      try store.close()
    }
  }

  private static func failure(of folder: SyncFolder) async -> CommandFailure.Kind? {
    do {
      try await folder.sync()
      return nil
    } catch {
      return CommandFailure(error).kind
    }
  }

  static func withServer<Value>(_ body: (RunningServer) async throws -> Value) async throws -> Value {
    let data = TemporaryFolder.url("cloud")
    // Nothing else gets this port when the server has stopped.
    let port = try TestPort.unused()
    var configuration = ServerConfiguration(data: data, port: port)
    // However slow the machine is, the server ends no request, and a device not soon.
    let limit = Int(Patience.limit.components.seconds)
    SyncLimits.waitLonger()
    (configuration.stopSeconds, configuration.idleSeconds, configuration.slowGraceSeconds) = (limit, limit, limit)
    let (started, starting) = AsyncStream.makeStream(of: RunningServer.self)
    let task = Task { [configuration] in
      defer { starting.finish() }
      try await KeepsakeServer.run(configuration: configuration, signals: []) {
        starting.yield($0)
      }
    }
    var running: RunningServer?
    for await server in started {
      running = server
      break
    }
    let result: Result<Value, any Error>
    do {
      result = .success(try await body(try #require(running)))
    } catch {
      result = .failure(error)
    }
    task.cancel()
    _ = await task.result
    // A leftover folder does no harm.
    try? FileManager.default.removeItem(at: data)
    try await until("the port \(port) to be closed") { !TestPort.isOpen(port) }
    return try result.get()
  }
}

/// The lines that a running sync has printed so far.
private final class Printed: Sendable {
  private let kept = Mutex<[String]>([])

  var lines: [String] { kept.withLock { $0 } }

  func add(_ line: String) { kept.withLock { $0.append(line) } }

  func count(_ event: String) -> Int { lines.count { $0.contains(#""event":"\#(event)""#) } }
}

/// A folder of a test, and runs of the command on it.
final class SyncFolder: Sendable {
  let root: URL
  private let server: RunningServer?
  private let shared: URL?
  private let elsewhere: URL?
  var reserved: URL { root.appendingPathComponent(".keepsake") }
  var state: URL { elsewhere ?? reserved }

  convenience init(_ server: RunningServer, stateElsewhere: Bool = false) throws {
    try self.init(server, shared: nil, stateElsewhere: stateElsewhere)
  }

  convenience init(shared: URL) throws { try self.init(nil, shared: shared, stateElsewhere: false) }

  private init(_ server: RunningServer?, shared: URL?, stateElsewhere: Bool) throws {
    (self.server, self.shared) = (server, shared)
    root = TemporaryFolder.url("folder")
    elsewhere = stateElsewhere ? TemporaryFolder.url("state") : nil
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
  }

  deinit {
    // A leftover folder does no harm.
    for url in [root, aside] + (elsewhere.map { [$0] } ?? []) { try? FileManager.default.removeItem(at: url) }
  }

  private var aside: URL { root.deletingLastPathComponent().appendingPathComponent(root.lastPathComponent + "-aside") }

  /// Moves the folder aside, and creates an empty one at its location.
  func takeAway() throws {
    try FileManager.default.moveItem(at: root, to: aside)
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
  }

  func bringBack() throws {
    try FileManager.default.removeItem(at: root)
    try FileManager.default.moveItem(at: aside, to: root)
  }

  struct IDs: Equatable {
    var state: Data?
    var folder: Data?
  }

  /// The ids that connect the state and the folder.
  func ids() throws -> IDs {
    func id(_ folder: URL) throws -> Data? {
      let file = folder.appendingPathComponent("folder")
      return FileManager.default.fileExists(atPath: file.path) ? try Data(contentsOf: file) : nil
    }
    return IDs(state: try id(state), folder: try id(reserved))
  }

  /// Runs `keepsake sync --json`, and returns the lines that it printed.
  @discardableResult
  func sync(
    pair: Bool = false, join: String? = nil, recovery: RecoveryCode? = nil, makesCode: Bool = false,
    key: String? = nil, settle: Int = 60, once: Bool = true, with place: SyncLocation? = nil,
    stop: AsyncStream<Int32> = AsyncStream { _ in }
  ) async throws -> [[String: any Sendable]] {
    let printed = Mutex<[String]>([])
    let reporter = SyncReporter(json: true) { line in printed.withLock { $0.append(line) } }
    var cloud = place ?? shared.map { .folder($0) }
    if let server {
      let entry = recovery.map(SyncEntry.recovery) ?? join.map(SyncEntry.pairing) ?? .register
      cloud = .server(server.url, appKey: key ?? server.appKeys.first ?? "", entry: entry)
    }
    let session = try await SyncSession.open(
      SyncSession.Options(
        folder: root.path, state: elsewhere?.path, cloud: try #require(cloud), showsPairingCode: pair,
        makesRecoveryCode: makesCode, once: once, intervalMilliseconds: 30, settleMilliseconds: settle),
      reporter: reporter)
    try await session.run(stop: stop)
    return try printed.withLock { $0 }.map { line in
      try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: any Sendable])
    }
  }

  /// Runs `keepsake sync --json` until it is stopped, with frequent requests for who has seen which version.
  func syncOn(stop: AsyncStream<Int32>, write: @escaping (String) -> Void) async throws {
    let server = try #require(server)
    let session = try await SyncSession.open(
      SyncSession.Options(
        folder: root.path, state: elsewhere?.path,
        cloud: .server(server.url, appKey: server.appKeys.first ?? "", entry: .register), showsPairingCode: false,
        once: false,
        intervalMilliseconds: 30, settleMilliseconds: 60, seenMilliseconds: 50),
      reporter: SyncReporter(json: true, write: write))
    try await session.run(stop: stop)
  }

  func write(_ text: String, to name: String) throws {
    let url = root.appendingPathComponent(name)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: url)
  }

  func remove(_ name: String) throws { try FileManager.default.removeItem(at: root.appendingPathComponent(name)) }

  func files() throws -> [String: String] {
    var result: [String: String] = [:]
    for path in try MirrorFolder(path: root.path, state: state.path).scan().files.keys {
      result[path.text] = String(decoding: try Data(contentsOf: root.appendingPathComponent(path.text)), as: UTF8.self)
    }
    return result
  }
}
#endif
