import Crypto

/// One operation of a wallet chain.
package struct WalletOperation: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case earn
    case spend
    case giveBack
    /// Paid under a key that counts once per player.
    case claim(key: String)
    /// Exchanges the amount for another currency.
    case convert(to: String, received: Int64)

    /// The description of the kind.
    var rule: Rule {
      switch self {
      case .earn: Rule(word: "earn", tag: 0, effect: .credit)
      case .spend: Rule(word: "spend", tag: 1, effect: .debit)
      case .giveBack: Rule(word: "giveBack", tag: 2, effect: .giveBack)
      case .claim: Rule(word: "claim", tag: 3, effect: .claim)
      case .convert(let currency, let received):
        Rule(word: "convert", tag: 4, effect: .convert(to: currency, received: received))
      }
    }

    /// Returns the kind of that word; nil for an unknown word. Asks only for what the kind has.
    init?(word: String, key: () throws -> String, to: () throws -> String, received: () throws -> Int64) rethrows {
      switch word {
      case "earn": self = .earn
      case "spend": self = .spend
      case "giveBack": self = .giveBack
      case "claim": self = .claim(key: try key())
      case "convert": self = .convert(to: try to(), received: try received())
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
  package enum Effect: Hashable, Sendable {
    /// Adds to the money, and to what the chain may spend.
    case credit
    /// Subtracts from both; the chain must have rights for the amount.
    case debit
    /// Returns rights to the bank; the money stays the same.
    case giveBack
    /// Asks the bank to pay, once per player and key; pending until the bank has decided.
    case claim
    /// A debit, and a credit in another currency.
    case convert(to: String, received: Int64)
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
  /// The first operation of the checkpoint that made this one together with others; nil for one that was made alone.
  /// The operations of a group follow each other, and count together or not at all.
  package var group: OperationID?

  package init(
    id: OperationID, kind: Kind, currency: String, amount: Int64, reason: String, goods: [String] = [],
    madeAtMilliseconds: Int64 = 0, group: OperationID? = nil
  ) {
    self.id = id
    self.kind = kind
    self.currency = currency
    self.amount = amount
    self.reason = reason
    self.goods = goods
    self.madeAtMilliseconds = madeAtMilliseconds
    self.group = group
  }

  /// What the operation adds to the player's money and takes from it, by currency. Claims add when they are paid.
  package var movements: [Movement] {
    switch effect {
    case .credit: [Movement(currency: currency, earned: amount)]
    case .debit: [Movement(currency: currency, spent: amount)]
    case .convert(let other, let received):
      [Movement(currency: currency, spent: amount), Movement(currency: other, earned: received)]
    case .giveBack, .claim: []
    }
  }

  package struct Movement: Hashable, Sendable {
    package var currency: String
    package var earned: Int64 = 0
    package var spent: Int64 = 0
  }

  /// What identifies the operation besides its id: the same id with another fingerprint is another operation. Reason
  /// and time don't count, since a game that repeats an operation may word it differently.
  ///
  /// The first 47 bits of a hash; the rest is zero, so that a bank can pack it with a verdict into six bytes.
  package var fingerprint: UInt64 {
    var hasher = SHA256()
    hasher.update(kind.rule.tag)
    hashKind(into: &hasher)
    hasher.update(currency)
    hasher.update(UInt64(bitPattern: amount))
    for good in goods { hasher.update(good) }
    let bits = hasher.finalize().withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
    return bits & Self.fingerprintMask
  }

  /// The bits of a fingerprint that aren't always zero.
  package static let fingerprintMask: UInt64 = ~0 << 17

  /// Adds what the kind has beside its tag.
  func hashKind(into hasher: inout SHA256) {
    switch kind {
    case .earn, .spend, .giveBack: break
    case .claim(let key): hasher.update(key)
    case .convert(let currency, let received):
      hasher.update(currency)
      hasher.update(UInt64(bitPattern: received))
    }
  }
}

extension Collection where Element == WalletOperation {
  /// The operations in units that count together or not at all: each group, and each operation that has none.
  package var units: [[WalletOperation]] {
    var units: [[WalletOperation]] = []
    for operation in self {
      if let group = operation.group, units.last?.last?.group == group {
        units[units.count - 1].append(operation)
      } else {
        units.append([operation])
      }
    }
    return units
  }

  /// Returns whole units from the front, at most this many operations unless the first unit alone has more. Looks at no
  /// more than that.
  package func wholeUnits(upTo limit: Int) -> [WalletOperation] {
    var result: [WalletOperation] = []
    var begin = 0
    for operation in self {
      if operation.group == nil || operation.group != result.last?.group {
        if result.count >= limit { return result }
        begin = result.count
      } else if result.count >= limit, begin > 0 {
        return Array(result[..<begin])
      }
      result.append(operation)
    }
    return result
  }
}
