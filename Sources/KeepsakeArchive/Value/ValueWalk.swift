/// Traverses a value and everything inside it, in order and without recursion, because archives may nest deeper than
/// the stack allows.
package struct ValueWalk: IteratorProtocol {
  /// The position of a value in its parent.
  package enum Label: Equatable {
    case none
    case field(String)
    case element(Int)
    case key(Int)
    /// The value of the key with the same number.
    case value(Int)
  }

  package enum Event {
    /// A value. If it has children, they follow, and then an `end`.
    case value(ArchiveValue, Label)
    /// Replaces the omitted elements or pairs of a list; contains the total number.
    case more(Int)
    case end
  }

  private var first: ArchiveValue?
  /// The open values, each with the number of its next child, and of the first child that is omitted.
  private var open: [(value: ArchiveValue, next: Int, shown: Int)] = []
  private let longest: Int
  private let isByName: Bool

  /// - Parameters:
  ///   - longest: The number of elements or pairs that are visited in each list.
  ///   - isByName: Whether fields, and pairs whose keys are strings, are visited in the order of their names.
  package init(_ value: ArchiveValue, longest: Int = .max, isByName: Bool = false) {
    first = value
    self.longest = longest
    self.isByName = isByName
  }

  /// The number of ancestors of the last value.
  package private(set) var depth = 0

  package mutating func next() -> Event? {
    if let value = first {
      first = nil
      return enter(value, .none)
    }
    guard let (value, child, shown) = open.last else { return nil }
    guard child < shown else {
      let count = value.childCount ?? 0
      if child < count {
        (open[open.count - 1].next, depth) = (count, open.count)
        return .more(value.listCount ?? count)
      }
      open.removeLast()
      depth = open.count
      return .end
    }
    open[open.count - 1].next = child + 1
    let (label, inner) = value.child(child)
    return enter(inner, label)
  }

  /// Skips the children of the last value and their end. Only after a value with children.
  package mutating func skipChildren() {
    open.removeLast()
  }

  private mutating func enter(_ value: ArchiveValue, _ label: Label) -> Event {
    let value = isByName ? value.byName : value
    depth = open.count
    if let count = value.childCount {
      let step = if case .dictionary = value { 2 } else { 1 }
      open.append((value, 0, value.listCount == nil || count / step <= longest ? count : longest * step))
    }
    return .value(value, label)
  }
}

extension ArchiveValue {
  /// The number of direct children; nil for a value that can't have any.
  package var childCount: Int? {
    switch self {
    case .vector(let values), .array(let values), .set(let values): values.count
    case .dictionary(let pairs): 2 * pairs.count
    case .structure(_, let fields), .enumeration(_, _, let fields): fields.count
    default: nil
    }
  }

  /// The number of elements or pairs of a list; nil for other values, which are always shown whole.
  package var listCount: Int? {
    switch self {
    case .array(let values), .set(let values): values.count
    case .dictionary(let pairs): pairs.count
    default: nil
    }
  }

  /// - Precondition: `index` is below `childCount`.
  package func child(_ index: Int) -> (ValueWalk.Label, ArchiveValue) {
    switch self {
    case .vector(let values), .array(let values), .set(let values): (.element(index), values[index])
    case .dictionary(let pairs):
      index % 2 == 0 ? (.key(index / 2), pairs[index / 2].key) : (.value(index / 2), pairs[index / 2].value)
    case .structure(_, let fields), .enumeration(_, _, let fields): (.field(fields[index].key), fields[index].value)
    default: (.none, self)
    }
  }

  /// Whether it is a dictionary all of whose keys are strings.
  var hasNames: Bool {
    guard case .dictionary(let pairs) = self else { return false }
    return pairs.allSatisfy { if case .string = $0.key { true } else { false } }
  }

  /// The same value with its fields, or its pairs if their keys are strings, in the order of their names.
  var byName: ArchiveValue {
    switch self {
    case .structure(let type, let fields): .structure(type: type, fields.byName)
    case .enumeration(let type, let name, let fields): .enumeration(type: type, case: name, fields.byName)
    case .dictionary(let pairs) where hasNames:
      .dictionary(
        pairs.sorted {
          guard case .string(let one) = $0.key, case .string(let other) = $1.key else { return false }
          return one.utf8.lexicographicallyPrecedes(other.utf8)
        })
    default: self
    }
  }

  /// Whether the value is always written on one line.
  package var isPlain: Bool {
    switch self {
    case .structure, .array, .set, .dictionary: false
    case .enumeration(_, _, let fields): fields.isEmpty
    default: true
    }
  }
}

extension [ArchiveValue.Field] {
  /// The fields in the order of their names: that of Unicode's numbers, as `jq` and other programs sort them.
  var byName: [ArchiveValue.Field] { sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) } }
}
