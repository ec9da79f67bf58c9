import GRDB
import KeepsakeReplication

/// What was done about a wallet of which something was lost.
enum WalletMending: Hashable {
  /// Operations are lost that no bank was ever offered; their total was made up.
  case madeUp
  /// Operations are lost that a bank may have. It decides what they were, and is offered the others.
  case offeredAgain
  /// Everything but the operations is lost; the wallet was rebuilt from them.
  case rebuilt
  /// The same, with a cloud that knows more.
  case askingCloud

  /// A sentence for an incident.
  var message: String {
    switch self {
    case .madeUp:
      "operations of the wallet could not be read; its balance is unchanged, and the ledger shows what was made up"
    case .offeredAgain:
      """
      operations of the wallet could not be read; those that are left are kept, and the next exchange with the cloud \
      restores the balance and what can be spent: connect to it
      """
    case .rebuilt: "the wallet could not be read and was rebuilt from its operations"
    case .askingCloud:
      """
      the wallet could not be read; its operations are kept, and the next exchange with the cloud restores the \
      balance and what can be spent: connect to it
      """
    }
  }
}

extension StoreTransaction {
  /// Repairs a wallet of which something is lost, through damage or because a seal's audit removed it, and completes
  /// one of an earlier format. Does nothing otherwise.
  ///
  /// If operations are missing, what the player had is still known, but the bank would refuse a chain with gaps. If the
  /// chain was never offered to a bank, a new chain begins with the same money; what was lost becomes operations with
  /// the reason "recovered" for each currency. Otherwise the bank knows best, even if no reply of it ever arrived: what
  /// is left is offered to it as late operations, and nothing is made up, which it would count once more.
  ///
  /// - Returns: What was done; nil if there was nothing to repair.
  @discardableResult
  mutating func mendWallet() throws -> WalletMending? {
    guard let body = try walletBody() else {
      let mending = try rebuildWallet()
      if mending != nil { try fillPerformed() }
      return mending
    }
    let found = try readWallet(body)
    let isBound = try found.state.isBound || wasOfferedBefore(found.book)
    guard !found.isWhole else {
      guard !found.book.isTabled else { return nil }
      var (book, state) = (found.book, found.state)
      (book.isTabled, book.state.isBound, state.isBound) = (true, isBound, isBound)
      try fillPerformed(claims: found.book.settledClaims)
      try write(book, state)
      return nil
    }
    let numbers = Dictionary(zip(found.state.undecided.joined().map(\.id), found.numbers)) { first, _ in first }
    try begin(isBound ? Self.offeredAgain(found.state) : Self.madeUp(found.state), knowing: numbers)
    try fillPerformed(claims: found.book.settledClaims)
    return isBound ? .offeredAgain : .madeUp
  }

  /// Returns whether a bank may know the chain of a book that doesn't say so, because its format couldn't.
  private func wasOfferedBefore(_ book: WalletBook) throws -> Bool {
    try book.state.follows != nil || !book.isTabled && facts().container != nil
  }

  /// Returns a wallet that offers what is left to the bank that knows the chain.
  private static func offeredAgain(_ lost: WalletState) -> WalletState {
    var random = SystemRandomNumberGenerator()
    var state = WalletState(chain: ChainID(using: &random), follows: lost.chain)
    (state.balances, state.isBound, state.bank) = (lost.balances, true, lost.bank)
    state.vouchers = lost.vouchers
    (state.late, state.waiting) = (lost.late, lost.waiting)
    for operation in lost.operations where operation.effect != .giveBack { state.late.append(operation) }
    return state
  }

  /// Returns a wallet with the same money, for which operations are made up.
  private static func madeUp(_ lost: WalletState) -> WalletState {
    var random = SystemRandomNumberGenerator()
    let operations = lost.operations
    var state = WalletState(chain: ChainID(using: &random))
    (state.balances, state.vouchers) = (lost.balances, lost.vouchers)
    var wallet = Wallet(state)
    var left = Wallet.maximumMadeUp
    let totals = lost.totals.sorted { $0.key < $1.key }
    for (currency, totals) in totals {
      wallet.makeUp(
        .earn, Int128(totals.earned) - (operations.sums[currency]?.earned ?? 0), currency, atMost: &left,
        using: &random)
    }
    // Income first: money can't be spent before it is earned.
    for operation in operations where operation.effect != .debit { wallet.take(operation) }
    for operation in operations where operation.effect == .debit { wallet.take(operation) }
    for (currency, totals) in totals {
      wallet.makeUp(
        .spend, Int128(totals.spent) - (operations.sums[currency]?.spent ?? 0), currency, atMost: &left,
        using: &random)
    }
    return wallet.state
  }

  /// Rebuilds a wallet whose book is lost from its operations; nil if there are none.
  ///
  /// In a store that was never connected to a cloud, all operations are here, and performing them again restores
  /// everything. Otherwise the bank has most of them: it is offered all, accepts each id once, and closes the chain
  /// that was lost.
  private mutating func rebuildWallet() throws -> WalletMending? {
    var numbers: [OperationID: Int64] = [:]
    var operations: [WalletOperation] = []
    var chain: ChainID?
    let beginning = try walletBeginning()
    for name in try String.fetchAll(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name"),
      arguments: [WalletPage.names.first, WalletPage.names.last])
    where operations.count < WalletBook.maximumWaiting {
      guard let page = try soundPage(name) else { continue }
      // What was made for a bank before isn't offered to this one.
      guard page.end > beginning else { continue }
      chain = page.chain ?? chain
      for (offset, operation) in page.operations.enumerated()
      where page.first + Int64(offset) >= beginning && numbers[operation.id] == nil {
        numbers[operation.id] = page.first + Int64(offset)
        operations.append(operation)
      }
    }
    guard !operations.isEmpty else { return nil }
    var random = SystemRandomNumberGenerator()
    var state = WalletState(chain: ChainID(using: &random))
    let isConnected = try facts().container != nil
    if isConnected {
      (state.follows, state.isBound) = (chain, true)
      state.late = OperationList(operations.filter { $0.effect != .giveBack })
    } else {
      var wallet = Wallet(state)
      // An operation that can't be paid yet may come after a lost page, so it is tried again at the end.
      let unpaid = operations.filter { !wallet.take($0) }
      for operation in unpaid { wallet.take(operation) }
      state = wallet.state
    }
    try begin(state, knowing: numbers)
    return isConnected ? .askingCloud : .rebuilt
  }

  /// Continues with a new chain, whose new operations begin a page that no row has.
  private mutating func begin(_ state: WalletState, knowing numbers: [OperationID: Int64]) throws {
    var book = WalletBook(state)
    let names = try String.fetchCursor(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name DESC"),
      arguments: [WalletPage.names.first, WalletPage.names.last])
    while let name = try names.next() {
      guard let first = WalletPage.first(named: name) else { continue }
      book.next = first + WalletPage.capacity
      break
    }
    try renumber(state, knowing: numbers, in: &book)
    try write(book, state)
  }

  /// Continues a wallet that comes from an older source than its pages: later operations are performed again, in their
  /// order. The next operation begins a page, so that none is ever written in the place of another.
  ///
  /// - Parameter pages: Verified pages from any source.
  mutating func continueWallet(with pages: some Sequence<WalletPage>) throws {
    try mendWallet()
    guard let known = try keptWallet() else { return }
    let places = Dictionary(pages.filter(\.isSound).map { ($0.first, $0) }) { first, _ in first }
    var wallet = Wallet(known.state)
    var numbers = WalletBook.numbers(of: known.book.operations)
    var next = known.book.next
    while let page = places[WalletPage.first(of: next)], next < page.end {
      wallet.take(page.operations[Int(next - page.first)])
      if wallet.state.operations.count > numbers.count { numbers.append(next) }
      next += 1
    }
    var book = WalletBook(wallet.state)
    (book.operations, book.late) = (WalletBook.runs(of: numbers), known.book.late)
    (book.waiting, book.acknowledged) = (known.book.waiting, known.book.acknowledged)
    book.next = WalletPage.first(of: next + WalletPage.capacity - 1)
    try write(book, wallet.state)
    try fillPerformed()
  }
}

extension Wallet {
  /// The maximum number of operations made up at a time, for all currencies together. Far more than any game's money
  /// takes, as each can have the maximum amount.
  fileprivate static let maximumMadeUp = 1_000

  fileprivate mutating func makeUp(
    _ kind: WalletOperation.Kind, _ total: Int128, _ currency: String, atMost left: inout Int,
    using random: inout some RandomNumberGenerator
  ) {
    var lacking = Int64(clamping: total)
    while left > 0, lacking > 0 {
      let amount = min(lacking, Self.maximumAmount)
      take(
        WalletOperation(
          id: OperationID(using: &random), kind: kind, currency: currency, amount: amount, reason: "recovered"))
      lacking -= amount
      left -= 1
    }
  }

  /// Performs an operation. One that is inconsistent with the others, which only tampering can cause, is skipped
  /// entirely, so that the rest of the player's money isn't lost because of it. Returns whether it was performed, now
  /// or before.
  @discardableResult
  fileprivate mutating func take(_ operation: WalletOperation) -> Bool {
    do throws(WalletError) {
      try perform(operation)
      return true
    } catch {
      return false
    }
  }
}
