public import Foundation
import KeepsakeReplication
public import KeepsakeStore
import Synchronization

/// All that a game keeps of one player: saved games, progress, money; durable here, and the same on all of the player's
/// devices once a cloud is connected.
///
///     let game = try GameData.open("com.example.space")
///     var world = try game.saves.load(.main) ?? World()
///     ...
///     try game.close(within: .seconds(2))
///
/// Everything works without a cloud. Calls are synchronous where they touch this device only, and safe from any thread or
/// actor. One process at a time may have a folder open.
public final class GameData: Sendable {
  /// The folder in which everything is kept.
  public let url: URL
  /// The saved games.
  public let saves: SaveSlots
  /// Values that never go backwards.
  public let progress: ProgressStore
  /// High scores.
  public let scores: HighScores
  /// The player's money.
  public let wallet: WalletStore
  /// What the player chose.
  public let preferences: Preferences
  /// Versions of files that the game keeps and reads itself.
  public let files: TrackedFiles
  /// The game's own tables.
  public let records: Records
  /// The same data on the player's other devices.
  public let cloud: Cloud

  let core: GameCore
  /// How it was opened.
  let options: OpenOptions
  /// What `attach` was given.
  let attachedAssets = Mutex<AssetLibrary?>(nil)
  let closed = Mutex(false)

  /// Opens the data of the game `id`, or begins it.
  ///
  /// Without `at`, it is in the platform's folder for such data: `$XDG_DATA_HOME` or `~/.local/share` on Linux, Application
  /// Support on Apple's systems, `%LOCALAPPDATA%` on Windows; in it, a folder `id` and in that one per profile.
  ///
  /// Of a slot's past the versions stay that `history` names, pinned ones, and whatever is needed to settle a conflict. Other rules
  /// than before hold for a slot from its next save on.
  ///
  /// With a `seal`, what other hands changed is found; it belongs to the store from then on and is given at each opening.
  ///
  /// Throws `StoreError`: `inUse` if it is open elsewhere, `newerFormat` (nothing is touched) if a newer version of the game
  /// wrote it, `damaged` if the database can't be read; and with nothing touched `wrongSecret` for another secret, game,
  /// profile or player, `otherSeal` for a seal where there is none or the other way round, `tampered` by the policy `reject`.
  public static func open(
    _ id: String, profile: String = "default", at url: URL? = nil, seal: Seal = .none, history: HistoryRules = .standard
  ) throws -> GameData {
    try open(id, profile: profile, at: url, seal: seal, history: history, environment: .system)
  }

  /// With a clock of the caller's, for tests.
  package static func open(
    _ id: String, profile: String = "default", at url: URL? = nil, seal: Seal = .none, history: HistoryRules = .standard,
    environment: GameEnvironment
  ) throws -> GameData {
    try StorageFolders.check(id, "a game's identifier")
    try StorageFolders.check(profile, "a profile's name")
    let options = OpenOptions(game: id, profile: profile, seal: seal, history: history, hasCustomURL: url != nil)
    return try open(at: url ?? StorageFolders(id).profile(profile), options, environment)
  }

  static func open(at url: URL, _ options: OpenOptions, _ environment: GameEnvironment) throws -> GameData {
    let store = try Store.open(at: url, seal: options.sealRequest, history: options.history)
    do {
      try options.accounts?.recordName(in: url)
      return try GameData(store: store, options, environment: environment)
    } catch {
      try store.close()
      throw error
    }
  }

  private init(store: Store, _ options: OpenOptions, environment: GameEnvironment) throws {
    url = store.url
    self.options = options
    core = GameCore(store: store, environment: environment)
    core.reportSealFindings()
    try core.showSlots()
    saves = SaveSlots(core: core)
    progress = try ProgressStore(core: core)
    scores = HighScores(core: core)
    wallet = WalletStore(core: core)
    preferences = try Preferences(core: core)
    files = TrackedFiles(core: core)
    records = Records(core: core)
    cloud = try Cloud(core: core, progress: progress, scores: scores, wallet: wallet, preferences: preferences)
  }

  /// Makes what `body` puts into the checkpoint durable together: all of it or nothing, here and on every other device.
  ///
  /// Returns before it is durable. If `body` throws, nothing happens. While `Cloud.delivery` keeps something back, it throws `insufficient`
  /// itself for a spend beyond what `wallet` shows. Preferences that were set before are durable no later.
  @discardableResult
  public func checkpoint(_ body: (inout Checkpoint) throws -> Void) throws -> Pending<Void> {
    var checkpoint = Checkpoint(core: core, scores: scores)
    try body(&checkpoint)
    let (saves, cells, operations) = (checkpoint.saves, checkpoint.cells, checkpoint.operations)
    let submitted = checkpoint.scores
    let wallet = wallet
    preferences.commitSoon()
    if !operations.isEmpty { try wallet.refuseUnshown(operations) }
    let pending = try progress.performing(cells) {
      try scores.performing(submitted) {
        try core.commit(saves: saves, cells: cells, scores: submitted, wallet: operations)
      }
    }
    return Pending(
      pending.map { _ in
        if !operations.isEmpty { wallet.invalidate() }
      })
  }

  /// What went wrong with what is kept, oldest first, since this was opened; at most the newest hundred.
  public var incidents: [Incident] { core.incidents }

  /// What comes from other devices and from the bank, as it comes. Whoever falls behind by more than 256 misses the oldest.
  public var changes: AsyncStream<GameChange> { core.changes.stream() }

  /// What came since the last call, oldest first, at most the newest 256: for a game loop that never lets tasks run.
  public func takeChanges() -> [GameChange] { core.takeChanges() }

  /// Stops talking to the cloud, finishes what was captured and set, and closes the files. Closing twice does nothing.
  ///
  /// Throws `StoreError.Code.timedOut` if that takes longer; what was captured is then still being written, what was set is still in
  /// memory, and `close` can be called again.
  public func close(within limit: Duration = .seconds(10)) throws {
    guard !closed.withLock({ $0 }) else { return }
    let start = core.environment.uptime()
    func left() -> Duration { max(limit - (core.environment.uptime() - start), .zero) }
    try cloud.close(within: limit)
    let chosen = try preferences.close(within: left())
    do {
      // Before the store, whose lock guards them.
      try records.close(within: left())
      try core.store.close(within: left())
    } catch {
      preferences.reopen()
      throw error
    }
    // Decided by now, but perhaps not told yet: why it failed, if it did, stands in the incidents.
    _ = try? chosen?.wait(within: left())
    closed.withLock { $0 = true }
    progress.finish()
    preferences.finish()
    scores.finish()
    core.changes.finish()
    core.slotTicks.finish()
    core.statusTicks.finish()
  }

  deinit {
    // A game that lets go without closing: what talks to the cloud would hold the store for ever.
    cloud.abandon()
  }
}
