import KeepsakeReplication

/// What all transactions of an open store share besides the database.
///
/// Every access to the store goes through a context: a transaction without the seal would write unsealed rows.
struct StoreContext: Sendable {
  /// Cached facts about contents.
  let memory = ContentMemory()
  /// Cached records of versions.
  let records = RecordMemory()
  /// The cached wallet.
  let wallet = WalletMemory()
  /// What commits know of whole tables.
  let commits = CommitMemory()
  /// How rows and frames are sealed.
  let seal: StoreSeal
  /// Which versions of a slot's past are kept.
  let history: HistoryRules

  init(seal: StoreSeal, history: HistoryRules = .standard) {
    self.seal = seal
    self.history = history
  }
}
