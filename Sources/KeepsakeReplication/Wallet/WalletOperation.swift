/// One operation of a wallet chain.
package struct WalletOperation: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case earn
    case spend
    case giveBack
    /// Paid under a key that counts once per player.
    case claim(key: String)

    /// The description of the kind.
    var rule: Rule {
      switch self {
      case .earn: Rule(word: "earn", tag: 0, effect: .credit)
      case .spend: Rule(word: "spend", tag: 1, effect: .debit)
      case .giveBack: Rule(word: "giveBack", tag: 2, effect: .giveBack)
      case .claim: Rule(word: "claim", tag: 3, effect: .claim)
      }
    }

    /// Returns the kind of that word; nil for an unknown word. Calls `key` only if the kind has one.
    init?(word: String, key: () throws -> String) rethrows {
      switch word {
      case "earn": self = .earn
      case "spend": self = .spend
      case "giveBack": self = .giveBack
      case "claim": self = .claim(key: try key())
      default: return nil
      }
    }

    /// The key of a claim.
    package var key: String? {
      if case .claim(let key) = self { return key }
      return nil
    }
  }

  /// A kind of operation, described once: chains, banks, ledgers and messages decide by this, and never by the kind's
  /// name.
  struct Rule: Sendable {
    /// Used on the wire and in stores. Never changes.
    let word: String
    /// Used in a chain's hash. Never changes.
    let tag: UInt64
    let effect: Effect
  }

  /// What an operation does to the player's money and to a chain's rights.
  package enum Effect: Sendable {
    /// Adds to the money, and to what the chain may spend.
    case credit
    /// Subtracts from both; the chain must have rights for the amount.
    case debit
    /// Returns rights to the bank; the money stays the same.
    case giveBack
    /// Asks the bank to pay, once per player and key; pending until the bank has decided.
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
  /// By the device's clock, in milliseconds since 1970, for people who read the ledger. Nothing depends on it.
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
