import Foundation
import GRDB
package import KeepsakeReplication

extension StoreTransaction {
  /// Operations that the bank has stay for the ledger's sake, at least this many of the newest.
  package static let maximumSettledOperations: Int64 = 10_000

  package func wallet() throws -> WalletState? { try keptWallet()?.state }

  /// Costs what is new in it: operations that are kept already aren't written again.
  package mutating func setWallet(_ state: WalletState) throws {
    let before = try keptWallet()
    var book = WalletBook(state)
    if let before { book.next = try nextNumber(after: before.book) }
    guard state.operations.count + state.late.count <= WalletBook.maximumWaiting else {
      throw StoreError(.tooLarge, "the wallet has \(WalletBook.maximumWaiting) operations that no cloud was told: connect to one")
    }
    if let before, let fresh = Self.appended(to: before.state, in: state) {
      (book.operations, book.late) = (before.book.operations, before.book.late)
      try append(fresh, to: &book)
    } else {
      try renumber(state, knowing: before, in: &book)
    }
    try letGoOfSettled(book)
    try write(book, state)
  }

  /// The newest lines of the ledger that `isWanted` takes, newest first. Costs reading these and those between.
  package func walletEntries(
    newest limit: Int, where isWanted: (WalletOperation) -> Bool = { _ in true }
  ) throws -> [WalletEntry] {
    guard limit > 0, let body = try walletBody() else { return [] }
    let book = try book(in: body)
    var entries: [WalletEntry] = []
    let names = try String.fetchCursor(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name DESC"),
      arguments: [WalletPage.names.first, WalletPage.names.last])
    while entries.count < limit, let name = try names.next() {
      guard let page = try page(name, of: book) else { continue }
      for (offset, operation) in page.operations.enumerated().reversed() where entries.count < limit && isWanted(operation) {
        let number = page.first + Int64(offset)
        entries.append(WalletEntry(number: number, operation: operation, isWaiting: book.isWaiting(number)))
      }
    }
    return entries
  }

  // MARK: Reading

  private func walletBody() throws -> Data? {
    try Data.fetchOne(statement("SELECT body FROM fact WHERE name = ?"), arguments: [WalletBook.name])
  }

  private func book(in body: Data) throws -> WalletBook {
    let book = try codec.decode(WalletBook.self, from: body, place: RowPlace.fact(WalletBook.name))
    try book.check()
    return book
  }

  private func keptWallet() throws -> (book: WalletBook, state: WalletState)? {
    guard let body = try walletBody() else { return nil }
    if let known = context.wallet.wallet(in: body) { return known }
    let book = try book(in: body)
    let (operations, late, isWhole) = try waitingOperations(of: book)
    guard isWhole else {
      throw StoreError(
        .damaged, "operations of the wallet are missing: close the store and open it again, what is left of it is put in order then")
    }
    var state = book.state
    (state.operations, state.late) = (operations, late)
    context.wallet.insert(book, state, body: body)
    return (book, state)
  }

  /// What the bank doesn't know yet, as far as it is here.
  private func waitingOperations(
    of book: WalletBook
  ) throws -> (operations: [WalletOperation], late: [WalletOperation], isWhole: Bool) {
    var last: WalletPage?
    var isWhole = true
    func operations(_ runs: [WalletBook.Run]) throws -> [WalletOperation] {
      try WalletBook.numbers(of: runs).compactMap { number in
        let first = WalletPage.first(of: number)
        if last?.first != first { last = try page(WalletPage.name(of: number), of: book) ?? WalletPage(first: first) }
        guard let page = last, number < page.end else {
          isWhole = false
          return nil
        }
        return page.operations[Int(number - first)]
      }
    }
    let found = (try operations(book.operations), try operations(book.late))
    return (found.0, found.1, isWhole)
  }

  /// A page as far as the book goes; nil if it isn't here, or can't be.
  private func page(_ name: String, of book: WalletBook) throws -> WalletPage? {
    guard var page: WalletPage = try fact(name), page.isSound, WalletPage.name(of: page.first) == name, page.first <= book.next else {
      return nil
    }
    // That of another copy of the store may have more.
    page.operations.removeLast(Int(min(max(page.end - book.next, 0), Int64(page.operations.count))))
    return page
  }

  // MARK: Writing

  /// What `state` has at its end that `before` lacks; nil if that isn't all in which they differ.
  private static func appended(to before: WalletState, in state: WalletState) -> ArraySlice<WalletOperation>? {
    guard state.operations.count >= before.operations.count, state.late.count == before.late.count,
      zip(before.operations, state.operations).allSatisfy({ $0.id == $1.id }), zip(before.late, state.late).allSatisfy({ $0.id == $1.id })
    else { return nil }
    return state.operations[before.operations.count...]
  }

  private mutating func append(_ operations: ArraySlice<WalletOperation>, to book: inout WalletBook) throws {
    guard !operations.isEmpty else { return }
    let run = WalletBook.Run(first: book.next, count: operations.count)
    if let last = book.operations.last, last.end == run.first {
      book.operations[book.operations.count - 1].count += run.count
    } else {
      book.operations.append(run)
    }
    try keep(operations, from: run.first)
    book.next = run.end
  }

  /// After the bank's answer: some are known to it now, or a new chain has begun.
  private mutating func renumber(
    _ state: WalletState, knowing before: (book: WalletBook, state: WalletState)?, in book: inout WalletBook
  ) throws {
    var known: [OperationID: Int64] = [:]
    if let before {
      for (operation, number) in zip(before.state.operations, WalletBook.numbers(of: before.book.operations)) {
        known[operation.id] = number
      }
      for (operation, number) in zip(before.state.late, WalletBook.numbers(of: before.book.late)) { known[operation.id] = number }
    }
    var next = book.next
    var fresh: [WalletOperation] = []
    func number(_ operation: WalletOperation) -> Int64 {
      if let number = known[operation.id] { return number }
      fresh.append(operation)
      next += 1
      return next - 1
    }
    book.operations = WalletBook.runs(of: state.operations.map(number))
    book.late = WalletBook.runs(of: state.late.map(number))
    try keep(fresh[...], from: book.next)
    book.next = next
  }

  /// The first free number; on a page of its own, where the last page is lost.
  private func nextNumber(after book: WalletBook) throws -> Int64 {
    let first = WalletPage.first(of: book.next)
    guard book.next > first else { return book.next }
    return try page(WalletPage.name(of: first), of: book)?.end == book.next ? book.next : first + WalletPage.capacity
  }

  private mutating func keep(_ operations: ArraySlice<WalletOperation>, from first: Int64) throws {
    var (number, rest) = (first, operations)
    while !rest.isEmpty {
      let begin = WalletPage.first(of: number)
      var page = WalletPage(first: begin)
      if number > begin, let known: WalletPage = try fact(WalletPage.name(of: number)) {
        // That it has all before `number` was seen when the number was given.
        page.operations = Array(known.operations.prefix(Int(number - begin)))
      }
      let part = rest.prefix(Int(begin + WalletPage.capacity - number))
      page.operations += part
      try setFact(WalletPage.name(of: number), page)
      number += Int64(part.count)
      rest = rest.dropFirst(part.count)
    }
  }

  /// Pages that are older than the ledger has to be, and hold nothing that the bank still has to hear.
  private mutating func letGoOfSettled(_ book: WalletBook) throws {
    let waiting = (book.operations + book.late).map(\.first).min() ?? book.next
    let oldest = min(waiting, book.next - Self.maximumSettledOperations)
    guard oldest >= WalletPage.capacity else { return }
    try run("DELETE FROM fact WHERE name > ? AND name < ?", [WalletPage.names.first, WalletPage.name(of: oldest)])
  }

  private mutating func write(_ book: WalletBook, _ state: WalletState) throws {
    let body = try codec.encode(book, place: RowPlace.fact(WalletBook.name))
    try run("INSERT OR REPLACE INTO fact (name, body) VALUES (?, ?)", [WalletBook.name, body])
    context.wallet.insert(book, state, body: body)
  }

  // MARK: Mending

  /// Puts a wallet in order of whose operations some are lost, with damage or taken out by a seal: what the player had is still
  /// known, but the bank would refuse a chain with holes. Does nothing where none is missing.
  ///
  /// Where no bank ever heard of the chain, a new one begins with the same money, of which what was lost is one operation "recovered" for each
  /// currency. Else the bank knows best: what is left is offered to it as late.
  ///
  /// - Returns: Whether there was something to mend.
  @discardableResult
  mutating func mendWallet() throws -> Bool {
    guard let body = try walletBody() else { return false }
    let book = try book(in: body)
    let (operations, late, isWhole) = try waitingOperations(of: book)
    guard !isWhole else { return false }
    var random = SystemRandomNumberGenerator()
    let lost = book.state
    var state = WalletState(chain: ChainID(using: &random))
    (state.balances, state.wanted, state.settledClaims) = (lost.balances, lost.wanted, lost.settledClaims)
    if lost.acknowledged.count == 0, lost.follows == nil {
      var wallet = Wallet(state)
      let totals = lost.totals.sorted { $0.key < $1.key }
      for (currency, totals) in totals { wallet.makeUp(.earn, totals.earned, currency, operations, using: &random) }
      // What was earned first: no spend may come before its money.
      for operation in operations where operation.kind != .spend { wallet.take(operation) }
      for operation in operations where operation.kind == .spend { wallet.take(operation) }
      for (currency, totals) in totals { wallet.makeUp(.spend, totals.spent, currency, operations, using: &random) }
      state = wallet.state
    } else {
      state.follows = lost.chain
      state.late = late + operations.filter { $0.kind != .giveBack }
    }
    var fresh = WalletBook(state)
    fresh.next = WalletPage.first(of: book.next) + WalletPage.capacity
    try renumber(state, knowing: nil, in: &fresh)
    try write(fresh, state)
    return true
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
  /// Far more than any game's money takes: as many greatest amounts as one thousand.
  private static let maximumMadeUp = 1_000

  /// Does what is lacking of `total` in `operations`.
  fileprivate mutating func makeUp(
    _ kind: WalletOperation.Kind, _ total: Int64, _ currency: String, _ operations: [WalletOperation],
    using random: inout some RandomNumberGenerator
  ) {
    var lacking = total
    for operation in operations where operation.kind == kind && operation.currency == currency && operation.amount > 0 {
      lacking = lacking.subtractingReportingOverflow(operation.amount).partialValue
    }
    for _ in 0..<Self.maximumMadeUp where lacking > 0 {
      let amount = min(lacking, Self.maximumAmount)
      take(WalletOperation(id: OperationID(using: &random), kind: kind, currency: currency, amount: amount, reason: "recovered"))
      lacking -= amount
    }
  }

  /// Of an operation that doesn't add up with the others, as only somebody's hands can have written it, nothing is taken: the rest of the
  /// player's money must not be lost for it.
  fileprivate mutating func take(_ operation: WalletOperation) {
    do throws(WalletError) {
      try perform(operation)
    } catch {
      return
    }
  }
}
