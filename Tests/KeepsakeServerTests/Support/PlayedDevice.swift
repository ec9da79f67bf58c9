#if Cloud && os(Linux)
import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeSimulation
import Synchronization
import TestSupport
import Testing

/// A device with a game that uses the public API, behind a network of its own. Pauses that are long by design pass only
/// when the test lets them.
final class PlayedDevice: Sendable {
  /// A pause of this length is long by design: between two polls, or because the cloud asks for it. The shorter ones
  /// are those after failures. They pass in real time, `haste` times as fast, because how many there are depends on how
  /// long a server takes to start.
  static let longPause: Duration = .seconds(60)
  static let haste = 5

  let name: String
  let game: GameData
  let proxy: WatchingProxy
  let clock: ManualClock

  /// Opens the game, without connecting it.
  init(_ name: String, in folder: URL, to port: Int) throws {
    self.name = name
    proxy = try WatchingProxy(to: port)
    let clock = ManualClock()
    self.clock = clock
    let system = GameEnvironment.system
    let environment = GameEnvironment(
      nowMilliseconds: system.nowMilliseconds, uptime: system.uptime,
      sleep: { $0 < Self.longPause ? try await Task.sleep(for: $0 / Self.haste) : try await clock.sleep(for: $0) })
    game = try GameData.open("com.example.faults", at: folder.appendingPathComponent(name), environment: environment)
  }

  func connect() { game.cloud.connect(.server(proxy.url, appKey: ServerProcess.appKey), deviceName: name) }

  /// A device that listens for events, of the same player as `other`, or of a new one.
  static func playing(_ name: String, in folder: URL, to port: Int, with other: PlayedDevice? = nil) async throws
    -> PlayedDevice
  {
    let device = try PlayedDevice(name, in: folder, to: port)
    device.connect()
    if let other { try await device.game.cloud.join(try await other.game.cloud.pairingCode()) }
    try await device.game.cloud.sync()
    try await device.until("listening") { $0.game.cloud.status.isListening }
    return device
  }

  /// Ends the pauses that are long by design: the one between two polls, and the one that a cloud without room asks
  /// for.
  func letMinutePass() { clock.advance(by: .seconds(61)) }

  /// Lets the device poll as it does each minute: waits until it pauses, lets the pause pass, and waits until the
  /// exchange has begun.
  func poll() async throws {
    try await until("pausing before it asks") { !$0.clock.sleeps.isEmpty }
    let before = proxy.exchanges
    letMinutePass()
    try await until("asking") { $0.proxy.exchanges > before }
  }

  func close() throws {
    defer { proxy.stop() }
    try game.close()
  }

  /// Waits until `condition` holds.
  func until(_ what: String, _ condition: (PlayedDevice) throws -> Bool) async throws {
    try await TestSupport.until("\(name): \(what); \(game.cloud.status), \(proxy.counts)") { try condition(self) }
  }

  /// Whether everything saved is certain to be in the cloud, and no transfer is in progress.
  var isQuiet: Bool {
    get throws {
      let status = game.cloud.status
      guard status.phase == .upToDate, status.waitingCommits == 0 else { return false }
      let debt = try game.debt()
      return debt.waitingCommits == 0 && debt.staged == 0
    }
  }

  /// How far this device has fetched: a position in the history of a cloud, which a restored one doesn't have.
  var place: Cursor.Mark {
    get throws {
      let cursor = try game.debt().cursor
      return Cursor.Mark(seq: cursor.seq, mark: cursor.mark)
    }
  }
}

/// Waits until all devices are quiet and have fetched the same changes, and their games show them.
///
/// It checks states, and never a clock. What a device saved is certain only when the device has fetched past it, so
/// what all of them have fetched is everything that they saved.
func settle(_ devices: [PlayedDevice]) async throws {
  func states() throws -> String {
    try devices.map { "\($0.name) \($0.game.cloud.status.phase) at \(try $0.place), \($0.proxy.counts)" }.joined(
      separator: "; ")
  }
  func areQuiet() throws -> Bool {
    try devices.allSatisfy { try $0.isQuiet } && Set(devices.map { try $0.place }).count == 1
  }
  for device in devices { try await device.game.commitEverything() }
  try await until("the devices come to rest: \((try? states()) ?? "")") {
    guard try areQuiet() else { return false }
    // What is in a store reaches the game a little later.
    for device in devices { await device.game.showEverything() }
    return try areQuiet()
  }
}

/// A saved game of these tests.
@Archivable struct Chapter: Equatable {
  var number = 0
  var pages = Data()

  init() {}

  /// With this many incompressible bytes.
  init(_ number: Int, bytes: Int = 0) {
    self.number = number
    pages = Self.bytes(bytes, seed: UInt64(number))
  }

  private static let made = Mutex<[String: Data]>([:])

  private static func bytes(_ count: Int, seed: UInt64) -> Data {
    made.withLock { made in
      if let bytes = made["\(count) \(seed)"] { return bytes }
      var state = seed
      let words = (0...count / 8).map { _ in
        // By SplitMix64: neighbouring seeds have nothing in common.
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
      }
      let bytes = words.withUnsafeBytes { Data($0.prefix(count)) }
      made["\(count) \(seed)"] = bytes
      return bytes
    }
  }
}

/// What a player sees on a device.
struct Seen: Equatable, CustomStringConvertible {
  var slots: [String: [Int]] = [:]
  var versions: [String: VersionID] = [:]
  var progress: [String: Int] = [:]

  static let levels = ["level", "checkpoint", "coins"]

  init(on device: PlayedDevice) throws {
    for slot in try device.game.saves.list() {
      let chapters = Slot<Chapter>(slot.name)
      let sides =
        try device.game.saves.conflict(chapters)?.sides.map(\.value)
        ?? [try device.game.saves.load(chapters)].compactMap { $0 }
      slots[slot.name] = sides.map { $0 == Chapter($0.number, bytes: $0.pages.count) ? $0.number : -1 }.sorted()
      versions[slot.name] = slot.current.id
    }
    for key in Self.levels { progress[key] = device.game.progress[ProgressKey(key, default: 0, rule: .max)] }
  }

  var description: String { "\(slots.sorted { $0.key < $1.key }), \(progress.sorted { $0.key < $1.key })" }
}
#endif
