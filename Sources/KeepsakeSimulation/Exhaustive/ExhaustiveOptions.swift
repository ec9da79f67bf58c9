import Foundation
package import KeepsakeReplication

/// What may happen in the states that the checker visits, and when it stops.
package struct ExhaustiveOptions: Sendable {
  /// What games do with their wallets.
  package var deeds: [WalletDeed] = [.earn, .spendSmall, .spendLarge, .claim, .convert, .bundle]
  /// The most checkpoints that each device makes.
  package var operations = 2
  /// The most replies that are lost and requests that are held up, together.
  package var losses = 1
  /// The most stores that are set back to a backup, or copied to the other device, together.
  package var copies = 1
  /// The most devices that are removed.
  package var removals = 1
  /// The most purchases for which money is requested.
  package var needs = 1
  /// How often so much time passes that needs expire and idle devices count no longer.
  package var pauses = 0
  /// The most restores of the bank from a backup.
  package var restores = 0
  /// Whether a restored bank may not know that it is one.
  package var hasRawBackups = false
  /// How often a device joins the player of the other bank, or the first device adopts the second one's wallets,
  /// together. Then no bank is restored.
  package var moves = 0
  /// Whether a reply may arrive after that to a later request. Engines drop such replies before the wallet sees them.
  package var hasLateReplies = false
  /// The most operations of a chain in one exchange. A start may have a smaller one.
  package var batch = Wallet.maximumBatch
  /// Everything is delivered from every state whose number is a multiple of this.
  package var restEvery = 1
  /// Bugs planted by a test.
  package var faults = Faults()

  /// The most steps from the start.
  package var maximumDepth = Int.max
  /// States after which the search ends. A few thousand more may be visited.
  package var maximumStates = 1_000_000

  package init() {}

  /// The rules of a bank. Statements are sealed only if somebody may have to show one, or leaves: it takes time.
  func rules(of place: Int) -> BankRules {
    guard restores > 0 || moves > 0 else { return BankRules() }
    return BankRules(seal: BankSeal(bank: CheckedBank.id(of: place), keys: [Data(repeating: 7, count: 32)]))
  }

  /// The most states that a run can number, less those that are visited beyond a maximum.
  static let mostStates = Int(UInt32.max) - 10_000_000
  /// Exchanges of each device after which there has to be rest.
  static let roundsToRest = 40
}
