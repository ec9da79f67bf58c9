public import Foundation
public import KeepsakeReplication
public import KeepsakeStore
import Synchronization

/// Everything that a game keeps for one player, such as saved games, progress and money. Durable on this device, and
/// synced with the player's other devices once a cloud is connected.
///
/// ```swift
/// let game = try GameData.open("com.example.space")
/// var world = try game.saves.load(.main) ?? World()
/// ...
/// try game.close(within: .seconds(2))
/// ```
///
/// Everything works without a cloud. Calls that only use this device are synchronous. All calls are safe from any
/// thread or actor. One process at a time can have a folder open.
public final class GameData: Sendable {
  /// The folder that contains all the data.
  public let url: URL
  /// The saved games.
  public let saves: SaveSlots
  /// Values with merge rules, such as a level that never falls.
  public let progress: ProgressStore
  /// High scores.
  public let scores: HighScores
  /// The player's money.
  public let wallet: WalletStore
  /// The player's settings.
  public let preferences: Preferences
  /// Files that the game writes itself, with a history of versions.
  public let files: TrackedFiles
  /// The game's own database tables.
  public let records: Records
  /// Sync with the player's other devices.
  public let cloud: Cloud

  let core: GameCore
  /// The options that the data was opened with.
  let options: OpenOptions
  /// The library that was passed to `attach`.
  let attachedAssets = Mutex<AssetLibrary?>(nil)
  let closed = Mutex(false)
  /// The data of shared containers that is open.
  let sharedGames = SharedGames()

  /// Opens a game's data, and creates it on first use.
  ///
  /// Without `url`, the data is in the platform's folder for such data (see `StorageFolders`), in a folder named `id`,
  /// with one folder for each profile.
  ///
  /// - Parameters:
  ///   - id: The game's identifier, such as `com.example.space`. It must be a valid folder name on every platform.
  ///   - profile: The player on this device, if the game has several.
  ///   - url: The folder for the data, instead of the platform's. With `url`, neither `id` nor `profile` chooses the
  ///     folder: give each profile a folder of its own.
  ///   - seal: Detects changes that were made without the game's secret. A store keeps its seal: pass it at each
  ///     opening.
  ///   - history: Which older versions of a slot are kept, besides pinned ones and those needed to resolve a conflict.
  ///     New rules apply to a slot from its next save.
  ///   - credentials: Where this device keeps its token for the cloud and the like: in the folder, or in a store such
  ///     as the system's keychain. Pass it at each opening.
  /// - Returns: The open data.
  /// - Throws: `StoreError` with `inUse` if it is already open, `newerFormat` if a newer library wrote it, or `damaged`
  ///   if it can't be read or recovered; with a seal, `wrongSecret` for another secret, game, profile or player,
  ///   `otherSeal` if the store has a seal and none was given or the reverse, and `tampered` under the policy `reject`.
  ///   Nothing has changed then. `GameDataError` with `misuse` for an invalid name, or with `otherGame` if the folder's
  ///   data belongs to a game with another identifier.
  public static func open(
    _ id: String, profile: String = "default", at url: URL? = nil, seal: Seal = .none,
    history: HistoryRules = .standard, credentials: CredentialStorage = .folder
  ) throws -> GameData {
    try open(
      id, profile: profile, at: url, seal: seal, history: history, credentials: credentials, environment: .system)
  }

  /// Opens a game's data with a given environment, such as a clock for tests.
  package static func open(
    _ id: String, profile: String = "default", at url: URL? = nil, seal: Seal = .none,
    history: HistoryRules = .standard, credentials: CredentialStorage = .folder, environment: GameEnvironment
  ) throws -> GameData {
    try StorageFolders.check(id, "a game's identifier")
    try StorageFolders.check(profile, "a profile's name")
    let options = OpenOptions(
      game: id, profile: profile, seal: seal, history: history, credentials: credentials, hasCustomURL: url != nil)
    return try open(at: url ?? StorageFolders(id).profile(profile), options, environment)
  }

  /// - Parameters:
  ///   - game: For shared data, the connection of the game that it belongs to.
  ///   - state: What the game's cloud is asked for.
  static func open(
    at url: URL, _ options: OpenOptions, _ environment: GameEnvironment, of game: GameReference? = nil,
    _ state: CloudState? = nil
  ) throws -> GameData {
    let store: Store
    do {
      store = try Store.open(at: url, seal: options.sealRequest, history: options.history)
    } catch var error as StoreError where error.code == .inUse && error.cause == nil {
      error.message += ": use one GameData for the whole game, or close() the first"
      throw error
    }
    do {
      try StoreGame.claim(store, for: options.game)
      try options.accounts?.recordName(in: url)
      return try GameData(store: store, options, environment: environment, game, state)
    } catch {
      // The reason why it can't be opened matters more than what closing says.
      try? store.close()
      throw error
    }
  }

  private init(
    store: Store, _ options: OpenOptions, environment: GameEnvironment, _ game: GameReference?, _ state: CloudState?
  ) throws {
    url = store.url
    self.options = options
    core = GameCore(store: store, environment: environment, credentials: options.credentials, game: game)
    try core.showSlots()
    saves = SaveSlots(core: core)
    progress = try ProgressStore(core: core)
    scores = HighScores(core: core)
    wallet = WalletStore(core: core)
    preferences = try Preferences(core: core)
    files = TrackedFiles(core: core)
    records = Records(core: core)
    cloud = try Cloud(
      core: core, progress: progress, scores: scores, wallet: wallet, preferences: preferences,
      following: options.shared.flatMap { name in state.map { Cloud.Game(state: $0, name: name) } })
  }

  /// Commits several changes together: all of them or none, on this device and on every other.
  ///
  /// Returns before the commit is durable. If `body` throws, nothing is committed. Preferences that were set earlier
  /// are durable no later than the checkpoint. The call blocks only while 64 commits or 256 MiB wait for the disk; it
  /// has no time limit of its own.
  ///
  /// - Parameter body: Adds the changes to the checkpoint.
  /// - Returns: A handle that reports when the commit is durable. It throws what only the commit shows:
  ///   `GameDataError` with `insufficient` for a spend, `idReused`, or `tooLarge` for a total, a board or a checkpoint
  ///   beyond its limit; `StoreError` if the disk can't be written.
  /// - Throws: The error that `body` throws; `GameDataError` with `misuse`, `tooLarge` or `tooNew` if a change is
  ///   invalid, with `insufficient` if `Cloud.delivery` holds something back and a spend exceeds what `wallet` shows,
  ///   with `readOnly` for money of a shared container that the game may only read, or with `closed`; `StoreError` with
  ///   `tooLarge` if the saves have more than 256 MiB together, or with another code if the wallet can't be read.
  ///   Nothing is committed then.
  @discardableResult
  public func checkpoint(_ body: (inout Checkpoint) throws -> Void) throws -> Pending<Void> {
    var checkpoint = Checkpoint(core: core, scores: scores)
    try body(&checkpoint)
    let (saves, cells, operations) = (checkpoint.saves, checkpoint.cells, checkpoint.operations)
    let submitted = checkpoint.scores
    let wallet = wallet
    preferences.commitSoon()
    if !operations.isEmpty {
      try core.requireWritableMoney()
      try core.translating { try wallet.refuseUnshown(operations) }
    }
    let pending = try progress.performing(cells) {
      try scores.performing(submitted) {
        try core.commits.submit(saves: saves, cells: cells, scores: submitted, wallet: operations)
      }
    }
    return Pending(
      pending.map { _ in
        if !operations.isEmpty { wallet.invalidate() }
      })
  }

  /// The problems with the data since it was opened, oldest first; at most the newest 100.
  public var incidents: [Incident] { core.events.incidents }

  /// The changes from other devices and from the bank. A reader that falls behind by more than 256 changes misses the
  /// oldest.
  public var changes: AsyncStream<GameChange> { core.events.changes.stream() }

  /// Returns the changes since the last call, for a game loop that doesn't run tasks.
  ///
  /// - Returns: The changes, oldest first; at most the newest 256.
  public func takeChanges() -> [GameChange] { core.events.takeChanges() }

  /// Closes the data: first that of its shared containers, then ends the connection to the cloud, waits for queued
  /// captures and preferences, and closes the files. Closing again does nothing.
  ///
  /// Data that is released without being closed keeps its folder until everything that was captured is written, with
  /// nobody to throw an error to. Opening the folder again in this program waits for that, up to 5 seconds, and then
  /// throws `inUse`: also if the game still holds a part of that data, such as ``saves``.
  ///
  /// - Parameter limit: How long to wait.
  /// - Throws: `StoreError` with `timedOut` if it takes longer: captures are then still being written, preferences are
  ///   still in memory, and `close` can be called again. `removed`, with everything closed, if the game's files aren't
  ///   in their folder any more: what was committed after they were removed is lost (see `rescue(to:)`).
  public func close(within limit: Duration = .seconds(10)) throws {
    guard !closed.withLock({ $0 }) else { return }
    let start = core.environment.uptime()
    func left() -> Duration { max(limit - (core.environment.uptime() - start), .zero) }
    do {
      for shared in sharedGames.close() {
        do {
          try shared.close(within: left())
        } catch let error as StoreError where error.code == .removed {
          // It is closed, and lay in the folder of the game's own, which throws the same below.
        }
      }
    } catch {
      sharedGames.reopen()
      throw error
    }
    try cloud.close(within: left())
    let chosen = try preferences.close(within: left())
    var removal: StoreError?
    func closing(_ body: () throws -> Void) throws {
      do {
        try body()
      } catch let error as StoreError where error.code == .removed {
        removal = removal ?? error
      } catch {
        preferences.reopen()
        throw error
      }
    }
    // Closed before the store, whose lock also protects the records.
    try closing { try records.close(within: left()) }
    // With everything that was queued; closing the store waits for it, too, and throws what went wrong.
    try? core.store.base.drain(within: left())
    wallet.keepBalances()
    try closing { try core.store.base.close(within: left()) }
    // The commit is decided by now, but its result may not have been delivered yet. If it failed, an incident says why.
    _ = try? chosen?.wait(within: left())
    closed.withLock { $0 = true }
    progress.finish()
    preferences.finish()
    scores.finish()
    // Purchases that wait for the bank find out that the data is closed.
    wallet.needs.walletDidChange()
    core.events.finish()
    if let removal { throw removal }
  }

  deinit {
    // If a game releases its data without closing it, the sync service would keep the store alive forever.
    cloud.abandon()
    core.store.base.willBeReleased()
  }
}
