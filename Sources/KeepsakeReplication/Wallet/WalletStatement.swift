package import Foundation

/// The bank's word on a chain: where it is, and what its totals are. A store keeps the newest one, so that a bank which
/// was restored from a backup gets back what it had granted since.
package struct WalletStatement: Hashable, Sendable, Codable {
  /// How often the bank was set back when it made the statement.
  package var epoch: UInt64
  /// Counts a chain's statements.
  package var number: UInt64
  package var head: ChainHead
  package var totals: [String: WalletTotals]
  /// Whether it says only where the bank has the chain, and nothing of totals: made for a store that has to continue
  /// with another chain. A bank that was set back is shown it with that one. Nil for no.
  package var isOfHead: Bool?
  /// Proves that the bank made it (``BankSeal``); empty from a bank without a seal.
  package var code: Data

  /// The number of every statement on a closed chain: none comes after it.
  static let numberOfClosed = Cursor.maximumSeq

  package init(
    epoch: UInt64, number: UInt64, head: ChainHead, totals: [String: WalletTotals], code: Data = Data()
  ) {
    self.epoch = epoch
    self.number = number
    self.head = head
    self.totals = totals
    self.code = code
  }

  /// Creates a statement that says only where the bank has a chain.
  init(epoch: UInt64, number: UInt64, headOfChain head: ChainHead) {
    self.init(epoch: epoch, number: number, head: head, totals: [:])
    isOfHead = true
  }

  /// Whether a bank can have made it for a store that has to continue with another chain.
  var isPossibleOfHead: Bool {
    isOfHead == true && (1...Self.numberOfClosed).contains(number) && max(epoch, head.count) <= Cursor.maximumSeq
      && totals.isEmpty && code.count == BankSeal.codeBytes
  }
}

/// The last operations before a statement. It shows that the bank had settled them: it says to which head they led.
package struct SettledOperations: Hashable, Sendable, Codable {
  /// The most operations: with one alone, another copy of the store may have brought just that.
  package static let maximumCount = 16

  package var statement: WalletStatement
  /// The hash of the head before the first of these operations.
  package var previous: ContentHash
  package var operations: [WalletOperation]

  package init(statement: WalletStatement, previous: ContentHash, operations: [WalletOperation]) {
    self.statement = statement
    self.previous = previous
    self.operations = operations
  }

  /// Whether the operations lead to the statement's head.
  var areLinked: Bool {
    let (before, overflow) = statement.head.count.subtractingReportingOverflow(UInt64(operations.count))
    guard !overflow, !operations.isEmpty else { return false }
    return operations.reduce(ChainHead(count: before, hash: previous)) { $0.appending($1) } == statement.head
  }
}

/// Money that left a chain's bank for another bank of the same cloud: paid there once, however often it is shown.
package struct WalletVoucher: Hashable, Sendable, Codable {
  /// A claim that the first bank has paid. The second one never pays it again.
  package struct Claim: Hashable, Sendable, Codable {
    package var key: String
    package var currency: String
    package var amount: Int64

    package init(key: String, currency: String, amount: Int64) {
      (self.key, self.currency, self.amount) = (key, currency, amount)
    }
  }

  /// The most vouchers in one offer; the rest follows when these are paid.
  package static let maximumShown = 16
  /// The most claims of a voucher, and of all in one offer.
  package static let maximumClaims = 20_000

  /// The container whose bank issued it.
  package var bank: ContainerID
  /// The chain that was closed for it.
  package var chain: ChainID
  /// The container whose bank pays it.
  package var receiver: ContainerID
  package var amounts: [String: Int64]
  package var claims: [Claim]
  /// Proves that a bank of this cloud issued it (``BankSeal``).
  package var code: Data

  package init(
    bank: ContainerID, chain: ChainID, receiver: ContainerID, amounts: [String: Int64], claims: [Claim] = [],
    code: Data = Data()
  ) {
    self.bank = bank
    self.chain = chain
    self.receiver = receiver
    self.amounts = amounts
    self.claims = claims
    self.code = code
  }
}
