public import Foundation
public import Keepsake
import KeepsakeSync

/// One of the player's devices in a test's world: a folder for the game's data, and a way to the cloud.
///
///     let phone = try world.device("phone")
///     let game = try phone.open("com.example.garden")
///     phone.network = .cut
///     try phone.kill()
///     let again = try phone.open("com.example.garden")
///
/// A device runs one game, which is opened, closed or killed, and opened again, any number of times. Safe to use from any thread; what opens,
/// kills, restores or copies it waits for the others.
public final class TestDevice: Sendable {
  /// A device's data as it was at one moment.
  public struct Backup: Sendable {
    let folder: URL
    /// False of a device on which nothing was ever opened.
    let hasData: Bool
    /// Keeps the files.
    let keeper: TestFolder
  }

  let world: TestWorld
  let state: DeviceState

  init(_ state: DeviceState, in world: TestWorld) {
    self.state = state
    self.world = world
  }

  /// What the test calls it; other devices see it under this name, too.
  public var name: String { state.name }

  /// Where its data is now. Another folder after `kill` and `restore`: who died may still have the old one open.
  public var url: URL { state.folder }

  /// How it reaches the cloud; `good` at first.
  public var network: TestNetwork {
    get { state.line.network }
    set { state.line.network = newValue }
  }

  /// What went over its network since it exists.
  public var traffic: TestTraffic { state.line.traffic }

  /// The game that runs here; nil if none does.
  public var game: GameData? { state.game.flatMap { $0.isClosed ? nil : $0 } }

  // MARK: The game

  /// Opens the game's data here, with the world's clock, and connects it to the world's cloud.
  ///
  ///     let game = try phone.open("com.example.garden", seal: .signed(secret))
  ///
  /// Costs some milliseconds: it is the same store as in a game, in a temporary folder. The device keeps the game open until it is closed or killed, also if
  /// the test lets go of it. Throws what `GameData.open` throws, `StoreError.Code.inUse` if it is open already among it, and `GameDataError.Code.misuse` for a second
  /// game in one world: its cloud has one game's data.
  ///
  /// - Parameters:
  ///   - id: The game's identifier, as in `GameData.open`.
  ///   - connecting: Whether to call `game.cloud.connect(address)`. False for a test of code that does it itself; give it `address` then.
  public func open(
    _ id: String, profile: String = "default", seal: Seal = .none, history: HistoryRules = .standard, connecting: Bool = true
  ) throws -> GameData {
    try begin(id, connecting: connecting) { environment in
      try GameData.open(id, profile: profile, at: state.folder, seal: seal, history: history, environment: environment)
    }
  }

  /// The same with the data of one account; those of the others stay in the device's folder, where it finds them.
  ///
  ///     let guest = try phone.open("com.example.garden", account: .guest, connecting: false)
  ///     try phone.close()
  ///     let game = try phone.open("com.example.garden", account: .named("ada"))
  ///     try game.adopt(.guest)
  ///
  /// A device uses either this call or the other. The world's cloud is one player's: let one account connect to it.
  public func open(
    _ id: String, account: Account, seal: Seal = .none, history: HistoryRules = .standard, connecting: Bool = true
  ) throws -> GameData {
    try begin(id, connecting: connecting) { environment in
      try GameData.open(id, account: account, in: state.folder, seal: seal, history: history, environment: environment)
    }
  }

  private func begin(_ id: String, connecting: Bool, _ open: (GameEnvironment) throws -> GameData) throws -> GameData {
    try state.alone {
      try world.admit(id)
      let link = DeviceLink(world.cloud.memory, over: state.line, of: name)
      let game = try open(world.clock.environment(of: world.folder, seed: world.nextSeed()))
      state.began(game, over: link)
      if connecting { game.cloud.connect(link.address, deviceName: name) }
      return game
    }
  }

  /// Where the game that runs here finds the world's cloud, for code that connects by itself. Throws `GameDataError.Code.misuse` if none runs.
  ///
  ///     let game = try phone.open("com.example.garden", connecting: false)
  ///     try MyGame(game).start(cloud: phone.address)
  public var address: CloudAddress {
    get throws {
      guard game != nil, let link = state.link else {
        throw GameDataError(.misuse, "no game runs on the device \"\(name)\": open it first")
      }
      return link.address
    }
  }

  /// Ends the game as a player does who quits it: what was captured is durable when this returns. Does nothing if none runs.
  ///
  /// Throws what `GameData.close` throws. `game.close()` does the same.
  public func close() throws { try state.alone { try state.game?.close() } }

  // MARK: What befalls a device

  /// Ends the game as SIGKILL does, at whatever point of a commit it is.
  ///
  /// What was durable before this call is there when the device is opened again: a save that was waited for, whatever a `Pending` said. What was only
  /// captured may be there or not, in the order of the captures, and never by half. From this call on nothing of the old run reaches the cloud. Its `GameData` is closed
  /// some time later, and then refuses every call.
  ///
  /// It is not a power cut: what the game had written to the system is on the disk. Costs copying the device's folder. Does nothing if no game runs; throws
  /// `StoreError` if the copy can't be made, and then the game goes on.
  public func kill() throws {
    try state.alone {
      guard let game, let link = state.link else { return }
      let next = world.folder.newPlace()
      link.cut()
      do {
        try game.whileStill { try TestFolder.copy(state.folder, to: next) }
      } catch {
        link.mend()
        throw error
      }
      state.died(goingOnIn: next)
    }
  }

  /// A copy of the device's data, as a backup of the system's makes it, whether the game runs or not.
  ///
  /// Costs copying the device's folder. Throws `StoreError`.
  public func backup() throws -> Backup {
    try state.alone {
      let copy = world.folder.newPlace()
      return Backup(folder: copy, hasData: try copyData(to: copy), keeper: world.folder)
    }
  }

  /// Puts the data of a backup in the place of this device's, as when a player sets a device up from one; a game that runs is killed first.
  ///
  ///     let yesterday = try phone.backup()
  ///     ...
  ///     try phone.restore(yesterday)
  ///     let game = try phone.open("com.example.garden")
  ///
  /// The backup may be another device's, and may be restored any number of times. One of another world belongs to that world's cloud, which
  /// this one's refuses (`CloudStatus.Phase.refused`). Throws `StoreError`, and then the device's data is as it was.
  public func restore(_ backup: Backup) throws {
    try kill()
    try state.alone {
      let next = world.folder.newPlace()
      if backup.hasData { try TestFolder.copy(backup.folder, to: next) }
      state.moved(to: next)
    }
  }

  /// Another device with a copy of this one's data, as when a player copies the folder, or a store of apps restores it to a second device.
  ///
  /// Its network is good, whatever this one's is. Throws `GameDataError.Code.misuse` if the world has a device of that name, and `StoreError`.
  public func clone(_ name: String) throws -> TestDevice {
    let copy = world.folder.newPlace()
    _ = try state.alone { try copyData(to: copy) }
    return try world.addDevice(name, at: copy)
  }

  /// Whether there was anything to copy.
  private func copyData(to copy: URL) throws -> Bool {
    if let game {
      try game.whileStill { try TestFolder.copy(state.folder, to: copy) }
    } else {
      guard FileManager.default.fileExists(atPath: state.folder.path) else { return false }
      try TestFolder.copy(state.folder, to: copy)
    }
    return true
  }
}
