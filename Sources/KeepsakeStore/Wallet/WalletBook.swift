package import KeepsakeReplication

/// How a wallet is kept: all but its operations in one row, the operations in pages of a few, so that an operation writes a page and
/// not what the player ever earned. What no bank was told yet is held in memory, and looked through at each operation: 10,000 of them cost a
/// millisecond.
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

  /// Throws `damaged` for numbers that can't be, so that nothing has to look again.
  func check() throws {
    let runs = operations + late
    // The numbers first: only then can nothing overflow.
    guard (0...Self.maximumNumber).contains(next),
      runs.allSatisfy({ (0...next).contains($0.first) && $0.count > 0 && Int64($0.count) <= next && $0.end <= next }),
      runs.reduce(0, { min($0 + $1.count, Self.maximumWaiting + 1) }) <= Self.maximumWaiting
    else { throw StoreError(.damaged, "the wallet names operations that can't be") }
  }

  /// More than any player makes.
  static let maximumNumber: Int64 = 1 << 40
  /// Operations that a bank wasn't told yet, which are held in memory: some hundred bytes each.
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

  static func numbers(of runs: [Run]) -> [Int64] { runs.flatMap { Array($0.first..<$0.end) } }
}

/// A few operations in a row, in a row of the facts.
struct WalletPage: Codable {
  /// Small enough to be written with each operation, large enough that a ledger is no heap of rows.
  static let capacity: Int64 = 32

  /// The number of the first one.
  var first: Int64
  var operations: [WalletOperation] = []

  /// Only for one that is sound.
  var end: Int64 { first + Int64(operations.count) }

  /// Whether it can be one of ours: somebody may have written it who knows the format.
  var isSound: Bool {
    (0...WalletBook.maximumNumber).contains(first) && first == Self.first(of: first) && operations.count <= Int(Self.capacity)
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
