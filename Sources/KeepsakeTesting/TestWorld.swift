import Foundation
import Keepsake
import Synchronization

/// A player's devices, their cloud and their clock in one process, for the tests of a game that uses Keepsake.
///
/// ```swift
/// import Keepsake
/// import KeepsakeTesting
/// import Testing
///
/// @Test func continuesOnTheTablet() async throws {
///   let world = TestWorld()
///   let phone = try world.device("phone").open("com.example.garden")
///   let tablet = try world.device("tablet").open("com.example.garden")
///   try await phone.saves.save(Garden(name: "Roof"), to: .main)
///   try await world.settle()
///   #expect(try tablet.saves.load(.main)?.name == "Roof")
/// }
/// ```
///
/// The games are real: they use the same store, merging, wallet and sync as for players. Only the network, the cloud's
/// storage and the clock are simulated, so nothing waits for real time and nothing leaves the process. Works with
/// XCTest too.
///
/// Worlds are independent: any number of tests can run in parallel. Files are in a temporary folder that is removed
/// with the last reference to the world, its devices and its games. Safe to use from any thread.
public final class TestWorld: Sendable {
  private struct State {
    var devices: [String: DeviceState] = [:]
    var game: String?
    var seeds: UInt64 = 0
  }
  private let state = Mutex(State())
  let folder = TestFolder()

  /// The clock of all devices and the cloud.
  public let clock: TestClock
  /// The cloud that the devices share.
  public let cloud: TestCloud

  /// Creates a world without devices, at `TestClock.start`. Costs nothing until a device is opened.
  public init() {
    clock = TestClock()
    cloud = TestCloud(clock: clock)
  }

  /// Returns the device with a name, and creates it if needed.
  ///
  /// - Parameter name: Any text that isn't empty.
  /// - Returns: The device.
  /// - Throws: `GameDataError` with `misuse` for an empty name.
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

  /// Adds a device whose folder already exists.
  func addDevice(_ name: String, at folder: URL) throws -> TestDevice {
    try Self.check(name)
    let device = DeviceState(name: name, folder: folder, clock: clock)
    let isNew = state.withLock { state in
      guard state.devices[name] == nil else { return false }
      state.devices[name] = device
      return true
    }
    guard isNew else { throw GameDataError(.misuse, "the world already has a device \"\(name)\"") }
    return TestDevice(device, in: self)
  }

  private static func check(_ name: String) throws {
    guard !name.isEmpty else { throw GameDataError(.misuse, "a device needs a name") }
  }

  /// Allows only one game in this world, because its cloud has one game's data.
  func admit(_ id: String) throws {
    let game = state.withLock { state in
      if state.game == nil { state.game = id }
      return state.game
    }
    guard game == id else {
      throw GameDataError(
        .misuse, "this world is for the game \"\(game ?? "")\": create another TestWorld for \"\(id)\"")
    }
  }

  /// Returns a seed for random numbers: another one for each run of a game, the same in each run of a test.
  func nextSeed() -> UInt64 {
    state.withLock { state in
      state.seeds += 1
      return state.seeds
    }
  }
}
