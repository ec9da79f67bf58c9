package import KeepsakeReplication

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
  /// What became of operations, by their position on the page. One that has none is settled if a bank decided it.
  var outcomes: [Int: WalletEntry.Status]?

  /// Only valid for a sound page.
  var end: Int64 { first + Int64(operations.count) }

  /// Grows with everything that is written to the page.
  var size: (operations: Int, outcomes: Int) { (operations.count, outcomes?.count ?? 0) }

  /// Whether a store can have written this page: it may have been written by somebody who knows the format.
  var isSound: Bool {
    (0...Self.maximumFirst).contains(first) && first == Self.first(of: first) && operations.count <= Int(Self.capacity)
      && operations.allSatisfy(\.isSound)
  }

  /// Records what became of an operation.
  ///
  /// - Returns: Whether nothing was recorded of it before; nil if the page doesn't have it.
  @discardableResult
  mutating func record(_ status: WalletEntry.Status, of operation: WalletOperation, at number: Int64) -> Bool? {
    guard first <= number, number < end, operations[Int(number - first)].id == operation.id else { return nil }
    let known = outcomes?[Int(number - first)]
    // A bank that is asked again about a purchase still says that it was charged.
    if known == .refunded, status == .settled { return false }
    // Most operations are settled without a decision of their own.
    if status != .settled || operation.effect == .claim || known != nil {
      outcomes = outcomes ?? [:]
      outcomes?[Int(number - first)] = status
    }
    return known == nil
  }

  /// Returns the number of the first operation on the page that contains `number`.
  static func first(of number: Int64) -> Int64 { number / capacity * capacity }

  static let names = FactNames("wallet page", numbers: 0...maximumFirst / capacity)

  static func name(of number: Int64) -> String { names.name(of: number / capacity) }

  /// Returns the number of the first operation on the page of that name; nil for a name that no page has.
  static func first(named name: String) -> Int64? { names.number(named: name).map { $0 * capacity } }
}

/// One entry of the ledger.
package struct WalletEntry: Hashable, Sendable {
  /// What became of an operation.
  package enum Status: String, Hashable, Sendable, Codable {
    /// No bank has decided it.
    case waiting
    /// It counts.
    case settled
    /// It was never charged or paid, and its goods are revoked.
    case declined
    /// It was charged, and the money was returned later; its goods are revoked.
    case refunded
  }

  /// Numbers the operations of this store from 0. For an order, the number of the operation before which it comes.
  package var number: Int64
  /// For an order, the operation of a device that would move the same money.
  package var operation: WalletOperation
  package var status: Status
  /// The bank's own operation; nil for one that this device made.
  package var order: BankOrder? = nil

  package var isWaiting: Bool { status == .waiting }
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
