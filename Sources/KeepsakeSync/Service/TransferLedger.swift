import KeepsakeReplication

/// How far each version has come, from what is told of its contents one by one.
struct TransferLedger: Sendable {
  private struct Key: Hashable {
    var version: VersionID
    var isUpload: Bool
  }
  private struct Account {
    var slot: String
    var bytesInAll: Int64
    /// Contents that are over, or were as far as this once.
    var done: [ContentHash: Int64] = [:]

    var bytesDone: Int64 { min(done.values.reduce(0, +), bytesInAll) }
  }

  private var accounts: [Key: Account] = [:]
  private var underWay: [EngineTransfer] = []

  /// The versions of which something is under way.
  var transfers: [SyncTransfer] {
    var seen: Set<Key> = []
    return underWay.compactMap { transfer in
      let key = Key(version: transfer.version, isUpload: transfer.isUpload)
      guard seen.insert(key).inserted, let account = accounts[key] else { return nil }
      return SyncTransfer(
        direction: key.isUpload ? .up : .down, slot: account.slot, version: key.version, bytesDone: account.bytesDone,
        bytesInAll: account.bytesInAll)
    }
  }

  /// What is under way now. A version of which nothing is keeps its account until all is quiet: it may wait for another try.
  mutating func update(_ transfers: [EngineTransfer], isQuiet: Bool) {
    underWay = transfers
    if isQuiet { accounts = [:] }
    for transfer in transfers {
      let key = Key(version: transfer.version, isUpload: transfer.isUpload)
      // What it began with: a later content knows only of what was left then.
      if accounts[key] == nil { accounts[key] = Account(slot: transfer.slot, bytesInAll: Int64(transfer.lengthInAll)) }
    }
  }

  /// Some bytes of a content went. Says nothing of one that isn't under way any more.
  mutating func progressed(_ request: UInt64, _ progress: TransferProgress) {
    guard let inAll = progress.bytesInAll, inAll > 0 else { return }
    change(request) { account, transfer in
      let share = min(max(Double(progress.bytesDone) / Double(inAll), 0), 1)
      let done = Int64((Double(transfer.length) * share).rounded(.down))
      account.done[transfer.content] = max(account.done[transfer.content] ?? 0, done)
    }
  }

  /// All bytes of a content went.
  mutating func finished(_ request: UInt64) {
    change(request) { account, transfer in account.done[transfer.content] = Int64(transfer.length) }
  }

  private mutating func change(_ request: UInt64, _ change: (inout Account, EngineTransfer) -> Void) {
    guard let transfer = underWay.first(where: { $0.request == request }) else { return }
    let key = Key(version: transfer.version, isUpload: transfer.isUpload)
    guard var account = accounts[key] else { return }
    change(&account, transfer)
    accounts[key] = account
  }
}
