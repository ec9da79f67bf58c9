public import Foundation
public import KeepsakeReplication
public import KeepsakeStore

/// Several accounts on one device, each with its own store.
extension GameData {
  /// Opens an account's data, and creates it on first use.
  ///
  /// ```swift
  /// let game = try GameData.open("com.example.space", account: .named(session.userID))
  /// ```
  ///
  /// Two accounts can be open at the same time and share nothing. The same account can be open only once
  /// (`StoreError.Code.inUse`).
  ///
  /// - Parameters:
  ///   - id: The game's identifier, as for `open(_:profile:at:seal:history:credentials:)`.
  ///   - account: The account. A guest's data is that of the profile `default`.
  ///   - folder: The folder of all accounts; the platform's folder if nil. Nothing else may be kept in it.
  ///   - seal: As for `open(_:profile:at:seal:history:credentials:)`.
  ///   - history: As for `open(_:profile:at:seal:history:credentials:)`.
  ///   - credentials: As for `open(_:profile:at:seal:history:credentials:)`. Accounts can share a store.
  /// - Returns: The open data.
  /// - Throws: As `open(_:profile:at:seal:history:credentials:)`; `GameDataError` with `misuse` for a name that is
  ///   empty or longer than `Account.maximumNameBytes`.
  public static func open(
    _ id: String, account: Account, in folder: URL? = nil, seal: Seal = .none, history: HistoryRules = .standard,
    credentials: CredentialStorage = .folder
  ) throws -> GameData {
    try open(
      id, account: account, in: folder, seal: seal, history: history, credentials: credentials, environment: .system)
  }

  /// The same with a given environment, for tests.
  package static func open(
    _ id: String, account: Account, in folder: URL? = nil, seal: Seal = .none, history: HistoryRules = .standard,
    credentials: CredentialStorage = .folder, environment: GameEnvironment
  ) throws -> GameData {
    let place = try AccountLocation(account, in: base(of: id, folder))
    if case .named = account { try StoreFolder.create(AccountLocation.accounts(in: place.base), isPrivate: true) }
    let options = OpenOptions(game: id, place, seal: seal, history: history, credentials: credentials)
    return try open(at: place.url, options, environment)
  }

  private static func base(of id: String, _ folder: URL?) throws -> URL {
    try StorageFolders.check(id, "a game's identifier")
    return try folder ?? StorageFolders(id).url(for: .data)
  }

  /// The account that was passed at opening; nil if none was.
  public var account: Account? { options.accounts?.account }

  /// Lists the accounts with data on this device, the guest first and then by name. Opens none of them.
  ///
  /// ```swift
  /// for entry in try GameData.accounts(of: "com.example.space") { show(entry.account, entry.contents?.lastSaved) }
  /// ```
  ///
  /// An open account is listed as of its last commit. Reads the heads of all saves and the outgoing queues.
  ///
  /// - Parameters:
  ///   - id: The game's identifier.
  ///   - folder: As for `open`.
  ///   - seal: The game's seal. Without it a sealed account has no `contents`.
  /// - Returns: The accounts.
  /// - Throws: `GameDataError` with `misuse` for an invalid identifier; `StoreError` if the folder can't be read.
  public static func accounts(of id: String, in folder: URL? = nil, seal: Seal = .none) throws -> [AccountSummary] {
    try AccountLocation.all(in: base(of: id, folder)).map { place in
      let options = OpenOptions(game: id, place, seal: seal, history: .standard)
      return AccountSummary(account: place.account, url: place.url, contents: contents(at: place.url, options))
    }
  }

  /// Returns nil if the data can't be read: the list is for choosing, and opening reports the error.
  private static func contents(at url: URL, _ options: OpenOptions) -> AccountSummary.Contents? {
    try? StoreReader.open(at: url, seal: options.sealRequest).read { transaction in
      let local = try transaction.localSlots()
      let heads = try transaction.headVersionsOfAllSlots()
        .filter { key, _ in !key.isFile && local.contains(key.slot) == key.isLocal }
        .mapValues { $0.map(\.version.record).filter { !$0.tombstone } }.filter { !$0.value.isEmpty }
      var contents = AccountSummary.Contents(
        saves: heads.count, money: [:],
        unsent: try UnsentData(transaction, hasRecords: RecordsDatabase.isPresent(in: url)),
        hasCloud: try transaction.facts().container != nil)
      contents.lastSaved = heads.values.joined().map(\.savedAtMilliseconds).max().map {
        Date(timeIntervalSince1970: Double($0) / 1000)
      }
      if let wallet = try transaction.wallet().map({ KeepsakeReplication.Wallet($0) }) {
        for currency in wallet.currencies { contents.money[Currency(currency)] = Int(clamping: wallet.total(currency)) }
      }
      return contents
    }
  }

  /// Deletes an account from this device, with its history, backups and money. It must not be open. This can't be
  /// undone.
  ///
  /// ```swift
  /// try GameData.forget(.named(id), of: "com.example.space")
  /// ```
  ///
  /// The cloud's copy stays, for the player's other devices; this call doesn't contact the cloud. To leave the cloud
  /// too, so that no money stays reserved for this device, and to be warned if this is the player's last device, open
  /// the account and call `signOut(forgetting:)`.
  ///
  /// - Parameters:
  ///   - account: The account.
  ///   - id: The game's identifier.
  ///   - folder: As for `open`.
  ///   - seal: The game's seal.
  ///   - losing: Whether to delete data that no cloud has, also in shared containers.
  ///   - credentials: As it was passed at opening: what the account has there is removed.
  /// - Throws: `GameDataError` with `wouldBeLost`; `StoreError` with `inUse` while it is open, `missing` if it doesn't
  ///   exist, `misuse` if its credentials are in a store that wasn't passed, or another code if it can't be read.
  ///   Nothing has changed then. If the credential store or the disk fails after that, the account is gone, and
  ///   deleting another one with the same credentials does the rest.
  public static func forget(
    _ account: Account, of id: String, in folder: URL? = nil, seal: Seal = .none, losing: Bool = false,
    credentials: CredentialStorage = .folder
  ) throws {
    let place = try AccountLocation(account, in: base(of: id, folder))
    guard StoreRemoval.isStore(place.url) else { throw StoreError(.missing, "there is no \(account) on this device") }
    if !losing {
      let options = OpenOptions(game: id, place, seal: seal, history: .standard)
      try refuseLoss(at: place.url, options)
      try refuseLossOfShared(in: place.url, options)
    }
    try credentials.deleteStore(at: place.url)
  }

  /// Throws `wouldBeLost` if a closed store has data that no cloud has.
  static func refuseLoss(at url: URL, _ options: OpenOptions, everything: Bool = false) throws {
    let unsent = try StoreReader.open(at: url, seal: options.sealRequest).read {
      try UnsentData($0, hasRecords: RecordsDatabase.isPresent(in: url), everything: everything)
    }
    try refuseLoss(of: unsent)
  }

  /// Does the same for the data of all shared containers in the folder of a closed store.
  static func refuseLossOfShared(in url: URL, _ options: OpenOptions) throws {
    for name in try SharedFolder.names(in: url) {
      try refuseLoss(at: SharedFolder.url(of: name, in: url), options.sharing(name))
    }
  }

  static func refuseLoss(of unsent: UnsentData) throws {
    guard unsent.isEmpty else {
      throw GameDataError(.wouldBeLost(unsent), "this is only on this device, and would be lost: \(unsent)")
    }
  }
}
