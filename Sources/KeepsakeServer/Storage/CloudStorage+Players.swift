#if Cloud
import Foundation
import KeepsakeReplication

// What a player's devices and the game's servers ask of a container beside exchanges.
extension CloudStorage {
  /// Returns how far a container has come.
  func position(of container: ContainerID) async throws -> Cursor {
    try await load(ReadSet(), of: container).position
  }

  /// Returns the same for a listener, which may name its cursor.
  func state(of container: ContainerID, for cursor: Cursor?) async throws -> ContainerState {
    var reads = ReadSet()
    if let cursor { reads.marks = [cursor.seq] }
    return try await look(at: container, reading: reads) { storage in
      let isUnknown = try cursor.map { try !CloudAcceptance.isOfThisHistory($0, in: storage) } ?? false
      return ContainerState(seq: storage.position().seq, unknown: isUnknown ? cursor : nil)
    }
  }

  /// Returns which devices have each of these versions, or one that replaced it.
  func devices(of container: ContainerID, holding versions: [VersionID]) async throws -> [VersionID: Set<DeviceID>] {
    var reads = ReadSet()
    (reads.reached, reads.suspects, reads.versions) = (true, true, Set(versions))
    return try await look(at: container, reading: reads) { try CloudAcceptance.devices(holding: versions, in: $0) }
  }

  /// Returns what the bank of a container has.
  ///
  /// - Parameters:
  ///   - goodsAfter: The number of the change after which goods are listed.
  ///   - ordersAfter: The number after which orders are listed; nil for the newest.
  func account(of container: ContainerID, goodsAfter: UInt64, ordersAfter: UInt64?) async throws -> BankAccount {
    var reads = ReadSet()
    reads.bank.state = true
    reads.bank.goodsAfter = BankReads.Range(after: goodsAfter, limit: WalletGoods.maximumChanges)
    return try await look(at: container, reading: reads) { storage in
      let bank = Bank(try storage.bank())
      let newest = bank.state.orderNumber ?? 0
      let (most, least) = (UInt64(NumberedOrder.maximumListed), ordersAfter ?? 0)
      // By default the newest ones.
      let after = ordersAfter == nil && newest > most ? newest - most : least
      let goods = try storage.goods(changedAfter: goodsAfter, limit: WalletGoods.maximumChanges)
      return BankAccount(
        balances: bank.shownBalances(), owed: bank.state.debts ?? [:],
        goods: Dictionary(goods.filter { $0.count > 0 }.map { ($0.name, $0.count) }) { $1 },
        goodsNumber: goods.last?.number ?? goodsAfter,
        orders: try storage.orders(after: after, limit: NumberedOrder.maximumListed), orderNumber: newest)
    }
  }

  // MARK: Releasing banks

  /// Ends the wait of a bank that was set back for devices that haven't shown what they were granted.
  ///
  /// - Returns: The seq to publish to the listeners; nil if the bank didn't wait.
  func releaseBank(of container: ContainerID, rules: BankRules) async throws -> UInt64? {
    let now = clock()
    var reads = ReadSet()
    reads.bank.state = true
    return try await decide(on: container, reading: reads) { storage in
      var source = SystemRandomNumberGenerator()
      let isReleased = try CloudAcceptance.releaseBank(now: now, rules: rules, in: &storage, using: &source)
      return isReleased ? storage.position().seq : nil
    }
  }

  /// The same for a page of all banks.
  ///
  /// - Parameter container: Where the page before ended; nil for the first one.
  func releaseBanks(after container: ContainerID?, rules: BankRules) async throws -> ReleasedBanks {
    let page = try await frozenBanks(after: container, epoch: rules.epoch)
    // Together: they share their commits.
    let released = try await withThrowingTaskGroup(of: (ContainerID, UInt64)?.self) { group in
      for container in page.containers {
        group.addTask {
          do {
            return try await self.releaseBank(of: container, rules: rules).map { (container, $0) }
          } catch let error as APIError where error.code == .retired {
            // Everything of the player was deleted meanwhile.
            return nil
          }
        }
      }
      return try await group.reduce(into: [ContainerID: UInt64]()) { all, one in
        if let one { all[one.0] = one.1 }
      }
    }
    return ReleasedBanks(seqs: released, unreadable: page.unreadable, next: page.next)
  }
}

extension DecidingStorage {
  /// Removes a device, closes its wallet's chains, and voids its player's pairing code; nil if the container never had
  /// it. Repeating it changes nothing.
  ///
  /// - Parameters:
  ///   - isLeaving: Whether the device removes itself: the recovery code that it has made stays then.
  ///   - leavesShared: Whether its player's game is removed from a shared container with it, if it was the last one
  ///     there.
  ///   - rules: Those of the container's bank.
  func retire(
    _ device: DeviceID, of container: ContainerID, isLeaving: Bool = false, leavesShared: Bool = false,
    rules: BankRules = BankRules(), now: Int64
  ) async throws -> Retirement? {
    var reads = ReadSet()
    (reads.device, reads.allChains, reads.bank.state) = (device, true, true)
    return try await decide(on: container, reading: reads, leaving: leavesShared ? device : nil) { storage in
      let known = try storage.device(device)
      guard known.seenMilliseconds != nil else { return known.isRetired ? Retirement(seq: nil) : nil }
      storage.retire(device, isLeaving: isLeaving, now: now)
      var source = SystemRandomNumberGenerator()
      let moved = try CloudAcceptance.retire(
        known.chains.sorted(), of: device, now: now, rules: rules, in: &storage, using: &source)
      return Retirement(seq: moved ? storage.position().seq : nil)
    }
  }
}

extension DecidingStorage {
  /// Removes the mark of a device whose store went back to an older state: what the device saves is taken again.
  ///
  /// - Returns: Whether the container has the device; repeating it changes nothing.
  func clearSetBack(of device: DeviceID, in container: ContainerID) async throws -> Bool {
    var reads = ReadSet()
    reads.device = device
    return try await decide(on: container, reading: reads) { storage in
      guard try storage.device(device).seenMilliseconds != nil else { return false }
      try CloudAcceptance.clearSetBack(of: device, in: &storage)
      return true
    }
  }
}

extension SnapshotContainer {
  /// Throws `APIError.retired` for a removed device. Records which chain of the wallet belongs to the device.
  mutating func admit(_ device: DeviceID, with chain: ChainID?) throws {
    if try self.device(device).isRetired { throw APIError.retired }
    if let chain { try recordChain(chain, of: device) }
  }

  /// Does the same for a device that leaves, unless the chain has left already: the bank's answer is then always the
  /// same, and its money isn't this player's any more. So it doesn't matter whether the device was removed meanwhile.
  mutating func admit(_ device: DeviceID, leavingOn chain: ChainID) throws {
    if try voucher(of: chain) == nil { try admit(device, with: chain) }
  }

  /// Records that a device was here, once a minute, unless it was removed.
  mutating func recordVisit(of identity: DeviceIdentity, now: Int64) throws {
    if try device(identity.device).isRetired { return }
    try recordVisit(
      WriteSet.Visit(player: identity.player, app: identity.app.bytes, milliseconds: now), of: identity.device,
      every: ServerLimits.visitMilliseconds)
  }
}
#endif
