import GRDB
package import KeepsakeReplication

// What a bank decides is recorded in the ledger, and as notices for the game: with the change of the wallet that the
// same reply makes, so that no crash loses it.
extension StoreTransaction {
  /// Records in the ledger what became of operations, and appends a notice for each that was declined or is a paid
  /// claim. An operation gets one notice, however often a bank decides it. If the ledger doesn't have the operation any
  /// more, nobody knows of notices that were taken.
  ///
  /// Costs reading the pages of these operations, if they were in the wallet's lists before its last change in this
  /// transaction; else also the newest 10,000 operations.
  package mutating func recordDecisions(_ decisions: [Wallet.Decided]) throws {
    let final = decisions.filter(\.verdict.isFinal)
    guard !final.isEmpty else { return }
    let numbers = try numbers(of: Set(final.map(\.operation.id)))
    var pages: [Int64: WalletPage] = [:]
    var changed: Set<Int64> = []
    var fresh: [Wallet.Decided] = []
    var noticed: Set<OperationID>?
    for decided in final {
      let id = decided.operation.id
      let status: WalletEntry.Status = decided.verdict.counts ? .settled : .declined
      let isFirst = try numbers[id].flatMap { number throws -> Bool? in
        let first = WalletPage.first(of: number)
        guard var page = try pages[first] ?? soundPage(WalletPage.name(of: number)) else { return nil }
        let before = page.outcomes
        let isFirst = page.record(status, of: decided.operation, at: number)
        if page.outcomes != before { changed.insert(first) }
        pages[first] = page
        return isFirst
      }
      guard decided.isNoticed else { continue }
      if let isFirst {
        if isFirst { fresh.append(decided) }
      } else {
        var known = try noticed ?? Set(walletNotices().map(\.operation.id))
        if known.insert(id).inserted { fresh.append(decided) }
        noticed = known
      }
    }
    for page in changed.sorted().compactMap({ pages[$0] }) { try setFact(WalletPage.name(of: page.first), page) }
    try appendNotices(fresh.map { WalletNotice(number: 0, operation: $0.operation, verdict: $0.verdict) })
  }

  /// Returns what goods the player has by the bank; none if the row is damaged, so that the bank sends all.
  package func goods() throws -> PlayerGoods {
    do {
      return try fact(Self.goodsName) ?? PlayerGoods()
    } catch let error as StoreError where error.code == .damaged {
      return PlayerGoods()
    }
  }

  package mutating func setGoods(_ goods: PlayerGoods) throws { try setFact(Self.goodsName, goods) }

  /// The name of the row among the facts.
  private static let goodsName = "wallet goods"

  /// Returns the numbers of operations, of those in the ledger.
  func numbers(of ids: Set<OperationID>) throws -> [OperationID: Int64] {
    var numbers = leavingNumbers.filter { ids.contains($0.key) }
    var missing = ids.subtracting(numbers.keys)
    guard !missing.isEmpty, let next = try walletBody().map(book)?.next else { return numbers }
    var number = next - 1
    while !missing.isEmpty, number >= max(0, next - Self.maximumSettledOperations) {
      let first = WalletPage.first(of: number)
      for (offset, operation) in (try soundPage(WalletPage.name(of: number))?.operations ?? []).enumerated()
      where missing.remove(operation.id) != nil {
        numbers[operation.id] = first + Int64(offset)
      }
      number = first - 1
    }
    return numbers
  }

  // MARK: Notices

  /// Returns the notices that the game hasn't taken, oldest first.
  package func walletNotices() throws -> [WalletNotice] {
    let names = try String.fetchAll(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name"),
      arguments: [WalletNotice.names.first, WalletNotice.names.last])
    return try names.compactMap { name in
      guard let notice: WalletNotice = try fact(name) else { return nil }
      guard WalletNotice.name(of: notice.number) == name else {
        throw StoreError(.damaged, "the data of \(RowIdentity.fact(name)) belongs to another notice")
      }
      return notice
    }
  }

  /// Removes the notices up to this number, because the game has taken them.
  package mutating func removeWalletNotices(upTo number: Int64) throws {
    let number = min(number, try newestNotice())
    guard number > (try takenNotices()) else { return }
    try setFact(WalletNotice.Taken.name, WalletNotice.Taken(number: number))
    try removeTakenNotices()
  }

  /// Removes notices that the game has taken and that a part of an older store had brought back.
  mutating func removeTakenNotices() throws {
    try run(
      "DELETE FROM fact WHERE name > ? AND name <= ?",
      [WalletNotice.names.first, WalletNotice.name(of: try takenNotices())])
  }

  /// Appends notices, which get the next numbers.
  mutating func appendNotices(_ notices: [WalletNotice]) throws {
    guard !notices.isEmpty else { return }
    var number = try newestNotice()
    for var notice in notices {
      number += 1
      notice.number = number
      try setFact(WalletNotice.name(of: number), notice)
    }
    try run(
      "DELETE FROM fact WHERE name > ? AND name <= ?",
      [WalletNotice.names.first, WalletNotice.name(of: max(0, number - WalletNotice.maximum))])
  }

  private func takenNotices() throws -> Int64 {
    do {
      let taken: WalletNotice.Taken? = try fact(WalletNotice.Taken.name)
      return min(max(0, taken?.number ?? 0), WalletBook.maximumNumber)
    } catch let error as StoreError where error.code == .damaged {
      return 0  // Forged, since damage is repaired at opening. A notice may come twice.
    }
  }

  /// Returns the greatest number that a notice ever had.
  private func newestNotice() throws -> Int64 {
    let name = try String.fetchOne(
      statement("SELECT name FROM fact WHERE name > ? AND name < ? ORDER BY name DESC LIMIT 1"),
      arguments: [WalletNotice.names.first, WalletNotice.names.last])
    return max(try takenNotices(), name.flatMap(WalletNotice.number) ?? 0)
  }
}
