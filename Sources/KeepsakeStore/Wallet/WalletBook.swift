import Foundation
import KeepsakeReplication

/// How a wallet is stored: everything but its operations in one row, and the operations in pages of a few, so that an
/// operation writes one page and not everything the player ever earned. Operations that no bank knows yet are held in
/// memory (`OperationList`).
///
/// Operations are numbered in the order in which they were made and never change. The book records which of them no
/// bank has decided yet; the others are the ledger's past.
struct WalletBook {
  /// The name of the book's row among the facts.
  static let name = "wallet"

  /// A run of operations with consecutive numbers.
  struct Run: Codable, Hashable {
    var first: Int64
    var count: Int

    var end: Int64 { first + Int64(count) }
  }

  /// Without `operations`, `late` and `waiting`, and without the claims of vouchers (`VoucherClaims`).
  var state: WalletState
  var operations: [Run] = []
  var late: [Run] = []
  var waiting: [Run] = []
  /// The newest operations of the chain that the bank has acknowledged, oldest first: for a bank that loses some.
  var acknowledged: [Run] = []
  /// The number of the next operation.
  var next: Int64 = 0
  /// Whether the table `performed` has what was performed here. Not so in a book of a format without that table.
  var isTabled = true
  /// Keys of claims that a bank has decided, in a book of such a format.
  private(set) var settledClaims: [String] = []

  init(_ state: WalletState) {
    self.state = state
    self.state.operations = []
    self.state.late = []
    self.state.waiting = []
    for index in self.state.vouchers.indices { self.state.vouchers[index].claims = [] }
  }

  /// The operations that no bank has decided.
  var undecided: [Run] { operations + late + waiting }

  /// Decodes the row. Throws `damaged` if it can't be decoded or is impossible, so that callers needn't check again.
  static func read(_ body: Data, _ codec: RowCodec) throws -> WalletBook {
    let book = try codec.decode(WalletBook.self, from: body, place: RowIdentity.fact(name))
    if let objection = book.objection { throw StoreError(.damaged, "the data of the wallet is invalid: \(objection)") }
    return book
  }

  /// Why no store can have written a wallet like this; nil if one can. If there is a reason, it was written by somebody
  /// who knows the format.
  var objection: String? {
    func arePossible(_ runs: [Run]) -> Bool {
      runs.allSatisfy { (0...next).contains($0.first) && $0.count > 0 && Int64($0.count) <= next && $0.end <= next }
        && runs.reduce(0) { min($0 + $1.count, Self.maximumWaiting + 1) } <= Self.maximumWaiting
    }
    // The numbers first: only then can nothing overflow.
    guard (0...Self.maximumNumber).contains(next), arePossible(undecided), arePossible(acknowledged) else {
      return "it lists impossible operations"
    }
    return state.objection
  }

  /// More operations than any player makes.
  static let maximumNumber: Int64 = 1 << 40
  /// The maximum number of operations that no bank has decided, which are held in memory (`OperationList`).
  static let maximumWaiting = 1 << 22

  /// Returns whether no bank has decided the operation, or one that was set back is offered it again.
  func isWaiting(_ number: Int64) -> Bool { Self.contains(number, in: undecided) }

  /// Those of the undecided operations that count already: a bank that was set back is offered them again.
  var repeated: [Run] { Self.runs(operations, first: state.replayed) + Self.runs(late, first: state.again) }

  static func contains(_ number: Int64, in runs: [Run]) -> Bool {
    runs.contains { $0.first <= number && number < $0.end }
  }

  static func runs(of numbers: [Int64]) -> [Run] { runs([], appending: numbers) }

  static func runs(_ runs: [Run], droppingFirst count: Int) -> [Run] {
    var (rest, left) = (runs[...], count)
    while left > 0, let run = rest.popFirst() {
      if run.count > left { return [Run(first: run.first + Int64(left), count: run.count - left)] + rest }
      left -= run.count
    }
    return Array(rest)
  }

  static func runs(_ runs: [Run], first count: Int) -> [Run] {
    var (result, left) = ([Run](), count)
    for run in runs where left > 0 {
      result.append(Run(first: run.first, count: min(run.count, left)))
      left -= run.count
    }
    return result
  }

  static func runs(_ runs: [Run], appending numbers: some Sequence<Int64>) -> [Run] {
    var runs = runs
    for number in numbers {
      if let last = runs.last, last.end == number {
        runs[runs.count - 1].count += 1
      } else {
        runs.append(Run(first: number, count: 1))
      }
    }
    return runs
  }

  static func runs(_ runs: [Run], appending others: [Run]) -> [Run] {
    var runs = runs
    for run in others {
      if let last = runs.last, last.end == run.first {
        runs[runs.count - 1].count += run.count
      } else {
        runs.append(run)
      }
    }
    return runs
  }

  static func numbers(of runs: [Run]) -> [Int64] { runs.flatMap { Array($0.first..<$0.end) } }

  static func count(_ runs: [Run]) -> Int { runs.reduce(0) { $0 + $1.count } }
}

extension WalletBook: Codable {
  private enum CodingKeys: String, CodingKey {
    case state, operations, late, waiting, acknowledged, next, isTabled
  }
  private enum EarlierKeys: String, CodingKey {
    case settledClaims
  }

  init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    state = try values.decode(WalletState.self, forKey: .state)
    operations = try values.decode([Run].self, forKey: .operations)
    late = try values.decode([Run].self, forKey: .late)
    next = try values.decode(Int64.self, forKey: .next)
    // Books of earlier formats don't have these fields.
    waiting = try values.decodeIfPresent([Run].self, forKey: .waiting) ?? []
    acknowledged = try values.decodeIfPresent([Run].self, forKey: .acknowledged) ?? []
    isTabled = try values.decodeIfPresent(Bool.self, forKey: .isTabled) ?? false
    guard !isTabled else { return }
    let earlier = try values.nestedContainer(keyedBy: EarlierKeys.self, forKey: .state)
    settledClaims = try earlier.decodeIfPresent([String].self, forKey: .settledClaims) ?? []
  }

  func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(state, forKey: .state)
    try values.encode(operations, forKey: .operations)
    try values.encode(late, forKey: .late)
    if !waiting.isEmpty { try values.encode(waiting, forKey: .waiting) }
    if !acknowledged.isEmpty { try values.encode(acknowledged, forKey: .acknowledged) }
    try values.encode(next, forKey: .next)
    try values.encode(isTabled, forKey: .isTabled)
  }
}
