package import KeepsakeReplication

/// What became of an operation, kept until the game takes it: one that was declined, though the game had counted it, or
/// a claim that was paid.
package struct WalletNotice: Hashable, Sendable, Codable {
  /// The most notices that are kept; the oldest of a game that takes none are removed. The ledger shows the same.
  package static let maximum: Int64 = 1_000

  /// Numbers the notices of this store from 1.
  package var number: Int64
  package var operation: WalletOperation
  package var verdict: WalletDecision.Verdict

  /// The names of all notices are between these two.
  static let names = (first: "wallet notice ", last: "wallet notice :")

  /// Padded to the same number of digits, so that the names sort like the notices.
  static func name(of number: Int64) -> String {
    let digits = String(number)
    return names.first + String(repeating: "0", count: max(12 - digits.count, 0)) + digits
  }

  /// Returns the number of the notice of that name; nil for a name that no notice has.
  static func number(named name: String) -> Int64? {
    guard let number = Int64(name.dropFirst(names.first.count)), (1...WalletBook.maximumNumber).contains(number) else {
      return nil
    }
    return self.name(of: number) == name ? number : nil
  }

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
