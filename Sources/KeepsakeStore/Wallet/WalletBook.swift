import Foundation
package import KeepsakeReplication

/// How a wallet is kept: all but its operations in one row, the operations in pages of a few, so that an operation writes a page and
/// not what the player ever earned. What no bank was told yet is held in memory (`OperationList`).
///
/// Operations are numbered in the order in which they were made and never change. The book says which of them the bank doesn't
/// know yet; the others are the ledger's past.
struct WalletBook: Codable {
  /// The name of its row among the facts.
  static let name = "wallet"

  /// A run of operations with consecutive numbers.
  struct Run: Codable, Hashable {
    var first: Int64
    var count: Int

    var end: Int64 { first + Int64(count) }
  }

  /// Without `operations` and `late`.
  var state: WalletState
  var operations: [Run] = []
  var late: [Run] = []
  /// The number that the next operation gets.
  var next: Int64 = 0

  init(_ state: WalletState) {
    self.state = state
    self.state.operations = []
    self.state.late = []
  }

  /// Reads the row; throws `damaged` for one that can't be understood or can't be, so that nothing has to look again.
  static func read(_ body: Data, _ codec: RowCodec) throws -> WalletBook {
    let book = try codec.decode(WalletBook.self, from: body, place: RowIdentity.fact(name))
    if let objection = book.objection { throw StoreError(.damaged, "what is kept of the wallet can't be: \(objection)") }
    return book
  }

  /// Why no wallet of ours can be like this; nil if one can. Only somebody who knows the format can have written it then.
  var objection: String? {
    let runs = operations + late
    // The numbers first: only then can nothing overflow.
    guard (0...Self.maximumNumber).contains(next),
      runs.allSatisfy({ (0...next).contains($0.first) && $0.count > 0 && Int64($0.count) <= next && $0.end <= next }),
      runs.reduce(0, { min($0 + $1.count, Self.maximumWaiting + 1) }) <= Self.maximumWaiting
    else { return "it names operations that can't be" }
    return state.objection
  }

  /// More than any player makes.
  static let maximumNumber: Int64 = 1 << 40
  /// Operations that a bank wasn't told yet, which are held in memory (`OperationList`).
  static let maximumWaiting = 1 << 22

  /// Whether the bank doesn't know the operation yet.
  func isWaiting(_ number: Int64) -> Bool {
    (operations + late).contains { $0.first <= number && number < $0.end }
  }

  static func runs(of numbers: [Int64]) -> [Run] {
    var runs: [Run] = []
    for number in numbers {
      if let last = runs.last, last.end == number {
        runs[runs.count - 1].count += 1
      } else {
        runs.append(Run(first: number, count: 1))
      }
    }
    return runs
  }

  static func runs(_ runs: [Run], droppingFirst count: Int) -> [Run] {
    var (rest, left) = (runs[...], count)
    while left > 0, let run = rest.popFirst() {
      if run.count > left { return [Run(first: run.first + Int64(left), count: run.count - left)] + rest }
      left -= run.count
    }
    return Array(rest)
  }

  static func numbers(of runs: [Run]) -> [Int64] { runs.flatMap { Array($0.first..<$0.end) } }
}

/// A few operations in a row, in a row of the facts.
struct WalletPage: Codable {
  /// Small enough to be written with each operation, large enough that a ledger is no heap of rows.
  static let capacity: Int64 = 32
  /// So far below the book's highest number that what is lost can still be made up behind the last page.
  static let maximumFirst = WalletBook.maximumNumber - (1 << 20)

  /// The number of the first one.
  var first: Int64
  var operations: [WalletOperation] = []
  /// The chain on which the last of them was made: who lost the book can still say what the bank has to close.
  var chain: ChainID?

  /// Only for one that is sound.
  var end: Int64 { first + Int64(operations.count) }

  /// Whether it can be one of ours: somebody may have written it who knows the format.
  var isSound: Bool {
    (0...Self.maximumFirst).contains(first) && first == Self.first(of: first) && operations.count <= Int(Self.capacity)
      && operations.allSatisfy(\.isSound)
  }

  /// The number of the first operation on the page that holds `number`.
  static func first(of number: Int64) -> Int64 { number / capacity * capacity }

  /// All pages have their names between these two.
  static let names = (first: "wallet page ", last: "wallet page :")

  /// With as many digits as any has, so that their order is that of the pages.
  static func name(of number: Int64) -> String {
    let digits = String(number / capacity)
    return names.first + String(repeating: "0", count: max(12 - digits.count, 0)) + digits
  }

  /// The number of the first operation on the page of that name; nil for a name that no page has.
  static func first(named name: String) -> Int64? {
    guard let index = Int64(name.dropFirst(names.first.count)), (0...maximumFirst / capacity).contains(index) else { return nil }
    return self.name(of: index * capacity) == name ? index * capacity : nil
  }
}

/// One line of the ledger.
package struct WalletEntry: Hashable, Sendable {
  /// Counts the operations of this store from 0.
  package var number: Int64
  package var operation: WalletOperation
  /// The bank has not heard of it.
  package var isWaiting: Bool
}

extension WalletOperation {
  /// Whether a game could have made it.
  fileprivate var isSound: Bool {
    do throws(WalletError) {
      try check()
      return true
    } catch {
      return false
    }
  }
}
