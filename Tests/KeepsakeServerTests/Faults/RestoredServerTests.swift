#if Cloud && os(Linux)
import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeStore
import Synchronization
import TestSupport
import Testing

@testable import Keepsake

/// The operator restores yesterday's backup while players' games run and listen. Nothing of today may be lost.
@Suite("Yesterday's backup under running devices", .serialized, .hangLimit)
struct RestoredServerTests {
  /// The most exchanges of a device that has more than the backup: one sends everything, after the contents of large
  /// saves that the cloud lacks were uploaded. A device that was offline makes one when it resumes, and one more when
  /// the others have sent what it missed.
  private static let mostExchanges = 1
  private static let mostOfSleeper = 2

  /// Copies a server's folder while the server runs: the database by SQLite's own backup, and then the files, which
  /// never change.
  static func backUp(_ data: URL, to backup: URL) throws {
    let manager = FileManager.default
    try manager.createDirectory(at: backup, withIntermediateDirectories: true)
    let source = try DatabaseQueue(path: data.appendingPathComponent("cloud.sqlite").path)
    let copy = try DatabaseQueue(path: backup.appendingPathComponent("cloud.sqlite").path)
    try source.backup(to: copy)
    try source.close()
    try copy.close()
    for name in ["contents", "secret"] {
      try manager.copyItem(at: data.appendingPathComponent(name), to: backup.appendingPathComponent(name))
    }
  }

  private func checkpoint(_ number: Int, on device: PlayedDevice) async throws {
    try await device.game.checkpoint {
      try $0.record(number, for: ProgressKey("checkpoint", default: 0, rule: .max))
      try $0.save(Chapter(number, bytes: 700_000), to: Slot("checkpoint"))
    }.value
  }

  private func pause(_ devices: [PlayedDevice]) async throws {
    for device in devices { device.game.cloud.isEnabled = false }
    for device in devices { try await device.until("pausing") { $0.game.cloud.status.phase == .paused } }
  }

  private func resume(_ devices: [PlayedDevice]) async throws {
    for device in devices { device.game.cloud.isEnabled = true }
    for device in devices { try await device.until("listening") { $0.game.cloud.status.isListening } }
  }

  @Test(
    """
    after a server restore, devices that reconnect one by one restore everything in one exchange each (two if offline)
    """, arguments: TestStorage.single)
  func restored(_ kind: TestStorage) async throws {
    let database = try Database(kind)
    try await TemporaryFolder.with { folder in
      let (data, backup) = (folder.appendingPathComponent("server"), folder.appendingPathComponent("backup"))
      var server = try await ServerProcess.start(data: data, database: database.address)
      let port = server.port
      let phone = try await PlayedDevice.playing("phone", in: folder, to: port)
      let tablet = try await PlayedDevice.playing("tablet", in: folder, to: port, with: phone)
      let console = try await PlayedDevice.playing("console", in: folder, to: port, with: phone)
      let observer = try await PlayedDevice.playing("observer", in: folder, to: port, with: phone)
      let (players, all) = ([phone, tablet, console], [phone, tablet, console, observer])

      // Yesterday.
      try await phone.game.saves.save(Chapter(1, bytes: 2_500_000), to: Slot("world"))
      try await tablet.game.saves.save(Chapter(2, bytes: 5_000), to: Slot("old"))
      try await console.game.saves.save(Chapter(3, bytes: 5_000), to: Slot("quest"))
      try await phone.game.progress.record(1, for: ProgressKey("level", default: 0, rule: .max)).value
      try await checkpoint(1, on: phone)
      try await settle(all)
      if !(try database.backUp()) { try Self.backUp(data, to: backup) }

      // Today, during which the observer is offline.
      try await pause([observer])
      let watch = CheckpointWatch(observer)
      for number in 2...4 { try await checkpoint(number, on: phone) }
      try await phone.game.saves.save(Chapter(5, bytes: 2_600_000), to: Slot("world"))
      try await tablet.game.progress.record(50, for: ProgressKey("coins", default: 0, rule: .max)).value
      try tablet.game.saves.delete(Slot<Chapter>("old"))
      try await settle(players)
      try await pause([tablet, console])
      for (number, device) in [(6, tablet), (7, console)] {
        _ = try device.game.saves.load(Slot<Chapter>("quest"))
        try await device.game.saves.save(Chapter(number, bytes: 600_000), to: Slot("quest"))
      }
      try await resume([tablet, console])
      try await console.game.progress.record(9, for: ProgressKey("level", default: 0, rule: .max)).value
      try await settle(players)
      let today = try Seen(on: phone)
      #expect(today.slots == ["world": [5], "checkpoint": [4], "quest": [6, 7]])
      #expect(today.progress == ["level": 9, "checkpoint": 4, "coins": 50])

      // The devices reconnect one after the other. If two offer at the same time, the event about the other one's
      // exchange can reach a device before the response to its own, and the device then makes one exchange more.
      for device in players { device.proxy.cutOff() }
      await server.end(by: SIGTERM)
      if !(try database.putBack()) {
        try FileManager.default.moveItem(at: data, to: folder.appendingPathComponent("lost"))
        try FileManager.default.moveItem(at: backup, to: data)
      }
      server = try await ServerProcess.start(data: data, port: port, database: database.address)
      let before = all.map(\.proxy.counts)
      // Nothing is done on any device and no poll is due: the event streams notify the devices when they are connected
      // again.
      let asked = observer.proxy.exchanges
      try await resume([observer])
      try await observer.until("asking") { try $0.proxy.exchanges > asked && $0.isQuiet }
      var connected = [observer]
      for device in players {
        let count = device.proxy.exchanges
        device.proxy.heal()
        try await device.until("offering what it has") { try $0.proxy.exchanges > count && $0.isQuiet }
        connected.append(device)
        try await settle(connected)
      }
      try await observer.until("showing what was saved today") { try Seen(on: $0) == today }
      try await settle(all)

      for device in all {
        let seen = try Seen(on: device)
        #expect(seen == today, "\(device.name): \(seen)")
      }
      let counts = zip(all, before).map { $0.proxy.exchanges - ($1["POST /v1/exchange"] ?? 0) }
      print("exchanges of phone, tablet, console and an observer until all of today was back: \(counts)")
      for (device, count) in zip(all, counts) {
        #expect(
          count <= (device.name == "observer" ? Self.mostOfSleeper : Self.mostExchanges),
          "\(device.name) made \(count) exchanges")
      }
      let halves = watch.end()
      #expect(halves.isEmpty, "\(halves)")
      // Everything is really in the cloud, and not only on the devices: a new device gets all of it.
      let fresh = try await PlayedDevice.playing("fresh", in: folder, to: port, with: phone)
      #expect(try Seen(on: fresh) == today)
      for device in all + [fresh] { try device.close() }
      await server.end(by: SIGTERM)
    }
    try database.drop()
  }

  /// The schema of a server's database; none if it is a file in its folder.
  private struct Database {
    let address: String?
    private let schema: String?

    init(_ kind: TestStorage) throws {
      #if PostgreSQL
      if kind == .postgreSQL {
        let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
        (address, schema) = (try TestDatabase.address(ofSchema: name), name)
        return
      }
      #endif
      (address, schema) = (nil, nil)
    }

    #if PostgreSQL
    /// Copies the rows; false if there are none.
    func backUp() throws -> Bool { try with { try TestDatabase.backUp(schema: $0) } }

    func putBack() throws -> Bool { try with { try TestDatabase.putBack(schema: $0) } }

    func drop() throws {
      _ = try with {
        try TestDatabase.drop(schema: $0)
        try TestDatabase.drop(schema: "\($0)_backup")
      }
    }

    private func with(_ body: (String) throws -> Void) throws -> Bool {
      guard let schema else { return false }
      try body(schema)
      return true
    }
    #else
    func backUp() throws -> Bool { false }
    func putBack() throws -> Bool { false }
    func drop() throws {}
    #endif
  }
}

/// Checks continuously whether a device shows half of a checkpoint, which is a value and a save with the same number.
private final class CheckpointWatch: Sendable {
  private struct State {
    var halves: [String] = []
    var looks = 0
    var isEnding = false
    var hasEnded = false
  }
  private let state = Mutex(State())

  init(_ device: PlayedDevice) {
    let store = device.game.core.store
    Thread.detachNewThread { [self] in
      var numbers: [VersionID: Int] = [:]
      while !state.withLock({ $0.isEnding }) {
        do {
          let (value, heads) = try store.read { transaction -> (Int, [Int]) in
            let cell = try transaction.cell(CellKey(collection: "progress", key: "checkpoint"))?.value
            let heads = try transaction.heads(of: "checkpoint").map { id in
              if let number = numbers[id] { return number }
              guard let record = try transaction.version(id)?.record else { return -1 }
              let number = try Archive.decode(Chapter.self, from: transaction.plainBytes(of: record)).number
              numbers[id] = number
              return number
            }
            guard case .max(.int(let value))? = cell else { return (0, heads) }
            return (Int(value), heads)
          }
          state.withLock { state in
            state.looks += 1
            let half = "the value is \(value), the save \(heads)"
            if heads != [value], state.halves.last != half { state.halves.append(half) }
          }
        } catch {
          state.withLock { $0.halves.append("\(error)") }
        }
      }
      state.withLock { $0.hasEnded = true }
    }
  }

  /// Stops checking, and returns what was found.
  func end() -> [String] {
    state.withLock { $0.isEnding = true }
    while !state.withLock({ $0.hasEnded }) { usleep(1_000) }
    return state.withLock { $0.looks > 0 ? $0.halves : ["it was never looked at"] }
  }
}
#endif
