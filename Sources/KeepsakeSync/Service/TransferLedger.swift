import KeepsakeReplication

/// Computes the progress of each version from the progress of its contents.
struct TransferLedger: Sendable {
  private struct Key: Hashable {
    var version: VersionID
    var isUpload: Bool
  }
  private struct Account {
    var slot: String
    var bytesInAll: Int64
    /// Plain bytes of each content, counting the farthest that it ever came.
    var done: [ContentHash: Int64] = [:]

    var bytesDone: Int64 { min(done.values.reduce(0, +), bytesInAll) }
  }

  private var accounts: [Key: Account] = [:]
  private var underWay: [EngineTransfer] = []

  /// The versions that have transfers in flight.
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

  /// Sets the transfers in flight. A version without any keeps its account until everything is idle, because it may
  /// wait for another attempt.
  mutating func update(_ transfers: [EngineTransfer], isQuiet: Bool) {
    underWay = transfers
    if isQuiet { accounts = [:] }
    for transfer in transfers {
      let key = Key(version: transfer.version, isUpload: transfer.isUpload)
      // The account keeps the first length, since a later content knows only of what was left by then.
      if accounts[key] == nil { accounts[key] = Account(slot: transfer.slot, bytesInAll: Int64(transfer.lengthInAll)) }
    }
  }

  /// Records the progress of a content; ignores one that isn't in flight any more.
  mutating func progressed(_ request: UInt64, _ progress: TransferProgress) {
    guard let inAll = progress.bytesInAll, inAll > 0 else { return }
    change(request) { account, transfer in
      let share = min(max(Double(progress.bytesDone) / Double(inAll), 0), 1)
      let done = Int64((Double(transfer.length) * share).rounded(.down))
      account.done[transfer.content] = max(account.done[transfer.content] ?? 0, done)
    }
  }

  /// Records that all bytes of a content were transferred.
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
