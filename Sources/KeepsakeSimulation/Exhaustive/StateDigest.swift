import KeepsakeReplication

/// 128 bits that represent a state, or a part of one: two sums of 64 bits over the same words that are mixed
/// differently.
///
/// That two of n different states have the same digest has a probability of about n²/2^129: 10^-26 for a million
/// states. Nobody chooses the states, so this needs no cryptographic hash.
struct StateDigest: Hashable, Sendable {
  private(set) var first: UInt64 = 0x243F_6A88_85A3_08D3
  private(set) var second: UInt64 = 0x1319_8A2E_0370_7344

  init() {}

  /// - Parameter tag: Keeps digests of different things apart.
  init(tag: UInt64) { add(tag) }

  mutating func add(_ word: UInt64) {
    first = Self.mixed(first &+ word &+ 0x9E37_79B9_7F4A_7C15)
    let product = (second ^ word &* 0xD6E8_FEB8_6659_FD93).multipliedFullWidth(by: 0xA076_1D64_78BD_642F)
    second = (product.high ^ product.low).rotated(by: 23) &+ word
  }

  mutating func add(_ number: Int64) { add(UInt64(bitPattern: number)) }
  mutating func add(_ number: Int) { add(UInt64(bitPattern: Int64(number))) }
  mutating func add(_ flag: Bool) { add(flag ? 1 : 2) }

  mutating func add<Kind>(_ id: Identifier<Kind>?) {
    guard let id else { return add(0 as UInt64) }
    add(id.high)
    add(id.low)
  }

  mutating func add(_ digest: StateDigest) {
    add(digest.first)
    add(digest.second)
  }

  mutating func add(_ text: String) {
    var (word, count) = (0 as UInt64, 0)
    for byte in text.utf8 {
      (word, count) = (word << 8 | UInt64(byte), count + 1)
      if count % 8 == 0 {
        add(word)
        word = 0
      }
    }
    add(word)
    add(count)
  }

  /// Adds the elements of a collection in an order that doesn't matter.
  mutating func addUnordered<Elements: Collection>(
    _ elements: Elements, _ body: (inout StateDigest, Elements.Element) -> Void
  ) {
    var (sums, count) = ((0 as UInt64, 0 as UInt64), 0)
    for element in elements {
      var digest = StateDigest()
      body(&digest, element)
      (sums, count) = ((sums.0 &+ digest.first, sums.1 &+ digest.second), count + 1)
    }
    add(count)
    add(sums.0)
    add(sums.1)
  }

  func hash(into hasher: inout Hasher) { hasher.combine(first) }

  /// The finalizer of SplitMix64.
  private static func mixed(_ number: UInt64) -> UInt64 {
    var bits = number
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
  }
}

extension UInt64 {
  fileprivate func rotated(by count: UInt64) -> UInt64 { self << count | self >> (64 - count) }
}

// What wallets and banks consist of.
extension StateDigest {
  mutating func add(_ head: ChainHead) {
    add(head.count)
    add(head.hash.firstWord)
  }

  mutating func add(_ amounts: [String: Int64]) {
    addUnordered(amounts) {
      $0.add($1.key)
      $0.add($1.value)
    }
  }

  mutating func add(_ totals: [String: WalletTotals]) {
    addUnordered(totals) {
      $0.add($1.key)
      $0.add($1.value.granted)
      $0.add($1.value.earned)
      $0.add($1.value.spent)
      $0.add($1.value.returned)
    }
  }

  /// Adds what differs between operations of the checker.
  mutating func add(_ operation: WalletOperation) {
    add(operation.id)
    switch operation.effect {
    case .credit: add(1 as UInt64)
    case .debit: add(2 as UInt64)
    case .giveBack: add(3 as UInt64)
    case .claim: add(4 as UInt64)
    case .convert(let other, let received):
      add(5 as UInt64)
      add(other)
      add(received)
    }
    add(operation.currency)
    add(operation.amount)
    add(operation.group)
  }

  mutating func add(_ operations: some Collection<WalletOperation>) {
    add(operations.count)
    for operation in operations { add(operation) }
  }

  mutating func add(_ wallet: WalletState) {
    add(wallet.chain)
    add(wallet.follows)
    add(wallet.head)
    add(wallet.acknowledged)
    add(wallet.previous?.count ?? .max)
    for list in wallet.undecided { add(list) }
    add(wallet.totals)
    add(wallet.balances)
    add(wallet.statement)
    add(wallet.needs)
    addUnordered(wallet.held) {
      $0.add($1.key)
      for holding in $1.value {
        $0.add(holding.device)
        $0.add(holding.amount)
        $0.add(holding.seenMilliseconds)
      }
    }
    add(wallet.isBound)
    add(wallet.bank)
    add(wallet.orders)
    add(wallet.vouchers)
    add(wallet.epoch)
    add(wallet.proving ?? .max)
    add(wallet.proof)
    add(wallet.settled)
    add(wallet.ancestors.count)
    for chain in wallet.ancestors { add(chain) }
    add(wallet.replayed)
    add(wallet.again)
    add(wallet.skipsLost)
    add(wallet.orders)
  }

  mutating func add(_ offer: WalletOffer) {
    add(offer.chain)
    add(offer.follows)
    add(offer.base)
    add(offer.statement)
    add(offer.operations)
    add(offer.late)
    add(offer.waiting.count)
    for id in offer.waiting { add(id) }
    add(offer.needs)
    add(offer.goods)
    add(offer.orders)
    add(offer.vouchers)
    add(offer.leaving)
    add(offer.epoch)
    add(offer.proving ?? .max)
    add(offer.proof)
    add(offer.settled)
    add(offer.ancestors.count)
    for chain in offer.ancestors { add(chain) }
    add(offer.again)
    add(offer.skipsLost)
    add(offer.orders)
  }

  mutating func add(_ vouchers: [WalletVoucher]) {
    add(vouchers.count)
    for voucher in vouchers { add(voucher) }
  }

  /// Adds a voucher: who made it determines its code.
  mutating func add(_ voucher: WalletVoucher) {
    add(voucher.bank)
    add(voucher.chain)
    add(voucher.receiver)
    add(voucher.amounts)
    add(voucher.claims.count)
    for claim in voucher.claims {
      add(claim.key)
      add(claim.currency)
      add(claim.amount)
    }
  }

  mutating func add(_ wallet: FormerWallet) {
    add(wallet.bank)
    add(wallet.receiver)
    add(wallet.state)
  }

  /// Adds what was settled last before a statement, whose head determines the operations.
  mutating func add(_ settled: SettledOperations?) {
    add(settled?.statement)
    add(settled?.operations.count ?? 0)
  }

  /// Adds a statement: who made it determines its code.
  mutating func add(_ statement: WalletStatement?) {
    guard let statement else { return add(0) }
    add(statement.epoch)
    add(statement.number)
    add(statement.head)
    add(statement.totals)
    add(statement.isOfHead ?? false)
  }

  mutating func add(_ bank: BankState) {
    add(bank.pool)
    // Only the order of needs matters, and how often something was needed before doesn't.
    let needs = bank.chains.values.compactMap { $0.need?.number }.sorted()
    addUnordered(bank.chains) { digest, entry in
      let (id, chain) = entry
      digest.add(id)
      digest.add(chain.head)
      digest.add(chain.follows)
      digest.add(chain.totals)
      digest.add(chain.statement)
      digest.add(chain.isShown)
      digest.add(chain.device)
      digest.add(chain.seenMilliseconds)
      if let restored = chain.restored {
        digest.add(restored.statement)
        digest.add(restored.count)
        if let head = restored.head { digest.add(head) }
        digest.add(restored.isProven)
      }
      guard let need = chain.need else { return }
      digest.add(need.amounts)
      digest.add(needs.firstIndex(of: need.number) ?? -1)
      digest.add(need.untilMilliseconds)
    }
    add(bank.closedChains)
    add(bank.goodsNumber)
    add(bank.epoch ?? 0)
    add(bank.isFrozen ?? false)
    addUnordered(bank.provenFormers ?? []) { $0.add($1) }
    addUnordered(bank.replaying ?? []) { $0.add($1) }
    add(bank.missing ?? [:])
    add(bank.hasLeft ?? false)
    add(bank.trusted ?? -1)
    add(bank.debts ?? [:])
    add(bank.orderNumber ?? 0)
    add(bank.waiting.count)
    for unit in bank.waiting {
      add(unit.operations)
      add(unit.chain)
    }
  }
}
