package import KeepsakeReplication

/// What became of an operation, kept until the game takes it: one that was declined, though the game had counted it, or
/// a claim that was paid. Or an order of the bank itself.
package struct WalletNotice: Hashable, Sendable, Codable {
  /// The most notices that are kept; the oldest of a game that takes none are removed. The ledger shows the same.
  package static let maximum: Int64 = 1_000

  /// Numbers the notices of this store from 1.
  package var number: Int64
  /// For an order, the operation of a device that would move the same money.
  package var operation: WalletOperation
  package var verdict: WalletDecision.Verdict
  /// The bank's own operation; nil for one of a device.
  package var order: BankOrder? = nil

  static let names = FactNames("wallet notice", numbers: 1...WalletBook.maximumNumber)

  static func name(of number: Int64) -> String { names.name(of: number) }

  /// Returns the number of the notice of that name; nil for a name that no notice has.
  static func number(named name: String) -> Int64? { names.number(named: name) }

  /// How far the game has taken the notices.
  struct Taken: Codable {
    static let name = "wallet notices"

    var number: Int64
  }
}

extension Wallet.Decided {
  /// Whether the game has to know: it counts a purchase when it makes it, and a claim when it is paid.
  var isNoticed: Bool { !verdict.counts || operation.effect == .claim }
}
