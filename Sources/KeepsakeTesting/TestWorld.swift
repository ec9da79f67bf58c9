import Foundation
import Keepsake
import Synchronization

/// A player's devices, their cloud and their time, in one process: for the tests of a game that uses Keepsake.
///
///     import Keepsake
///     import KeepsakeTesting
///     import Testing
///
///     @Test func goesOnOnTheTablet() async throws {
///       let world = TestWorld()
///       let phone = try world.device("phone").open("com.example.garden")
///       let tablet = try world.device("tablet").open("com.example.garden")
///       try await phone.saves.save(Garden(name: "Roof"), to: .main)
///       try await world.settle()
///       #expect(try tablet.saves.load(.main)?.name == "Roof")
///     }
///
/// The games are real: the store, the merging, the wallet and the synchronization are those that players have. Only the way to the cloud,
/// the cloud's memory and the clock are the test's, so that nothing waits for real time and nothing leaves the process. It works the same with XCTest.
///
/// Worlds know nothing of each other: any number of tests may run side by side. Files are in a temporary folder that is removed when world, devices and games
/// are all gone. Safe to use from any thread.
public final class TestWorld: Sendable {
  private struct State {
    var devices: [String: DeviceState] = [:]
    var game: String?
    var seeds: UInt64 = 0
  }
  private let state = Mutex(State())
  let folder = TestFolder()

  /// The time, for all devices and the cloud.
  public let clock: TestClock
  /// The cloud that the devices share.
  public let cloud: TestCloud

  /// A world without devices, at `TestClock.start`. Costs nothing until a device is opened.
  public init() {
    clock = TestClock()
    cloud = TestCloud(clock: clock)
  }

  /// The device of this name; a new one, on which nothing was ever played, if there is none yet.
  ///
  /// - Parameter name: Any text but an empty one, which throws `GameDataError.Code.misuse`. It is no file's name.
  public func device(_ name: String) throws -> TestDevice {
    try Self.check(name)
    let device = state.withLock { state in
      if let known = state.devices[name] { return known }
      let device = DeviceState(name: name, folder: folder.newPlace(), clock: clock)
      state.devices[name] = device
      return device
    }
    return TestDevice(device, in: self)
  }

  /// All devices, by name.
  public var devices: [TestDevice] {
    state.withLock { $0.devices.values.sorted { $0.name < $1.name } }.map { TestDevice($0, in: self) }
  }

  /// A new device in a folder that is there already.
  func addDevice(_ name: String, at folder: URL) throws -> TestDevice {
    try Self.check(name)
    let device = DeviceState(name: name, folder: folder, clock: clock)
    let isNew = state.withLock { state in
      guard state.devices[name] == nil else { return false }
      state.devices[name] = device
      return true
    }
    guard isNew else { throw GameDataError(.misuse, "the world has a device \"\(name)\" already") }
    return TestDevice(device, in: self)
  }

  private static func check(_ name: String) throws {
    guard !name.isEmpty else { throw GameDataError(.misuse, "a device needs a name") }
  }

  /// The world's cloud has one game's data.
  func admit(_ id: String) throws {
    let game = state.withLock { state in
      if state.game == nil { state.game = id }
      return state.game
    }
    guard game == id else {
      throw GameDataError(.misuse, "this world is of the game \"\(game ?? "")\": make another TestWorld for \"\(id)\"")
    }
  }

  /// Chance differs from run to run of a game, and is the same in each run of a test.
  func nextSeed() -> UInt64 {
    state.withLock { state in
      state.seeds += 1
      return state.seeds
    }
  }
}
