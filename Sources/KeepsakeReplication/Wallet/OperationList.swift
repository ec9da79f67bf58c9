import Synchronization

/// Operations that the bank doesn't know yet, oldest first. A game without a cloud keeps every operation that was ever
/// made, so appending one, removing some at the front, looking one up and summing up a currency cost the same however
/// many there are.
///
/// A value. Copies that differ only in where they begin and end share one log; that is the case for what is committed,
/// what is about to be, and what somebody reads meanwhile. A copy that is appended to where another one was already, as
/// after a failed commit, gets a log of its own, which costs a pass over its operations; so does every change in the
/// middle.
///
/// Takes about 200 bytes per operation, plus its texts of more than 15 bytes.
package struct OperationList: Sendable {
  /// The sums over the operations of one currency.
  package struct Sums: Hashable, Sendable {
    package fileprivate(set) var count = 0
    // Wide enough never to overflow, whatever the operations contain.
    package fileprivate(set) var earned: Int128 = 0
    package fileprivate(set) var spent: Int128 = 0
    package fileprivate(set) var returned: Int128 = 0
    package fileprivate(set) var claimed: Int128 = 0
  }

  private var log: OperationLog
  /// The positions of this list in the log.
  private var places: Range<Int>
  /// By currency, without those that have no operations.
  package private(set) var sums: [String: Sums]
  /// How many of each good the operations granted, without those of claims, which nobody has before they are paid.
  package private(set) var goods: [String: Int]

  package init() { (log, places, sums, goods) = (OperationLog(), 0..<0, [:], [:]) }

  /// How many operations were accessed, copied or looked up, one by one, in this list and those that share its log: the
  /// cost of an operation, measured without a clock.
  package var visits: Int { log.visits }

  // MARK: Looking up

  package func contains(_ id: OperationID) -> Bool { place(of: id) != nil }

  /// Returns the operation of that id; nil if it isn't here.
  package func operation(_ id: OperationID) -> WalletOperation? { place(of: id).map { log[$0] } }

  package func containsClaim(_ key: String) -> Bool { log.place(ofClaim: key).map(places.contains) ?? false }

  private func place(of id: OperationID) -> Int? { log.place(of: id).flatMap { places.contains($0) ? $0 : nil } }

  // MARK: Changes

  /// How a list has changed: operations were removed at its front and appended at its end.
  package struct Shift {
    package var dropped: Int
    package var appended: Slice<OperationList>
  }

  /// Returns how the list differs from `before`; nil if it does so by more than a shift, or if finding out would take a
  /// look at every operation.
  package func shift(since before: OperationList) -> Shift? {
    guard log === before.log, places.lowerBound >= before.places.lowerBound,
      places.upperBound >= before.places.upperBound,
      places.lowerBound <= before.places.upperBound
    else { return nil }
    return Shift(
      dropped: places.lowerBound - before.places.lowerBound,
      appended: self[(before.places.upperBound - places.lowerBound)...])
  }

  package mutating func append(_ operation: WalletOperation) {
    if !log.append(operation, at: places.upperBound) {
      takeOwnLog(Array(self))
      _ = log.append(operation, at: places.upperBound)
    }
    places = places.lowerBound..<places.upperBound + 1
    count(operation, 1)
  }

  private mutating func count(_ operation: WalletOperation, _ sign: Int) {
    func change(_ currency: String, _ change: (inout Sums) -> Void) {
      var its = sums[currency] ?? Sums()
      its.count += sign
      change(&its)
      sums[currency] = its.count == 0 ? nil : its
    }
    if operation.effect != .claim {
      for good in operation.goods {
        let count = goods[good, default: 0] + sign
        goods[good] = count == 0 ? nil : count
      }
    }
    let amount = Int128(sign) * Int128(operation.amount)
    switch operation.effect {
    case .credit: change(operation.currency) { $0.earned += amount }
    case .debit: change(operation.currency) { $0.spent += amount }
    case .giveBack: change(operation.currency) { $0.returned += amount }
    case .claim: change(operation.currency) { $0.claimed += amount }
    case .convert(let other, let received):
      change(operation.currency) { $0.spent += amount }
      change(other) { $0.earned += Int128(sign) * Int128(received) }
    }
  }

  private mutating func dropFirst(_ count: Int) {
    for operation in prefix(count) { self.count(operation, -1) }
    places = places.lowerBound + count..<places.upperBound
    // What was removed must not stay in memory forever. The log is copied when more than half of it is unused, so that
    // copying costs no more than removing.
    if places.lowerBound > places.count { takeOwnLog(Array(self)) }
  }

  private mutating func takeOwnLog(_ operations: [WalletOperation]) {
    log = OperationLog(operations, visits: log.visits)
    places = operations.indices
  }
}

extension OperationList: RandomAccessCollection, RangeReplaceableCollection, ExpressibleByArrayLiteral {
  package var startIndex: Int { 0 }
  package var endIndex: Int { places.count }

  package subscript(position: Int) -> WalletOperation {
    precondition(position >= 0 && position < places.count, "an index outside of the list")
    return log[places.lowerBound + position]
  }

  package init(arrayLiteral elements: WalletOperation...) { self.init(elements) }

  package mutating func replaceSubrange(_ range: Range<Int>, with others: some Collection<WalletOperation>) {
    if range == endIndex..<endIndex {
      for operation in others { append(operation) }
    } else if range.lowerBound == startIndex, others.isEmpty {
      dropFirst(range.count)
    } else {
      var operations = Array(self)
      operations.replaceSubrange(range, with: others)
      takeOwnLog(operations)
      (sums, goods) = ([:], [:])
      for operation in operations { count(operation, 1) }
    }
  }
}

extension OperationList: Hashable, Codable {
  package static func == (left: OperationList, right: OperationList) -> Bool {
    guard left.count == right.count else { return false }
    return left.log === right.log && left.places == right.places || left.elementsEqual(right)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(count)
    for operation in self { hasher.combine(operation.id) }
  }

  package init(from decoder: any Decoder) throws { self.init(try [WalletOperation](from: decoder)) }

  package func encode(to encoder: any Encoder) throws { try Array(self).encode(to: encoder) }
}

/// The storage that lists share: operations that are only ever appended, and the position of each. What is at a
/// position never changes.
private final class OperationLog: Sendable {
  private struct Content {
    var operations: [WalletOperation] = []
    /// The last position of each operation.
    var places: [OperationID: Int] = [:]
    /// The last position of each claim's key.
    var claims: [String: Int] = [:]
    var visits = 0

    mutating func append(_ operation: WalletOperation) {
      places[operation.id] = operations.count
      if let key = operation.kind.key { claims[key] = operations.count }
      operations.append(operation)
      visits += 1
    }
  }

  private let content: Mutex<Content>

  init() { content = Mutex(Content()) }

  init(_ operations: [WalletOperation], visits: Int) {
    var content = Content(visits: visits)
    content.operations.reserveCapacity(operations.count)
    content.places.reserveCapacity(operations.count)
    for operation in operations { content.append(operation) }
    self.content = Mutex(content)
  }

  var visits: Int { content.withLock { $0.visits } }

  subscript(place: Int) -> WalletOperation {
    content.withLock { content in
      content.visits += 1
      return content.operations[place]
    }
  }

  /// Appends an operation; returns false, and changes nothing, if there is one at that position already.
  func append(_ operation: WalletOperation, at place: Int) -> Bool {
    content.withLock { content in
      guard content.operations.count == place else { return false }
      content.append(operation)
      return true
    }
  }

  func place(of id: OperationID) -> Int? {
    content.withLock { content in
      content.visits += 1
      return content.places[id]
    }
  }

  func place(ofClaim key: String) -> Int? {
    content.withLock { content in
      content.visits += 1
      return content.claims[key]
    }
  }
}
