import Foundation
import GRDB
package import KeepsakeReplication

extension StoreTransaction {
  /// Operations that the bank has are kept for the ledger: at least this many of the newest.
  package static let maximumSettledOperations = Int64(Bank.maximumTrusted)

  package func wallet() throws -> WalletState? { try keptWallet()?.state }

  /// Stores the wallet. Costs what is new in it and what the bank has settled: operations already stored are neither
  /// read nor written again.
  package mutating func setWallet(_ state: WalletState) throws {
    let before = try keptWallet()
    var book = WalletBook(state)
    leavingNumbers = [:]
    if let before {
      book.next = try nextNumber(after: before.book)
      book.acknowledged = Self.acknowledged(by: state, after: before)
    }
    guard state.undecided.reduce(0, { $0 + $1.count }) <= WalletBook.maximumWaiting else {
      throw StoreError(
        .tooLarge,
        "the wallet has \(WalletBook.maximumWaiting) operations that were not reported to a cloud: connect to one")
    }
    if let before, let operations = state.operations.shift(since: before.state.operations),
      let late = state.late.shift(since: before.state.late),
      let waiting = state.waiting.shift(since: before.state.waiting)
    {
      book.operations = leave(operations.dropped, of: before.state.operations, before.book.operations)
      book.late = leave(late.dropped, of: before.state.late, before.book.late)
      book.waiting = leave(waiting.dropped, of: before.state.waiting, before.book.waiting)
      try append(operations.appended, to: &book.operations, numberedFrom: &book.next, on: state.chain)
      try append(late.appended, to: &book.late, numberedFrom: &book.next, on: state.chain)
      try append(waiting.appended, to: &book.waiting, numberedFrom: &book.next, on: state.chain)
    } else {
      if let before { leavingNumbers = try numbers(before, for: state) }
      // What a bank that was set back is offered again is in the ledger.
      let again = state.late.prefix(state.again).map(\.id)
      if !again.isEmpty { leavingNumbers.merge(try numbers(of: Set(again))) { known, _ in known } }
      try renumber(state, knowing: leavingNumbers, in: &book)
    }
    if let before, before.state.isBound, !state.isBound, state.chain != before.state.chain {
      try setWalletBeginning(before.book.next)
    }
    guard book.next <= WalletBook.maximumNumber else {
      throw StoreError(.tooLarge, "the wallet has no numbers left for further operations")
    }
    try letGoOfSettled(book)
    try write(book, state)
  }

  package func acknowledgedOperations(after head: ChainHead) throws -> AcknowledgedOperations {
    guard let (book, state) = try keptWallet() else { return .notKept }
    guard head.count <= state.acknowledged.count else { return .branched }
    let (asked, kept) = (Int(state.acknowledged.count - head.count), WalletBook.count(book.acknowledged))
    guard asked <= kept else { return .notKept }
    var (current, found) = (head, [WalletOperation]())
    var isWhole = true
    try forEach(WalletBook.runs(book.acknowledged, droppingFirst: kept - asked), of: book) { _, operation in
      guard let operation else {
        isWhole = false
        return
      }
      current = current.appending(operation)
      found.append(operation)
    }
    guard isWhole else { return .notKept }
    // The hash tells whether these are the operations between the two heads.
    return current == state.acknowledged ? .kept(found) : .branched
  }

  package func settledOperations(includingChain: Bool) throws -> [WalletOperation] {
    guard let body = try walletBody() else { return [] }
    let book = try book(in: body)
    // What was made for a bank before isn't offered to this one.
    let beginning = try walletBeginning()
    // Older ones are kept only beside one that no bank has decided.
    let oldest = max(beginning, book.next - Self.maximumSettledOperations)
    var result: [WalletOperation] = []
    let names = try String.fetchCursor(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name"),
      arguments: [WalletPage.names.first, WalletPage.names.last])
    while let name = try names.next() {
      guard let page = try page(name, of: book) else { continue }
      for (offset, operation) in page.operations.enumerated().dropFirst(Int(max(0, oldest - page.first))) {
        let number = page.first + Int64(offset)
        let isOnChain = WalletBook.contains(number, in: book.acknowledged)
        if isOnChain && !includingChain || book.isWaiting(number) || page.outcomes?[offset] == .declined { continue }
        result.append(operation)
      }
    }
    return result
  }

  /// Returns the newest entries of the ledger that `isWanted` accepts, newest first: this device's operations, and the
  /// bank's orders. Costs reading these and those between them.
  package func walletEntries(
    newest limit: Int, where isWanted: (WalletOperation) -> Bool = { _ in true }
  ) throws -> [WalletEntry] {
    guard limit > 0, let body = try walletBody() else { return [] }
    let book = try book(in: body)
    let repeated = book.repeated
    let former = Set(try formerWallets().flatMap { $0.state.undecided.joined().map(\.id) })
    var entries: [WalletEntry] = []
    var order = try self.order()
    /// Adds the orders that came after the operation of this number.
    func addOrders(after number: Int64) throws {
      while entries.count < limit, let row = order, row.place > number {
        if isWanted(row.entry.operation) { entries.append(row.entry) }
        order = try self.order(before: row.number)
      }
    }
    let names = try String.fetchCursor(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name DESC"),
      arguments: [WalletPage.names.first, WalletPage.names.last])
    while entries.count < limit, let name = try names.next() {
      guard let page = try page(name, of: book) else { continue }
      for (offset, operation) in page.operations.enumerated().reversed() where entries.count < limit {
        let number = page.first + Int64(offset)
        try addOrders(after: number)
        guard entries.count < limit, isWanted(operation) else { continue }
        let isUndecided = book.isWaiting(number) && !WalletBook.contains(number, in: repeated)
        let isWaiting = isUndecided || former.contains(operation.id)
        let status = isWaiting ? .waiting : page.outcomes?[offset] ?? .settled
        entries.append(WalletEntry(number: number, operation: operation, status: status))
      }
    }
    try addOrders(after: -1)
    return entries
  }

  /// Returns the operations from this number on, oldest first, and the number of the next new one. Costs reading these.
  package func walletEntries(from first: Int64) throws -> (operations: [WalletOperation], next: Int64) {
    guard let body = try walletBody() else { return ([], 0) }
    let book = try book(in: body)
    var operations: [WalletOperation] = []
    guard first < book.next else { return ([], book.next) }
    let names = try String.fetchCursor(
      statement("SELECT name FROM fact WHERE name >= ? AND name < ? ORDER BY name"),
      arguments: [WalletPage.name(of: max(first, 0)), WalletPage.names.last])
    while let name = try names.next() {
      guard let page = try page(name, of: book) else { continue }
      operations += page.operations.dropFirst(Int(max(first - page.first, 0)))
    }
    return (operations, book.next)
  }

  // MARK: Reading

  func walletBody() throws -> Data? {
    try Data.fetchOne(statement("SELECT body FROM fact WHERE name = ?"), arguments: [WalletBook.name])
  }

  func book(in body: Data) throws -> WalletBook {
    do {
      return try WalletBook.read(body, codec)
    } catch let error as StoreError where error.code == .damaged {
      throw StoreError(
        .damaged, "the wallet can't be read: close and reopen the store to repair what is left of it", cause: error)
    }
  }

  func keptWallet() throws -> (book: WalletBook, state: WalletState)? {
    guard let body = try walletBody() else { return nil }
    if let known = context.wallet.wallet(in: body) { return known }
    let read = try readWallet(body)
    guard read.isWhole else {
      throw StoreError(
        .damaged, "operations of the wallet are missing: close and reopen the store to repair what is left of it")
    }
    return (read.book, read.state)
  }

  /// Reads a wallet with every readable operation that no bank has decided, and their numbers. Costs decoding those; a
  /// complete wallet is cached.
  func readWallet(_ body: Data) throws -> (book: WalletBook, state: WalletState, numbers: [Int64], isWhole: Bool) {
    let book = try book(in: body)
    var state = book.state
    var numbers: [Int64] = []
    func read(_ runs: [WalletBook.Run], into list: inout OperationList) throws {
      try forEach(runs, of: book) { number, operation in
        guard let operation else { return }
        list.append(operation)
        numbers.append(number)
      }
    }
    try read(book.operations, into: &state.operations)
    try read(book.late, into: &state.late)
    try read(book.waiting, into: &state.waiting)
    state.vouchers = try completed(state.vouchers)
    let isWhole = numbers.count == WalletBook.count(book.undecided)
    if isWhole { context.wallet.insert(book, state, body: body) }
    return (book, state, numbers, isWhole)
  }

  /// Calls `body` with each number and its operation; nil for one that is lost. Reads consecutive ones with their page.
  private func forEach(
    _ runs: [WalletBook.Run], of book: WalletBook, _ body: (Int64, WalletOperation?) throws -> Void
  ) throws {
    var last: WalletPage?
    for number in WalletBook.numbers(of: runs) {
      let first = WalletPage.first(of: number)
      if last?.first != first { last = try page(WalletPage.name(of: number), of: book) ?? WalletPage(first: first) }
      guard let page = last else { continue }
      try body(number, number < page.end ? page.operations[Int(number - first)] : nil)
    }
  }

  /// Returns a page up to the end of the book; nil if it is missing or invalid.
  func page(_ name: String, of book: WalletBook) throws -> WalletPage? {
    guard var page = try soundPage(name), page.first <= book.next else { return nil }
    // A page from another copy of the store may have more.
    page.operations.removeLast(Int(min(max(page.end - book.next, 0), Int64(page.operations.count))))
    return page
  }

  /// Returns the page of that name if it is valid; nil if there is none. Anything else that was written there counts as
  /// a lost page.
  func soundPage(_ name: String) throws -> WalletPage? {
    do {
      guard let page: WalletPage = try fact(name), page.isSound, WalletPage.name(of: page.first) == name else {
        return nil
      }
      return page
    } catch let error as StoreError where error.code == .damaged {
      return nil
    }
  }

  // MARK: Writing

  /// Removes operations from the front of a list, which the bank has settled or which move to another list.
  ///
  /// - Returns: The numbers of the others.
  private mutating func leave(_ count: Int, of list: OperationList, _ runs: [WalletBook.Run]) -> [WalletBook.Run] {
    let numbers = WalletBook.numbers(of: WalletBook.runs(runs, first: count))
    for (operation, number) in zip(list.prefix(count), numbers) { leavingNumbers[operation.id] = number }
    return WalletBook.runs(runs, droppingFirst: count)
  }

  /// Appends operations to a list. Those from another list keep their numbers.
  private mutating func append(
    _ operations: some Collection<WalletOperation>, to runs: inout [WalletBook.Run], numberedFrom next: inout Int64,
    on chain: ChainID
  ) throws {
    guard !operations.isEmpty else { return }
    var fresh: [WalletOperation] = []
    let numbers = operations.map { operation in
      if let number = leavingNumbers[operation.id] { return number }
      fresh.append(operation)
      return next + Int64(fresh.count) - 1
    }
    try keep(fresh, from: next, on: chain)
    runs = WalletBook.runs(runs, appending: numbers)
    next += Int64(fresh.count)
  }

  /// Returns the chain's operations that the bank has acknowledged by `state`, as far as they are kept.
  private static func acknowledged(
    by state: WalletState, after before: (book: WalletBook, state: WalletState)
  ) -> [WalletBook.Run] {
    guard state.chain == before.state.chain else { return [] }
    let known = before.book.acknowledged
    let advance = Int64(state.acknowledged.count) - Int64(before.state.acknowledged.count)
    let runs = WalletBook.runs(
      WalletBook.runs(known, appending: before.book.operations),
      first: max(0, WalletBook.count(known) + Int(advance)))
    return WalletBook.runs(runs, droppingFirst: max(0, WalletBook.count(runs) - Int(maximumSettledOperations)))
  }

  /// Returns the numbers of the operations in a wallet's lists, and of those that the bank has acknowledged and lost.
  private func numbers(_ wallet: (book: WalletBook, state: WalletState), for state: WalletState) throws
    -> [OperationID: Int64]
  {
    let (book, before) = wallet
    var numbers: [OperationID: Int64] = [:]
    if state.chain == before.chain, state.acknowledged.count < before.acknowledged.count {
      try forEach(book.acknowledged, of: book) { number, operation in
        if let operation { numbers[operation.id] = number }
      }
    }
    for (list, runs) in zip(before.undecided, [book.operations, book.late, book.waiting]) {
      for (operation, number) in zip(list, WalletBook.numbers(of: runs)) { numbers[operation.id] = number }
    }
    return numbers
  }

  /// Numbers all operations again, keeping the number of those already stored: a new chain has begun, or an earlier
  /// commit failed.
  mutating func renumber(_ state: WalletState, knowing known: [OperationID: Int64], in book: inout WalletBook) throws {
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
    book.waiting = WalletBook.runs(of: state.waiting.map(number))
    try keep(fresh, from: book.next, on: state.chain)
    book.next = next
  }

  /// Returns the first free number. It begins a new page if the last page is lost.
  private func nextNumber(after book: WalletBook) throws -> Int64 {
    let first = WalletPage.first(of: book.next)
    guard book.next > first else { return book.next }
    return try page(WalletPage.name(of: first), of: book)?.end == book.next ? book.next : first + WalletPage.capacity
  }

  private mutating func keep(_ operations: some Collection<WalletOperation>, from first: Int64, on chain: ChainID)
    throws
  {
    var number = first
    var rest = operations[...]
    while !rest.isEmpty {
      let begin = WalletPage.first(of: number)
      var page = WalletPage(first: begin, chain: chain)
      if number > begin, let known = try soundPage(WalletPage.name(of: number)) {
        // Assigning `number` has verified that the page contains everything before it.
        page.operations = Array(known.operations.prefix(Int(number - begin)))
        page.outcomes = known.outcomes?.filter { $0.key < page.operations.count }
      }
      let part = rest.prefix(Int(begin + WalletPage.capacity - number))
      page.operations += part
      try setFact(WalletPage.name(of: number), page)
      for operation in part { try markPerformed(operation) }
      number += Int64(part.count)
      rest = rest.dropFirst(part.count)
    }
  }

  /// Deletes pages that are older than the ledger has to be and contain nothing that no bank has decided.
  private mutating func letGoOfSettled(_ book: WalletBook) throws {
    let waiting = book.undecided.map(\.first).min() ?? book.next
    let oldest = min(waiting, book.next - Self.maximumSettledOperations)
    guard oldest >= WalletPage.capacity else { return }
    try run("DELETE FROM fact WHERE name > ? AND name < ?", [WalletPage.names.first, WalletPage.name(of: oldest)])
  }

  mutating func write(_ book: WalletBook, _ state: WalletState) throws {
    let body = try codec.encode(book, place: RowIdentity.fact(WalletBook.name))
    try run("INSERT OR REPLACE INTO fact (name, body) VALUES (?, ?)", [WalletBook.name, body])
    try keepClaims(of: state.vouchers)
    let memory = context.wallet
    // Registered once per transaction. Concurrent readers continue with what was committed before.
    if memory.insertUncommitted(book, state, body: body) {
      database.afterNextTransaction(onCommit: { _ in memory.commit() }, onRollback: { _ in memory.rollBack() })
    }
  }
}
