import GRDB
import KeepsakeReplication

/// What became of a wallet of which something was lost.
enum WalletMending: Hashable {
  /// Operations are lost: what they came to was made up.
  case madeUp
  /// All but the operations is lost: the wallet was put together from them.
  case rebuilt
  /// The same, where a cloud knows more.
  case askingCloud

  /// A sentence for an incident.
  var message: String {
    switch self {
    case .madeUp: "operations of the wallet could not be read; its balance is as it was, and the ledger says what was made up"
    case .rebuilt:
      "the wallet could not be read and was put together from its operations; claims of what was paid before may be asked again"
    case .askingCloud:
      "the wallet could not be read; its operations are kept, and the cloud says at the next exchange what there is and what can be spent: connect to it"
    }
  }
}

extension StoreTransaction {
  /// Puts a wallet in order of which something is lost, with damage or taken out by a seal. Does nothing where nothing is.
  ///
  /// Where operations are missing, what the player had is still known, but the bank would refuse a chain with holes. Where no bank ever heard of the
  /// chain, a new one begins with the same money, of which what was lost is one operation "recovered" for each currency. Else the bank knows best:
  /// what is left is offered to it as late.
  ///
  /// - Returns: What was done; nil where there was nothing to mend.
  @discardableResult
  mutating func mendWallet() throws -> WalletMending? {
    guard let body = try walletBody() else { return try rebuildWallet() }
    let lost = try readWallet(body)
    guard !lost.isWhole else { return nil }
    var random = SystemRandomNumberGenerator()
    let operations = lost.state.operations
    var state = WalletState(chain: ChainID(using: &random))
    (state.balances, state.wanted, state.settledClaims) = (lost.state.balances, lost.state.wanted, lost.state.settledClaims)
    if lost.state.acknowledged.count == 0, lost.state.follows == nil {
      var wallet = Wallet(state)
      var left = Wallet.maximumMadeUp
      let totals = lost.state.totals.sorted { $0.key < $1.key }
      for (currency, totals) in totals {
        wallet.makeUp(.earn, Int128(totals.earned) - (operations.sums[currency]?.earned ?? 0), currency, atMost: &left, using: &random)
      }
      // What was earned first: no spend may come before its money.
      for operation in operations where operation.effect != .debit { wallet.take(operation) }
      for operation in operations where operation.effect == .debit { wallet.take(operation) }
      for (currency, totals) in totals {
        wallet.makeUp(.spend, Int128(totals.spent) - (operations.sums[currency]?.spent ?? 0), currency, atMost: &left, using: &random)
      }
      state = wallet.state
    } else {
      state.follows = lost.state.chain
      state.late = lost.state.late
      for operation in operations where operation.effect != .giveBack { state.late.append(operation) }
    }
    try begin(state, knowing: Dictionary(zip((Array(operations) + lost.state.late).map(\.id), lost.numbers)) { first, _ in first })
    return .madeUp
  }

  /// Makes a wallet out of its operations where its book is lost; nil where there are none.
  ///
  /// Of a store that no cloud ever heard of all operations are here, and doing them again gives all that there was. Else the bank has
  /// most of them: it is offered all, takes each id once, and closes the chain that was lost.
  private mutating func rebuildWallet() throws -> WalletMending? {
    var numbers: [OperationID: Int64] = [:]
    var operations: [WalletOperation] = []
    var chain: ChainID?
    for name in try String.fetchAll(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name"),
      arguments: [WalletPage.names.first, WalletPage.names.last])
    where operations.count < WalletBook.maximumWaiting {
      guard let page = try soundPage(name) else { continue }
      chain = page.chain ?? chain
      for (offset, operation) in page.operations.enumerated() where numbers[operation.id] == nil {
        numbers[operation.id] = page.first + Int64(offset)
        operations.append(operation)
      }
    }
    guard !operations.isEmpty else { return nil }
    var random = SystemRandomNumberGenerator()
    var state = WalletState(chain: ChainID(using: &random))
    let isConnected = try facts().container != nil
    if isConnected {
      state.follows = chain
      state.late = OperationList(operations.filter { $0.kind != .giveBack })
    } else {
      var wallet = Wallet(state)
      // What can't be paid yet may be behind a page that is lost.
      let unpaid = operations.filter { !wallet.take($0) }
      for operation in unpaid { wallet.take(operation) }
      state = wallet.state
    }
    try begin(state, knowing: numbers)
    return isConnected ? .askingCloud : .rebuilt
  }

  /// Goes on with a new chain, whose new operations begin a page that no row has.
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

  /// Takes up a wallet that comes from an older source than its pages: what was done since is done again, in its order. The next operation
  /// begins a page, so that none is ever written in the place of another's.
  ///
  /// - Parameter pages: Those that were found, proven, as long as they were found anywhere.
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
    book.next = WalletPage.first(of: next + WalletPage.capacity - 1)
    try write(book, wallet.state)
  }
}

extension Wallet {
  /// Operations that are made up at once, for all currencies: far more than any game's money takes, as each can be of the greatest amount.
  fileprivate static let maximumMadeUp = 1_000

  fileprivate mutating func makeUp(
    _ kind: WalletOperation.Kind, _ total: Int128, _ currency: String, atMost left: inout Int,
    using random: inout some RandomNumberGenerator
  ) {
    var lacking = Int64(clamping: total)
    while left > 0, lacking > 0 {
      let amount = min(lacking, Self.maximumAmount)
      take(WalletOperation(id: OperationID(using: &random), kind: kind, currency: currency, amount: amount, reason: "recovered"))
      lacking -= amount
      left -= 1
    }
  }

  /// Of an operation that doesn't add up with the others, as only somebody's hands can have written it, nothing is taken: the rest of the
  /// player's money must not be lost for it. Says whether it was taken, now or before.
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
