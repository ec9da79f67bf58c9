import Synchronization

/// Operations that the bank doesn't know yet, oldest first. A game without a cloud keeps all that were ever made, so that appending one,
/// taking some away at the front, looking one up and adding up a currency cost the same however many there are.
///
/// A value. Copies that only differ in where they begin and end share one log, as do what is committed, what is about to be, and what
/// somebody reads meanwhile. A copy that goes on where another one went on already, as after a commit that failed, gets a log of its own, which
/// costs a pass over its operations; so does every other change in the middle.
///
/// Takes some 200 bytes an operation, and its texts of more than 15 bytes beside them.
package struct OperationList: Sendable {
  /// What the operations of one currency come to.
  package struct Sums: Hashable, Sendable {
    package fileprivate(set) var count = 0
    // As wide as this none can overflow, whatever stands in the operations.
    package fileprivate(set) var earned: Int128 = 0
    package fileprivate(set) var spent: Int128 = 0
    package fileprivate(set) var returned: Int128 = 0
    package fileprivate(set) var claimed: Int128 = 0
  }

  private var log: OperationLog
  /// Where this list stands in the log.
  private var places: Range<Int>
  /// By currency; none of those without operations.
  package private(set) var sums: [String: Sums]

  package init() { (log, places, sums) = (OperationLog(), 0..<0, [:]) }

  /// How many operations were looked at, copied or looked up, one by one, in this list and those that share its log: what an operation
  /// costs, without a clock.
  package var visits: Int { log.visits }

  // MARK: Looking up

  package func contains(_ id: OperationID) -> Bool { place(of: id) != nil }

  /// The operation of that id; nil if it isn't here.
  package func operation(_ id: OperationID) -> WalletOperation? { place(of: id).map { log[$0] } }

  package func containsClaim(_ key: String) -> Bool { log.place(ofClaim: key).map(places.contains) ?? false }

  private func place(of id: OperationID) -> Int? { log.place(of: id).flatMap { places.contains($0) ? $0 : nil } }

  // MARK: Changes

  /// What became of a list: some were taken away at its front, some came at its end.
  package struct Shift {
    package var dropped: Int
    package var appended: Slice<OperationList>
  }

  /// What became of `before`, if no more than a shift; nil also where that would have to be found out by looking at all.
  package func shift(since before: OperationList) -> Shift? {
    guard log === before.log, places.lowerBound >= before.places.lowerBound, places.upperBound >= before.places.upperBound,
      places.lowerBound <= before.places.upperBound
    else { return nil }
    return Shift(
      dropped: places.lowerBound - before.places.lowerBound, appended: self[(before.places.upperBound - places.lowerBound)...])
  }

  package mutating func append(_ operation: WalletOperation) {
    if !log.append(operation, at: places.upperBound) {
      takeOwnLog(Array(self))
      _ = log.append(operation, at: places.upperBound)
    }
    places = places.lowerBound..<places.upperBound + 1
    sums[operation.currency, default: Sums()].count(operation, 1)
  }

  private mutating func dropFirst(_ count: Int) {
    for operation in prefix(count) {
      sums[operation.currency]?.count(operation, -1)
      if sums[operation.currency]?.count == 0 { sums[operation.currency] = nil }
    }
    places = places.lowerBound + count..<places.upperBound
    // What was let go of must not stay for ever; half of it at a time, so that it costs no more than the letting go.
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
      sums = [:]
      for operation in operations { sums[operation.currency, default: Sums()].count(operation, 1) }
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

extension OperationList.Sums {
  fileprivate mutating func count(_ operation: WalletOperation, _ sign: Int) {
    count += sign
    let amount = Int128(sign) * Int128(operation.amount)
    switch operation.effect {
    case .credit: earned += amount
    case .debit: spent += amount
    case .giveBack: returned += amount
    case .claim: claimed += amount
    }
  }
}

/// What lists share: operations that are only ever appended, and where each stands. What stands at a place never changes.
private final class OperationLog: Sendable {
  private struct Content {
    var operations: [WalletOperation] = []
    /// The last place of each.
    var places: [OperationID: Int] = [:]
    /// The last place of each claim's key.
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

  /// False, and nothing is changed, if something stands there already.
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
