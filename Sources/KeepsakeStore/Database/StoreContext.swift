/// What all transactions of an open store share beside the database.
///
/// Every way into the store comes by this: a transaction that forgot the seal would write unsealed rows.
struct StoreContext: Sendable {
  /// What is remembered of contents.
  let memory = ContentMemory()
  /// What is remembered of versions.
  let records = RecordMemory()
  /// What is remembered of the wallet.
  let wallet = WalletMemory()
  /// How rows and frames are sealed.
  let seal: StoreSeal
  /// Which of a slot's past stays.
  let history: HistoryRules

  init(seal: StoreSeal, history: HistoryRules = .standard) {
    self.seal = seal
    self.history = history
  }
}
