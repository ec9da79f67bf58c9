/// One operation of a wallet chain.
package struct WalletOperation: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case earn
    case spend
    case giveBack
    /// Under a key that counts once per player.
    case claim(key: String)

    /// What is known of the kind.
    var rule: Rule {
      switch self {
      case .earn: Rule(word: "earn", tag: 0, effect: .credit)
      case .spend: Rule(word: "spend", tag: 1, effect: .debit)
      case .giveBack: Rule(word: "giveBack", tag: 2, effect: .giveBack)
      case .claim: Rule(word: "claim", tag: 3, effect: .claim)
      }
    }

    /// The kind of that word; nil for a word that no kind has. The key is asked for only where the kind has one.
    init?(word: String, key: () throws -> String) rethrows {
      switch word {
      case "earn": self = .earn
      case "spend": self = .spend
      case "giveBack": self = .giveBack
      case "claim": self = .claim(key: try key())
      default: return nil
      }
    }

    /// Of a claim.
    package var key: String? {
      if case .claim(let key) = self { return key }
      return nil
    }
  }

  /// A kind of operation, described once: chains, banks, ledgers and messages decide by this and by no kind's name.
  struct Rule: Sendable {
    /// On the wire and in stores. Never changes.
    let word: String
    /// In a chain's hash. Never changes.
    let tag: UInt64
    let effect: Effect
  }

  /// What an operation does to the player's money and to a chain's rights.
  package enum Effect: Sendable {
    /// Adds to the money, and to what the chain may spend.
    case credit
    /// Takes from both; the chain must hold rights for the amount.
    case debit
    /// Gives rights back to the bank; the money stays the same.
    case giveBack
    /// Asks the bank to pay, once per player under a key: pending until it has decided.
    case claim
  }

  package var effect: Effect { kind.rule.effect }
  package var id: OperationID
  package var kind: Kind
  package var currency: String
  /// Positive.
  package var amount: Int64
  package var reason: String
  package var goods: [String]
  /// By the device's clock, milliseconds since 1970: for people who read the ledger. Nothing is decided by it.
  package var madeAtMilliseconds: Int64

  package init(
    id: OperationID, kind: Kind, currency: String, amount: Int64, reason: String, goods: [String] = [],
    madeAtMilliseconds: Int64 = 0
  ) {
    self.id = id
    self.kind = kind
    self.currency = currency
    self.amount = amount
    self.reason = reason
    self.goods = goods
    self.madeAtMilliseconds = madeAtMilliseconds
  }
}
