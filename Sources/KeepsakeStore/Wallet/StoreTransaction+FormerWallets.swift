package import KeepsakeReplication

// Wallets of players that the store belonged to before. They are in one row, with all that they contain: it changes
// only while a bank settles one. The ledger keeps their operations as it keeps all others.
extension StoreTransaction {
  private static let formerName = "former wallets"

  package func formerWallets() throws -> [FormerWallet] {
    let wallets: [FormerWallet] = try fact(Self.formerName) ?? []
    for wallet in wallets {
      guard let objection = wallet.state.objection else { continue }
      throw StoreError(.damaged, "the data of a former wallet is invalid: \(objection)")
    }
    return wallets
  }

  package mutating func setFormerWallets(_ wallets: [FormerWallet]) throws { try setFact(Self.formerName, wallets) }

  /// Where the operations begin that the wallet's bank may know: those before were made for a former one.
  private struct Beginning: Codable {
    static let name = "wallet beginning"

    var number: Int64
  }

  /// The number of the first operation that the wallet's bank may be offered. Those before it belong to former wallets,
  /// even if nothing else is left of the wallet.
  func walletBeginning() throws -> Int64 {
    let beginning: Beginning? = try fact(Beginning.name)
    return max(0, beginning?.number ?? 0)
  }

  /// Records that the wallet begins anew with the operation of this number, because the one before was put aside.
  mutating func setWalletBeginning(_ number: Int64) throws {
    try setFact(Beginning.name, Beginning(number: number))
  }
}
