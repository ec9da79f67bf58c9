/// Goes through a value and all that is inside of it, in order and without recursion: archives may nest deeper than a stack reaches.
package struct ValueWalk: IteratorProtocol {
  /// Where a value stands in the one around it.
  package enum Label: Equatable {
    case none
    case field(String)
    case element(Int)
    case key(Int)
    /// The value to the key of the same number.
    case value(Int)
  }

  package enum Event {
    /// A value; if it has children, they follow, and then an `end`.
    case value(ArchiveValue, Label)
    /// Stands for the elements or pairs of a list that are left out; tells how many there are in all.
    case more(Int)
    case end
  }

  private var first: ArchiveValue?
  /// What is open, with the number of its next child, and of the first one that is left out.
  private var open: [(value: ArchiveValue, next: Int, shown: Int)] = []
  private let longest: Int

  /// - Parameter longest: Elements or pairs of each list that are visited.
  package init(_ value: ArchiveValue, longest: Int = .max) {
    first = value
    self.longest = longest
  }

  /// How many values stand around what came last.
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

  /// After a value with children: passes over them and over their end.
  package mutating func skipChildren() {
    open.removeLast()
  }

  private mutating func enter(_ value: ArchiveValue, _ label: Label) -> Event {
    depth = open.count
    if let count = value.childCount {
      let step = if case .dictionary = value { 2 } else { 1 }
      open.append((value, 0, value.listCount == nil || count / step <= longest ? count : longest * step))
    }
    return .value(value, label)
  }
}

extension ArchiveValue {
  /// How many values stand directly in this one; nil for one that can't have any.
  package var childCount: Int? {
    switch self {
    case .vector(let values), .array(let values), .set(let values): values.count
    case .dictionary(let pairs): 2 * pairs.count
    case .structure(_, let fields), .enumeration(_, _, let fields): fields.count
    default: nil
    }
  }

  /// Elements or pairs of a list; nil for what is none, and so is shown whole.
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

  /// Whether it is written on one line as a matter of course.
  package var isPlain: Bool {
    switch self {
    case .structure, .array, .set, .dictionary: false
    case .enumeration(_, _, let fields): fields.isEmpty
    default: true
    }
  }
}
