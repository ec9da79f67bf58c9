import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A player without a cloud earns for years: unreported operations must not make each further one more expensive.
@Suite struct OperationListTests {
  private static func operation(_ number: Int, _ kind: WalletOperation.Kind = .earn) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 3, low: UInt64(number)), kind: kind, currency: ["gems", "keys", "wood"][number % 3],
      amount: Int64(number % 7 + 1),
      reason: "level \(number)")
  }

  /// The numbers of operations that are visited after `count` others: by one operation of each kind, a repeated one, a
  /// refused one, and reading the balances.
  private static func visits(after count: Int) throws -> [Int] {
    var wallet = Wallet(WalletState(chain: ChainID(high: 1, low: 1)))
    for number in 0..<count { try wallet.perform(operation(number)) }
    try wallet.perform(operation(count, .claim(key: "daily")))
    // As the store holds it during a commit.
    let held = wallet
    func cost(_ body: () throws -> Void) rethrows -> Int {
      let before = wallet.state.operations.visits
      try body()
      return wallet.state.operations.visits - before
    }
    let costs = [
      try cost { try wallet.perform(operation(count + 1)) },
      try cost { try wallet.perform(operation(count + 2, .spend)) },
      try cost { try wallet.perform(operation(count + 3, .claim(key: "weekly"))) },
      try cost { if try wallet.perform(operation(0)) { Issue.record("done twice") } },
      try cost { if try wallet.perform(operation(count + 4, .claim(key: "daily"))) { Issue.record("claimed twice") } },
      cost {
        var large = operation(count + 5, .spend)
        large.amount = Wallet.maximumAmount
        #expect(throws: WalletError.self) { try wallet.perform(large) }
      },
      cost {
        for currency in wallet.currencies { #expect(wallet.total(currency) >= 0 && wallet.pending(currency) >= 0) }
      },
    ]
    #expect(held.state.operations.count == count + 1 && wallet.state.operations.count == count + 4)
    return costs
  }

  @Test("an operation or a balance visits the same few operations after ten thousand as after five hundred")
  func costsTheSame() throws {
    let few = try Self.visits(after: 500)
    #expect(few == (try Self.visits(after: 10_000)))
    #expect(few.allSatisfy { $0 <= 4 } && few.last == 0, "\(few)")
  }

  @Test("the bank's response visits the operations that it settles, but not those behind them")
  func settles() throws {
    func cost(_ count: Int) throws -> Int {
      var random = SeededGenerator(seed: 5)
      var wallet = Wallet(WalletState(chain: ChainID(high: 1, low: 1)))
      for number in 0..<count { try wallet.perform(Self.operation(number)) }
      let offer = wallet.offer()
      #expect(offer.operations.count == Wallet.maximumBatch)
      var head = offer.base
      for operation in offer.operations { head = head.appending(operation) }
      var totals: [String: WalletTotals] = [:]
      for operation in offer.operations {
        totals[operation.currency, default: WalletTotals()].earned += operation.amount
      }
      let before = (
        wallet.state.operations.visits, wallet.currencies.map { wallet.total($0) },
        wallet.currencies.map { wallet.spendable($0) }
      )
      _ = wallet.receive(
        WalletReply(
          chain: wallet.state.chain, state: .accepted(head), totals: totals, balances: totals.mapValues(\.earned)),
        using: &random)
      #expect(wallet.state.operations.count == count - offer.operations.count)
      #expect(
        wallet.currencies.map { wallet.total($0) } == before.1
          && wallet.currencies.map { wallet.spendable($0) } == before.2)
      return wallet.state.operations.visits - before.0
    }
    #expect(try cost(5_000) == cost(20_000))
  }

  @Test("a list and its copies behave as arrays would, whatever is done to them", arguments: 1...10)
  func isAnArray(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var lists = [(OperationList(), [WalletOperation]())]
    var next = 0
    for step in 0..<150 {
      let index = Int.random(in: 0..<lists.count, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        for _ in 0..<Int.random(in: 1...5, using: &random) {
          let kind: WalletOperation.Kind =
            [.earn, .spend, .giveBack, .claim(key: "claim \(next)")][Int.random(in: 0..<4, using: &random)]
          lists[index].0.append(Self.operation(next, kind))
          lists[index].1.append(Self.operation(next, kind))
          next += 1
        }
      case 5, 6:
        let count = Int.random(in: 0...lists[index].1.count, using: &random)
        let (dropped, before) = (count / 3, lists[index].0)
        lists[index].0.removeFirst(dropped)
        lists[index].1.removeFirst(dropped)
        if let shift = lists[index].0.shift(since: before) {
          #expect(shift.dropped == dropped && shift.appended.isEmpty, "seed \(seed), step \(step)")
        }
      case 7:
        let remainder = UInt64.random(in: 0..<11, using: &random)
        lists[index].0.removeAll { $0.id.low % 11 == remainder }
        lists[index].1.removeAll { $0.id.low % 11 == remainder }
      default:
        // From here on the copy changes independently.
        if lists.count < 4 { lists.append(lists[index]) }
      }
      for (list, array) in lists {
        let isEqual = list.elementsEqual(array) && list == OperationList(array) && list.count == array.count
        try #require(isEqual, "seed \(seed), step \(step)")
      }
      let (list, array) = lists[index]
      for number in (0..<8).map({ _ in Int.random(in: 0...next, using: &random) }) {
        let known = array.first { $0.id.low == UInt64(number) }
        try #require(list.operation(OperationID(high: 3, low: UInt64(number))) == known, "seed \(seed), step \(step)")
        let isClaimed = array.contains { $0.kind == .claim(key: "claim \(number)") }
        try #require(list.containsClaim("claim \(number)") == isClaimed, "seed \(seed), step \(step)")
      }
      for currency in ["gems", "keys", "wood"] {
        let those = array.filter { $0.currency == currency }
        let sums = list.sums[currency]
        try #require((sums == nil) == those.isEmpty, "seed \(seed), step \(step)")
        func sum(_ kind: (WalletOperation.Kind) -> Bool) -> Int128 {
          those.filter { kind($0.kind) }.reduce(0) { $0 + Int128($1.amount) }
        }
        let isRight =
          (sums?.earned ?? 0) == sum { $0 == .earn } && (sums?.spent ?? 0) == sum { $0 == .spend }
          && (sums?.returned ?? 0) == sum { $0 == .giveBack }
          && (sums?.claimed ?? 0) == sum { if case .claim = $0 { true } else { false } }
        try #require(isRight, "seed \(seed), step \(step)")
      }
    }
  }

  @Test(
    "a response from the bank with impossible amounts changes nothing in the wallet",
    arguments: [Int64.min, -1, Wallet.maximumTotal + 1, .max])
  func impossibleAnswer(amount: Int64) throws {
    var random = SeededGenerator(seed: 6)
    var wallet = Wallet(WalletState(chain: ChainID(high: 1, low: 1)))
    try wallet.perform(Self.operation(0))
    let before = wallet
    var totals = WalletTotals()
    totals.granted = amount
    for reply in [
      WalletReply(chain: wallet.state.chain, state: .accepted(wallet.state.head), totals: ["gems": totals]),
      WalletReply(chain: wallet.state.chain, state: .accepted(wallet.state.head), balances: ["gems": amount]),
    ] {
      #expect(wallet.receive(reply, using: &random) == Wallet.Change())
      #expect(wallet == before)
    }
    // The greatest possible amounts are accepted.
    totals.granted = Wallet.maximumTotal
    _ = wallet.receive(
      WalletReply(chain: wallet.state.chain, state: .accepted(wallet.state.head), totals: ["gems": totals]),
      using: &random)
    #expect(wallet.spendable("gems") == Wallet.maximumTotal && !wallet.hasUnreportedOperations)
  }
}
