/// The set of a class's fields that belong to the references section.
@usableFromInline struct FieldMask {
  /// The first 64 fields, which for nearly every class is all of them.
  @usableFromInline let low: UInt64
  /// All fields, for a class with more than 64; otherwise empty.
  @usableFromInline let rest: [Bool]

  /// Creates an empty set.
  init() { (low, rest) = (0, []) }

  init(_ flags: [Bool]) {
    var low: UInt64 = 0
    for (index, flag) in flags.prefix(64).enumerated() where flag { low |= 1 << UInt64(index) }
    self.low = low
    rest = flags.count > 64 && flags.contains(true) ? flags : []
  }

  var isEmpty: Bool { low == 0 && rest.isEmpty }

  @inlinable @inline(__always) func contains(_ index: Int) -> Bool {
    if index < 64 { return (low &>> UInt64(truncatingIfNeeded: index)) & 1 == 1 }
    return index < rest.count && rest[index]
  }
}
