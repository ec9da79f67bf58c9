public import Foundation
public import Keepsake
import KeepsakeSync

/// One of the player's devices in a test's world: a folder for the game's data and a network connection.
///
/// ```swift
/// let phone = try world.device("phone")
/// let game = try phone.open("com.example.garden")
/// phone.network = .cut
/// try phone.kill()
/// let again = try phone.open("com.example.garden")
/// ```
///
/// A device runs one game, which can be opened, closed or killed, and opened again, any number of times. Safe to use
/// from any thread; calls that open, kill, restore or copy the device wait for each other.
public final class TestDevice: Sendable {
  /// A device's data at one moment.
  public struct Backup: Sendable {
    let folder: URL
    /// False for a device on which nothing was ever opened.
    let hasData: Bool
    /// Keeps the files alive.
    let keeper: TestFolder
  }

  let world: TestWorld
  let state: DeviceState

  init(_ state: DeviceState, in world: TestWorld) {
    self.state = state
    self.world = world
  }

  /// The device's name, which other devices also see.
  public var name: String { state.name }

  /// The folder with its data. It changes with `kill` and `restore`, because the killed game may still have the old
  /// folder open.
  public var url: URL { state.folder }

  /// The network connection; `good` at first.
  public var network: TestNetwork {
    get { state.line.network }
    set { state.line.network = newValue }
  }

  /// The traffic of the device since it was created.
  public var traffic: TestTraffic { state.line.traffic }

  /// The running game; nil if none is open.
  public var game: GameData? { state.game.flatMap { $0.isClosed ? nil : $0 } }

  // MARK: The game

  /// Opens the game's data on this device, with the world's clock, and connects it to the world's cloud.
  ///
  /// ```swift
  /// let game = try phone.open("com.example.garden", seal: .signed(secret))
  /// ```
  ///
  /// Costs some milliseconds: it is the same store as in a released game, in a temporary folder. The device keeps the
  /// game open until it is closed or killed.
  ///
  /// - Parameters:
  ///   - id: The game's identifier, as for `GameData.open`.
  ///   - profile: As for `GameData.open` with a folder: part of the seal's owner; it doesn't choose the folder.
  ///   - seal: As for `GameData.open`.
  ///   - history: As for `GameData.open`.
  ///   - connecting: Whether to call `game.cloud.connect(address)`. Pass false to test code that connects itself, with
  ///     `address`.
  /// - Returns: The open data.
  /// - Throws: As `GameData.open`, for example `StoreError` with `inUse` if it is already open; `GameDataError` with
  ///   `misuse` for a second game in one world.
  @discardableResult
  public func open(
    _ id: String, profile: String = "default", seal: Seal = .none, history: HistoryRules = .standard,
    connecting: Bool = true
  ) throws -> GameData {
    try begin(id, connecting: connecting) { environment in
      try GameData.open(id, profile: profile, at: state.folder, seal: seal, history: history, environment: environment)
    }
  }

  /// Opens the data of one account on this device. The other accounts' data stays in the device's folder.
  ///
  /// ```swift
  /// let guest = try phone.open("com.example.garden", account: .guest, connecting: false)
  /// try phone.close()
  /// let game = try phone.open("com.example.garden", account: .named("ada"))
  /// try game.adopt(.guest)
  /// ```
  ///
  /// A device uses either this call or `open` without an account. The world's cloud has one player: connect one account
  /// to it.
  ///
  /// - Parameters:
  ///   - id: The game's identifier, as for `GameData.open`.
  ///   - account: The account.
  ///   - seal: As for `GameData.open`.
  ///   - history: As for `GameData.open`.
  ///   - connecting: Whether to call `game.cloud.connect(address)`.
  /// - Returns: The open data.
  /// - Throws: As `open` without an account.
  @discardableResult
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

  /// The address of the world's cloud for the running game, for code that connects itself. Throws `GameDataError` with
  /// `misuse` if no game is open.
  ///
  /// ```swift
  /// let game = try phone.open("com.example.garden", connecting: false)
  /// try MyGame(game).start(cloud: phone.address)
  /// ```
  public var address: CloudAddress {
    get throws {
      guard game != nil, let link = state.link else {
        throw GameDataError(.misuse, "no game runs on the device \"\(name)\": open it first")
      }
      return link.address
    }
  }

  /// Closes the game as if the player quit it: captures are durable on return. Does nothing if no game is open.
  /// `game.close()` does the same.
  ///
  /// - Throws: As `GameData.close`.
  public func close() throws { try state.alone { try state.game?.close() } }

  // MARK: What befalls a device

  /// Ends the game as SIGKILL does, at any point of a commit.
  ///
  /// What was durable before the call is there when the device is opened again. What was only captured may or may not
  /// be there, in the order of the captures, and never in part. The killed game sends nothing more to the cloud. Its
  /// `GameData` is closed some time later and then refuses every call.
  ///
  /// This isn't a power failure: what the game had written to the system is on disk. Costs copying the device's folder.
  /// Does nothing if no game is open.
  ///
  /// - Throws: `StoreError` if the folder can't be copied; the game continues then.
  public func kill() throws { try state.alone { try die() } }

  /// Kills the game, if one is open. The caller is alone on the device.
  private func die() throws {
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

  /// Copies the device's data, as a system backup does, whether the game is running or not. Costs copying the device's
  /// folder.
  ///
  /// - Returns: The backup.
  /// - Throws: `StoreError` if the folder can't be copied.
  public func backup() throws -> Backup {
    try state.alone {
      let copy = world.folder.newPlace()
      return Backup(folder: copy, hasData: try copyData(to: copy), keeper: world.folder)
    }
  }

  /// Replaces the device's data with a backup, as when a player sets up a device from one. Kills a running game first.
  ///
  /// ```swift
  /// let yesterday = try phone.backup()
  /// ...
  /// try phone.restore(yesterday)
  /// let game = try phone.open("com.example.garden")
  /// ```
  ///
  /// - Parameter backup: A backup of any device; it can be restored any number of times. A backup from another world
  ///   belongs to that world's cloud, so this world's cloud refuses it (`CloudStatus.Phase.refused`).
  /// - Throws: `StoreError`; the device's data is unchanged then.
  public func restore(_ backup: Backup) throws {
    // As one step: a game that was opened in between would go on with data that is no longer the device's.
    try state.alone {
      try die()
      let next = world.folder.newPlace()
      if backup.hasData { try TestFolder.copy(backup.folder, to: next) }
      state.moved(to: next)
    }
  }

  /// Makes another device with a copy of this one's data, as when a player copies the folder or restores it to a second
  /// device. Its network is good.
  ///
  /// - Parameter name: The new device's name.
  /// - Returns: The device.
  /// - Throws: `GameDataError` with `misuse` if the world has a device of that name; `StoreError`.
  public func clone(_ name: String) throws -> TestDevice {
    let copy = world.folder.newPlace()
    _ = try state.alone { try copyData(to: copy) }
    return try world.addDevice(name, at: copy)
  }

  /// Copies the device's data. Returns false if there is none.
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
