import Foundation
import KeepsakeReplication
import KeepsakeStore

/// Moves one store's data into another, in steps that can each be repeated.
///
/// 1. `pack`: takes the money out of the first store and keeps it there for this account only: the operations of a
///    wallet that no bank knows as a parcel, and a wallet that a bank knows as it is. One transaction.
/// 2. `keepCredentials`: copies those with which the other store's banks can be asked.
/// 3. `take`: adds values, saves, scores, the parcel and the wallets to the second store, which records that it
///    received the parcel. One transaction.
/// 4. `settle`: removes the parcel and the wallets from the first store. One transaction.
///
/// After a crash, what is kept shows whether step 1 is done, and the record whether step 3 is. Repeating the rest of
/// step 3 changes nothing: a wallet that a bank has settled meanwhile gets the same voucher again, which is paid once.
struct Adopter {
  /// The reason that both ledgers show for the operations.
  private static let reason = "adopted"

  private let source: Store
  private let core: GameCore
  private let own: AccountLocation

  init(from source: Store, into core: GameCore, for own: AccountLocation) {
    (self.source, self.core, self.own) = (source, core, own)
  }

  // MARK: The other's money leaves

  /// First delivers what the store held back. Throws `promised` while an earlier parcel hasn't reached another account.
  func pack() throws {
    let now = core.environment.nowMilliseconds()
    try source.write { transaction in
      // What was held back for a game that chooses the moment belongs to this store like everything else. No game is
      // there to be notified.
      _ = try DeviceEngine.deliver(in: &transaction)
      var note = try transaction.adoptionNote()
      if let underway = note.underway {
        guard underway.place == own.name else {
          let other = underway.account.isEmpty ? Account.guest : .named(underway.account)
          throw GameDataError(
            .promised(to: other), "the money is on its way to the \(other): open that one and finish its adoption first"
          )
        }
        return
      }
      guard let state = try transaction.wallet() else { return }
      var random = SystemRandomNumberGenerator()
      var underway = AdoptionNote.Underway(place: own.name, account: own.account.name ?? "")
      if state.isKnownToBank {
        // It stays with a bank that nobody could ask from here (`Adoption.Left.money`).
        guard try canBeSettled(state.bank ?? transaction.facts().container) else { return }
        try DeviceCommit.leaveBank(in: &transaction, using: &random)
        note.handed = nil
      } else {
        var wallet = KeepsakeReplication.Wallet(state)
        underway.parcel = try wallet.pack(since: note.handed, reason: Self.reason, now: now, using: &random)
        if underway.parcel != nil {
          note.handed = wallet.mark
          try transaction.setWallet(wallet.state)
        }
      }
      let former = try transaction.formerWallets()
      let settled = try former.filter { try canBeSettled($0.bank) }
      if !settled.isEmpty {
        underway.wallets = settled
        try transaction.setFormerWallets(former.filter { !settled.contains($0) })
      }
      guard underway.parcel != nil || underway.wallets != nil else { return }
      note.underway = underway
      try transaction.setAdoptionNote(note)
    }
  }

  /// How to reach the banks that know the other store's wallets.
  private var banks: FormerBanks {
    FormerBanks(folder: source.url, store: source, environment: core.environment, storage: core.credentials)
  }

  /// Returns whether this device can ask the bank of a container.
  private func canBeSettled(_ container: ContainerID?) throws -> Bool {
    guard let container else { return false }
    return try core.environment.formerCloud(container) != nil || banks.credentials(for: container) != nil
  }

  /// Gives this store the credentials for the banks whose wallets it is about to receive.
  func keepCredentials() throws {
    let wallets = try source.read { try $0.adoptionNote().underway?.wallets } ?? []
    let banks = banks
    let credentials = try Set(wallets.flatMap { [$0.bank, $0.receiver] }.compactMap(\.self))
      .compactMap { try banks.credentials(for: $0) }
    try FormerClouds(in: core.store.url, of: core.store.base, core.credentials).add(credentials)
  }

  // MARK: Everything arrives

  /// Returns what was adopted, and the keys of the values that changed.
  func take() throws -> (Adoption, [CellKey]) {
    try source.read { theirs in
      try core.store.write { mine in
        var adoption = Adoption()
        var groups = AdoptedGroups()
        // One transaction: what the game saves while this runs comes after it.
        let cells = try DeviceCommit.adopt(theirs.cells(in: nil), into: &groups, in: &mine)
        adoption.values = cells.changed.map(\.description)
        adoption.left.values = cells.refused.map(\.description)
        var left: (saves: Set<String>, files: Set<String>) = ([], [])
        for (key, heads) in try theirs.headsOfAllSlots().sorted(by: { $0.key.text < $1.key.text }) {
          guard try key.isLocal || theirs.isLocal(key.slot) || mine.isLocal(key.slot) else {
            try takeSlot(key, heads, theirs, into: &mine, &groups, &adoption)
            continue
          }
          // What one account keeps out of its cloud must not get into the other's.
          guard try heads.contains(where: { try theirs.version($0)?.record.tombstone == false }) else { continue }
          if let file = key.fileName { left.files.insert(file) } else { left.saves.insert(key.name) }
        }
        (adoption.left.localSaves, adoption.left.files) = (left.saves.sorted(), left.files.sorted())
        adoption.left.notDownloaded.sort()
        try groups.enter(&mine)
        adoption.scores = try takeScores(theirs, into: mine)
        try takeMoney(theirs, into: &mine, &adoption)
        adoption.left.hasRecords = RecordsDatabase.isPresent(in: source.url)
        adoption.left.hasIncoming = try !theirs.staged().isEmpty
        return (adoption, cells.changed)
      }
    }
  }

  private func takeSlot(
    _ key: SlotKey, _ heads: [VersionID], _ theirs: StoreTransaction, into mine: inout StoreTransaction,
    _ groups: inout AdoptedGroups,
    _ adoption: inout Adoption
  ) throws {
    var living: [VersionID] = []
    let file = key.fileName
    for id in heads {
      guard let record = try theirs.version(id)?.record, !record.tombstone, try DeviceCommit.isUnknown(id, in: mine)
      else { continue }
      if try theirs.isNotDownloaded(record) {
        // A slot in conflict has several.
        if adoption.left.notDownloaded.last != key.name { adoption.left.notDownloaded.append(key.name) }
      } else {
        living.append(id)
      }
    }
    guard !living.isEmpty else { return }
    let pinned = try theirs.pinnedVersions(of: key.text)
    var before: [ContentHash] = []
    var taken: Set<VersionID> = []
    // The oldest first, so that each version is stored as its changes against the one before.
    for version in try theirs.history(of: key.text).reversed()
    where try DeviceCommit.isUnknown(version.record.id, in: mine) {
      let (id, isHead) = (version.record.id, living.contains(version.record.id))
      guard isHead || !version.record.tombstone else { continue }
      guard try takeContents(version.record, after: before, theirs, into: &mine) else { continue }
      before = version.record.contents
      try DeviceCommit.adopt(version, isHead: isHead, into: &groups, in: &mine)
      if pinned.contains(id) { try mine.setPinned(true, id) }
      if isHead { taken.insert(id) }
    }
    if !taken.isEmpty { if let file { adoption.files.append(file) } else { adoption.saves.append(key.name) } }
    if taken.count < living.count {
      if let file { adoption.left.damagedFiles.append(file) } else { adoption.left.damagedSaves.append(key.name) }
    }
  }

  /// Returns false, and keeps nothing, if the contents can't be read in the other store.
  private func takeContents(
    _ record: VersionRecord, after before: [ContentHash], _ theirs: StoreTransaction, into mine: inout StoreTransaction
  ) throws -> Bool {
    var missing: [(place: Int, bytes: Data)] = []
    for (place, hash) in record.contents.enumerated() where try !mine.hasContent(hash) {
      do {
        missing.append((place, try theirs.plainContent(hash)))
      } catch let error as StoreError where error.code == .damaged || error.code == .missing || error.code == .tampered
      {
        return false
      }
    }
    for (place, bytes) in missing {
      // The part at about the same position in the previous version is the most likely to be similar.
      let base = before.isEmpty ? nil : before[min(place, before.count - 1)]
      _ = try mine.keepContent(bytes, against: base.flatMap { try mine.hasContent($0) ? $0 : nil })
    }
    return true
  }

  /// Adopts scores that aren't a player's best. The best ones come with the values.
  private func takeScores(_ theirs: StoreTransaction, into mine: StoreTransaction) throws -> Int {
    let known = try theirs.adoptionNote().scores[own.name] ?? []
    var count = 0
    for board in try theirs.boards() {
      for entry in try theirs.topScores(board.scores, on: board.board, board.order).entries
      where !known.contains(entry.id) {
        guard try !mine.hasScore(entry), try !isWithdrawn(entry, in: mine) else { continue }
        try mine.putScore(entry)
        count += 1
      }
    }
    return count
  }

  private func isWithdrawn(_ entry: ScoreEntry, in mine: StoreTransaction) throws -> Bool {
    guard case .best(let best)? = try mine.cell(entry.key)?.value else { return false }
    return best.isCleared || best.withdrawn.contains { $0.id == entry.id }
  }

  private func takeMoney(_ theirs: StoreTransaction, into mine: inout StoreTransaction, _ adoption: inout Adoption)
    throws
  {
    let note = try theirs.adoptionNote()
    var parcels = try mine.adoptedParcels()
    if let wallets = note.underway?.wallets {
      try DeviceCommit.adopt(wallets, in: &mine)
      var pending: [String: Int128] = [:]
      for wallet in wallets {
        for currency in wallet.currencies { pending[currency, default: 0] += Int128(wallet.pending(currency)) }
      }
      for (currency, amount) in pending where amount > 0 {
        adoption.pendingMoney[Currency(currency)] = Int(clamping: amount)
      }
    }
    if let parcel = note.underway?.parcel, !parcels.contains(parcel.id) {
      var random = SystemRandomNumberGenerator()
      var wallet = KeepsakeReplication.Wallet(try mine.wallet() ?? WalletState(chain: ChainID(using: &random)))
      var known: Set<OperationID> = []
      for operation in parcel.operations where try isKnown(operation, in: mine) { known.insert(operation.id) }
      for movement in try wallet.receive(parcel, knowing: known.contains).flatMap(\.movements) {
        let change = Int(clamping: movement.earned - movement.spent)
        adoption.money[Currency(movement.currency), default: 0] += change
      }
      parcels.append(parcel.id)
      try mine.setWallet(wallet.state)
      try mine.setAdoptedParcels(parcels)
    }
    guard let left = try theirs.wallet().map({ KeepsakeReplication.Wallet($0) }) else { return }
    for currency in left.currencies where left.total(currency) != 0 {
      adoption.left.money[Currency(currency)] = Int(clamping: left.total(currency))
    }
    // What the other account's bank still has to learn stays with it.
    if left.state.isKnownToBank { adoption.left.unreported = left.unreported.sorted().map { Currency($0) } }
  }

  /// Returns whether the operation was performed here before, or its payment claimed.
  private func isKnown(_ operation: WalletOperation, in mine: StoreTransaction) throws -> Bool {
    if try mine.performedOperation(operation.id) != nil { return true }
    return try operation.kind.key.map(mine.hasClaimed) ?? false
  }

  // MARK: Preferences of this device

  /// Adopts the preferences that this account doesn't have.
  func takePreferences(into mine: Preferences, _ adoption: inout Adoption) throws {
    let names = Set(mine.names)
    for kept in try source.read({ try $0.preferences().kept }) where !names.contains(kept.name) {
      do {
        try mine.take(kept.bytes(), named: kept.name)
        adoption.preferences.append(kept.name)
      } catch let error as StoreError where error.code == .damaged || error.code == .tampered {
        adoption.left.preferences.append(kept.name)
      } catch let error as GameDataError where error.code == .tooLarge {
        adoption.left.preferences.append(kept.name)
      }
    }
  }

  // MARK: The end

  func settle() throws {
    try source.write { transaction in
      var note = try transaction.adoptionNote()
      var scores = note.scores[own.name] ?? []
      for board in try transaction.boards() {
        scores.formUnion(try transaction.topScores(board.scores, on: board.board, board.order).entries.map(\.id))
      }
      guard note.underway != nil || note.scores[own.name] ?? [] != scores else { return }
      note.underway = nil
      note.scores[own.name] = scores.isEmpty ? nil : scores
      try transaction.setAdoptionNote(note)
    }
  }
}

extension Account {
  /// The account's name; nil for the guest.
  var name: String? {
    if case .named(let name) = self { return name }
    return nil
  }
}
