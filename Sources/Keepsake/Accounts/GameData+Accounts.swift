public import Foundation
import KeepsakeReplication
public import KeepsakeStore

/// Several accounts on one device, each with a store of its own.
extension GameData {
  /// Opens the data of one account, or begins it.
  ///
  ///     let game = try GameData.open("com.example.space", account: .named(session.userID))
  ///
  /// Two accounts may be open at once: they have nothing in common. One and the same is open once (`StoreError.Code.inUse`).
  ///
  /// - Parameters:
  ///   - account: Whose data. A guest's are those of the profile `default`.
  ///   - folder: Where the game's accounts are; the platform's folder for such data if nil. Nothing else may be kept in it.
  /// - Throws: What `open(_:profile:at:seal:history:)` throws; `GameDataError` with `misuse` for an empty name or one of more than
  ///   `Account.maximumNameBytes`.
  public static func open(
    _ id: String, account: Account, in folder: URL? = nil, seal: Seal = .none, history: HistoryRules = .standard
  ) throws -> GameData {
    try open(id, account: account, in: folder, seal: seal, history: history, environment: .system)
  }

  /// With a clock of the caller's, for tests.
  package static func open(
    _ id: String, account: Account, in folder: URL? = nil, seal: Seal = .none, history: HistoryRules = .standard,
    environment: GameEnvironment
  ) throws -> GameData {
    let place = try AccountLocation(account, in: base(of: id, folder))
    if case .named = account { try makePrivateFolder(AccountLocation.accounts(in: place.base)) }
    return try open(at: place.url, OpenOptions(game: id, place, seal: seal, history: history), environment)
  }

  private static func base(of id: String, _ folder: URL?) throws -> URL {
    try StorageFolders.check(id, "a game's identifier")
    return try folder ?? StorageFolders(id).url(for: .data)
  }

  private static func makePrivateFolder(_ url: URL) throws {
    do {
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw StoreError(.notPermitted, "the folder \(url.path) can't be made", cause: error)
    }
  }

  /// Whose data these are; nil if no account was named when they were opened.
  public var account: Account? { options.accounts?.account }

  /// The accounts that have data on this device, the guest first, the others by name, and what they hold.
  ///
  ///     for entry in try GameData.accounts(of: "com.example.space") { show(entry.account, entry.contents?.lastSaved) }
  ///
  /// Opens none of them; one that is open is listed as its last commit left it. Costs reading the heads of all saves and what waits to be sent.
  ///
  /// - Parameter seal: The game's. Without it what is sealed has no `contents`.
  /// - Throws: `GameDataError` with `misuse` for an identifier that can't be, and `StoreError` if the folder can't be read.
  public static func accounts(of id: String, in folder: URL? = nil, seal: Seal = .none) throws -> [AccountSummary] {
    try AccountLocation.all(in: base(of: id, folder)).map { place in
      let options = OpenOptions(game: id, place, seal: seal, history: .standard)
      return AccountSummary(account: place.account, url: place.url, contents: contents(at: place.url, options))
    }
  }

  /// Nil for whatever can't be read: the list is for choosing, and opening says what is wrong.
  private static func contents(at url: URL, _ options: OpenOptions) -> AccountSummary.Contents? {
    try? StoreReader.open(at: url, seal: options.sealRequest).read { transaction in
      let local = try transaction.localSlots()
      let heads = try transaction.headVersionsOfAllSlots()
        .filter { place, _ in
          !FileSlot.contains(LocalSlot.slot(at: place)) && local.contains(LocalSlot.slot(at: place)) == LocalSlot.contains(place)
        }
        .mapValues { $0.map(\.version.record).filter { !$0.tombstone } }.filter { !$0.value.isEmpty }
      var contents = AccountSummary.Contents(
        saves: heads.count, money: [:], unsent: try UnsentData(transaction, hasRecords: RecordsDatabase.isPresent(in: url)),
        hasCloud: try transaction.facts().container != nil)
      contents.lastSaved = heads.values.joined().map(\.savedAtMilliseconds).max().map { Date(timeIntervalSince1970: Double($0) / 1000) }
      if let wallet = try transaction.wallet().map({ KeepsakeReplication.Wallet($0) }) {
        for currency in wallet.currencies { contents.money[Currency(currency)] = Int(clamping: wallet.total(currency)) }
      }
      return contents
    }
  }

  /// Deletes an account that isn't open from this device, with its history, its backups and its money, for good.
  ///
  ///     try GameData.forget(.named(id), of: "com.example.space")
  ///
  /// What the cloud has stays there, and is reached from the player's other devices. To leave the cloud as well, so that no money waits for a device that is
  /// gone, and to be told where this is the last device, open it and call `signOut(forgetting:)`: the cloud isn't asked here.
  ///
  /// - Parameter losing: Whether what no cloud has may be lost.
  /// - Throws: With nothing changed: `GameDataError` with `wouldBeLost`, and what that is; `StoreError` with `inUse` while it is open, `missing` if there
  ///   is none, or what keeps it from being looked at.
  public static func forget(
    _ account: Account, of id: String, in folder: URL? = nil, seal: Seal = .none, losing: Bool = false
  ) throws {
    let place = try AccountLocation(account, in: base(of: id, folder))
    guard StoreRemoval.isStore(place.url) else { throw StoreError(.missing, "there is no \(account) on this device") }
    if !losing { try refuseLoss(at: place.url, OpenOptions(game: id, place, seal: seal, history: .standard)) }
    try StoreRemoval.remove(place.url)
  }

  /// Throws `wouldBeLost` if a store that isn't open holds what no cloud has.
  static func refuseLoss(at url: URL, _ options: OpenOptions, everything: Bool = false) throws {
    let unsent = try StoreReader.open(at: url, seal: options.sealRequest).read {
      try UnsentData($0, hasRecords: RecordsDatabase.isPresent(in: url), everything: everything)
    }
    try refuseLoss(of: unsent)
  }

  static func refuseLoss(of unsent: UnsentData) throws {
    guard unsent.isEmpty else { throw GameDataError(.wouldBeLost(unsent), "this is only on this device, and would be lost: \(unsent)") }
  }
}
