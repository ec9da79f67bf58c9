import Foundation
package import KeepsakeReplication

/// How a wallet is stored: everything but its operations in one row, and the operations in pages of a few, so that an
/// operation writes one page and not everything the player ever earned. Operations that no bank knows yet are held in
/// memory (`OperationList`).
///
/// Operations are numbered in the order in which they were made and never change. The book records which of them the
/// bank doesn't know yet; the others are the ledger's past.
struct WalletBook: Codable {
  /// The name of the book's row among the facts.
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
  /// The number of the next operation.
  var next: Int64 = 0

  init(_ state: WalletState) {
    self.state = state
    self.state.operations = []
    self.state.late = []
  }

  /// Decodes the row. Throws `damaged` if it can't be decoded or is impossible, so that callers needn't check again.
  static func read(_ body: Data, _ codec: RowCodec) throws -> WalletBook {
    let book = try codec.decode(WalletBook.self, from: body, place: RowIdentity.fact(name))
    if let objection = book.objection { throw StoreError(.damaged, "the data of the wallet is invalid: \(objection)") }
    return book
  }

  /// Why no store can have written a wallet like this; nil if one can. If there is a reason, it was written by somebody
  /// who knows the format.
  var objection: String? {
    let runs = operations + late
    // The numbers first: only then can nothing overflow.
    guard (0...Self.maximumNumber).contains(next),
      runs.allSatisfy({ (0...next).contains($0.first) && $0.count > 0 && Int64($0.count) <= next && $0.end <= next }),
      runs.reduce(0, { min($0 + $1.count, Self.maximumWaiting + 1) }) <= Self.maximumWaiting
    else { return "it lists impossible operations" }
    return state.objection
  }

  /// More operations than any player makes.
  static let maximumNumber: Int64 = 1 << 40
  /// The maximum number of operations that the bank doesn't know yet, which are held in memory (`OperationList`).
  static let maximumWaiting = 1 << 22

  /// Returns whether the bank doesn't know the operation yet.
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

/// A few consecutive operations, stored in one row of the facts.
struct WalletPage: Codable {
  /// Small enough to be written with each operation, large enough that a ledger doesn't take too many rows.
  static let capacity: Int64 = 32
  /// Far enough below the book's highest number that what is lost can still be made up after the last page.
  static let maximumFirst = WalletBook.maximumNumber - (1 << 20)

  /// The number of the first operation.
  var first: Int64
  var operations: [WalletOperation] = []
  /// The chain of the last of these operations. If the book is lost, it identifies the chain that the bank has to
  /// close.
  var chain: ChainID?

  /// Only valid for a sound page.
  var end: Int64 { first + Int64(operations.count) }

  /// Whether a store can have written this page: it may have been written by somebody who knows the format.
  var isSound: Bool {
    (0...Self.maximumFirst).contains(first) && first == Self.first(of: first) && operations.count <= Int(Self.capacity)
      && operations.allSatisfy(\.isSound)
  }

  /// Returns the number of the first operation on the page that contains `number`.
  static func first(of number: Int64) -> Int64 { number / capacity * capacity }

  /// The names of all pages are between these two.
  static let names = (first: "wallet page ", last: "wallet page :")

  /// Padded to the same number of digits, so that the names sort like the pages.
  static func name(of number: Int64) -> String {
    let digits = String(number / capacity)
    return names.first + String(repeating: "0", count: max(12 - digits.count, 0)) + digits
  }

  /// Returns the number of the first operation on the page of that name; nil for a name that no page has.
  static func first(named name: String) -> Int64? {
    guard let index = Int64(name.dropFirst(names.first.count)), (0...maximumFirst / capacity).contains(index) else {
      return nil
    }
    return self.name(of: index * capacity) == name ? index * capacity : nil
  }
}

/// One entry of the ledger.
package struct WalletEntry: Hashable, Sendable {
  /// Numbers the operations of this store from 0.
  package var number: Int64
  package var operation: WalletOperation
  /// Whether the bank doesn't know it yet.
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
