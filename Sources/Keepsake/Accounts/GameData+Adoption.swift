import KeepsakeReplication
import KeepsakeStore

/// What was played as a guest becomes an account's, when the player says so.
extension GameData {
  /// Joins what another account has on this device, such as the guest, to this one.
  ///
  ///     let game = try GameData.open("com.example.space", account: .named(session.userID))
  ///     let adoption = try game.adopt(.guest)
  ///     for (currency, amount) in adoption.money { show("\(amount) \(currency.name) are yours now") }
  ///
  /// | | |
  /// |---|---|
  /// | progress, each player's best, synced preferences | join by their rules; what was last set or reset as a guest gives way to what the account has set with its cloud |
  /// | saved games, with their history | come beside the account's own, a conflict where both have one; a guest's delete deletes nothing |
  /// | money | all that the other may spend on this device moves, once. The other has none of it afterwards |
  /// | claims | are made anew, and count once for each player |
  /// | the boards' other scores | come too, once |
  /// | preferences of this device | where the account has none |
  /// | versions of tracked files | as saved games do; `TrackedFiles.place` puts the file where the game wants it |
  /// | tables, slots and files that either keeps out of its cloud (`SaveSlots.keepLocal`) | stay behind (`Adoption.left`) |
  ///
  /// Adopting again changes nothing but what came since. If it is interrupted at any point, the next call does the rest; until then money that has
  /// left the other's wallet is kept for this account alone. Goods of operations that the other's bank has already settled don't move with the money.
  ///
  /// The other's cloud isn't asked: it hears of its money's going as of any spending, when the other is open and connected the next time. Until then
  /// `Adoption.left` says so, and `emptying` deletes nothing: let it `sync`, and adopt again. Of money that was earned in copies of one guest's data, on two
  /// devices, each operation counts once, if no cloud had been connected.
  ///
  /// Costs what saving all of the other's saves anew costs, on this thread.
  ///
  /// - Parameters:
  ///   - other: Whose data; not open at the time.
  ///   - emptying: Whether to delete the other's data from this device afterwards. Where something is left behind they stay, as do those of which
  ///     its own cloud hasn't heard yet that the money went.
  /// - Throws: `GameDataError` with `misuse` for this account itself, and where no account was named at opening; `promised` where another account
  ///   began to adopt and hasn't got the money yet; `tooLarge` where the wallet can't take it; `StoreError` with `missing` if the other has no data here,
  ///   `inUse` while it is open, and what keeps either from being read or written. Everything is as it was then, or the next call goes on.
  @discardableResult
  public func adopt(_ other: Account, emptying: Bool = false) throws -> Adoption {
    guard let own = options.accounts else {
      throw GameDataError(.misuse, "only data that were opened with an account can adopt another's: open them with `account:`")
    }
    guard own.account != other else { throw GameDataError(.misuse, "the \(other) can't adopt itself") }
    let place = try AccountLocation(other, in: own.base)
    guard StoreRemoval.isStore(place.url) else { throw StoreError(.missing, "there is no \(other) on this device") }
    let otherOptions = OpenOptions(game: options.game, place, seal: options.seal, history: .everything)
    let store = try Store.open(at: place.url, seal: otherOptions.sealRequest, history: otherOptions.history)
    var adoption: Adoption
    do {
      adoption = try core.translating { try adopt(store, for: own) }
      try store.close()
    } catch {
      do { try store.close() } catch {
        core.report(Incident(kind: .unreadable, message: "the \(other) can't be closed: \(error)", date: core.now))
      }
      throw error
    }
    if emptying, adoption.left.isEmpty {
      try StoreRemoval.remove(place.url)
      adoption.isEmptied = true
    }
    return adoption
  }

  private func adopt(_ store: Store, for own: AccountLocation) throws -> Adoption {
    let adopter = Adopter(from: store, into: core, for: own)
    try adopter.pack()
    var (adoption, keys) = try adopter.take()
    try adopter.takePreferences(into: preferences, &adoption)
    try adopter.settle()
    wallet.invalidate()
    // At once, whatever `cloud.delivery` says: it is the game's own doing.
    let eventHandler = CloudEventHandler(
      core: core, deliveryBuffer: DeliveryBuffer(), progress: progress, scores: scores, wallet: wallet, preferences: preferences)
    if !keys.isEmpty { eventHandler.handle(.cells(keys)) }
    let slots = adoption.saves + adoption.files.map(FileSlot.slot)
    if !slots.isEmpty { eventHandler.handle(.slots(slots)) }
    if !adoption.money.isEmpty { eventHandler.handle(.wallet) }
    core.didCommit()
    return adoption
  }
}
