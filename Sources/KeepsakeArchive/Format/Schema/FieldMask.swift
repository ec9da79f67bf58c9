/// Which fields of a class stand in the references section.
@usableFromInline struct FieldMask {
  /// The first 64 fields, which is all of them for nearly every class.
  @usableFromInline let low: UInt64
  /// All fields of a class with more.
  @usableFromInline let rest: [Bool]

  /// No field.
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
