import KeepsakeReplication
import KeepsakeStore

/// Adoption: joining a guest's data with an account's.
extension GameData {
  /// Joins the data of another account on this device, such as the guest's, with this account's data.
  ///
  /// ```swift
  /// let game = try GameData.open("com.example.space", account: .named(session.userID))
  /// let adoption = try game.adopt(.guest)
  /// for (currency, amount) in adoption.money { show("\(amount) \(currency.name) are yours now") }
  /// if !adoption.pendingMoney.isEmpty { show("More is on the way") }
  /// ```
  ///
  /// | Data | What happens |
  /// |---|---|
  /// | progress, best scores, synced preferences | joined by their rules |
  /// | saved games and their history | added; a conflict where both have a save; a guest's deletion deletes nothing |
  /// | money that no bank knows | the operations themselves are moved; each counts once |
  /// | money at a bank | what this device holds there, as the last device everything, is moved, once: see below |
  /// | claims | repeated unless a bank has paid them; each counts once for a player |
  /// | other scores on boards | added, once |
  /// | preferences of this device | added where the account has none |
  /// | versions of tracked files | as saved games; `TrackedFiles.place` writes the file to disk |
  /// | tables, local slots and local files (`SaveSlots.keepLocal`) | stay behind (`Adoption.left`) |
  /// | the data of shared containers | stays behind |
  ///
  /// A value that the account has set since it caught up with its cloud wins over the guest's last set or reset.
  ///
  /// Adopting again adds only what is new. If it is interrupted at any point, the next call completes it; until then,
  /// money that has left the other wallet is reserved for this account. Goods from operations that the other account's
  /// bank has settled don't move with the money.
  ///
  /// A wallet that the other account's bank knows is settled there once this account is connected to the same server:
  /// that bank decides what it hasn't yet, closes the wallet, and signs a voucher, which this account's bank pays once,
  /// even if a restored copy of the other account is adopted again. Until then the money is in
  /// `Balance.pending`; if that bank can't be reached, the game goes on without it. If a guest's data was copied to two
  /// devices and no cloud was connected, each operation counts once.
  ///
  /// Costs as much as saving all of the other account's saves again, on the calling thread.
  ///
  /// - Parameters:
  ///   - other: The account to adopt. It must not be open.
  ///   - emptying: Whether to delete the other account's data from this device afterwards. It isn't deleted if anything
  ///     stays behind.
  /// - Returns: What was adopted, and what stays behind.
  /// - Throws: `GameDataError` with `misuse` for this account itself, or if this data was opened without an account;
  ///   `promised` if another account has begun to adopt and hasn't received the money; `tooLarge` if the wallet can't
  ///   hold it. `StoreError` with `missing` if the other account has no data on this device, `inUse` while it is open,
  ///   or another code if either can't be read or written. Nothing has changed then, or the next call continues.
  @discardableResult
  public func adopt(_ other: Account, emptying: Bool = false) throws -> Adoption {
    guard let own = options.accounts else {
      throw GameDataError(
        .misuse, "only data that was opened with an account can adopt another's: open it with `account:`")
    }
    guard own.account != other else { throw GameDataError(.misuse, "the \(other) can't adopt itself") }
    let place = try AccountLocation(other, in: own.base)
    guard StoreRemoval.isStore(place.url) else { throw StoreError(.missing, "there is no \(other) on this device") }
    let otherOptions = OpenOptions(game: options.game, place, seal: options.seal, history: .everything)
    let store = try Store.open(at: place.url, seal: otherOptions.sealRequest, history: otherOptions.history)
    var adoption: Adoption
    do {
      adoption = try core.translating { try adopt(store, for: own) }
      adoption.left.shared = try SharedFolder.names(in: place.url)
      try store.close()
    } catch {
      do { try store.close() } catch {
        core.events.report(
          Incident(kind: .unreadable, message: "the \(other) can't be closed: \(error)", date: core.now))
      }
      throw error
    }
    if emptying, adoption.left.isEmpty {
      try core.credentials.deleteStore(at: place.url)
      adoption.isEmptied = true
    }
    return adoption
  }

  private func adopt(_ store: Store, for own: AccountLocation) throws -> Adoption {
    let adopter = Adopter(from: store, into: core, for: own)
    try adopter.pack()
    try adopter.keepCredentials()
    var (adoption, keys) = try adopter.take()
    // Once more: a connection that removes what it doesn't need knew of no wallet that needs them.
    try adopter.keepCredentials()
    try adopter.takePreferences(into: preferences, &adoption)
    try adopter.settle()
    wallet.invalidate()
    // Shown immediately, regardless of `cloud.delivery`: the game itself asked for it.
    let eventHandler = CloudEventHandler(
      core: core, deliveryBuffer: DeliveryBuffer(), progress: progress, scores: scores, wallet: wallet,
      preferences: preferences)
    if !keys.isEmpty { eventHandler.handle(.cells(keys)) }
    let slots = adoption.saves + adoption.files.map { SlotKey.file($0).text }
    if !slots.isEmpty { eventHandler.handle(.slots(slots)) }
    if !adoption.money.isEmpty || !adoption.pendingMoney.isEmpty { eventHandler.handle(.wallet) }
    core.cloud.didCommit()
    core.cloud.settleFormerWallets()
    return adoption
  }
}
