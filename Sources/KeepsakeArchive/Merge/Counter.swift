/// A number that several devices can raise and lower concurrently without losing a change.
///
/// Each writer has its own entry, which only that writer changes; the value is their sum. A change is pending at first.
/// In the bytes that `Archive.encode(_:writer:)` returns, it is part of that writer's entry. In the counter itself it
/// stays pending, so encoding again as the same writer doesn't count it twice.
///
///     @Archivable struct World { @Merge(.counter) var kills = Counter() }
///     world.kills += 1
///
/// Two devices must not use the same writer number, because merging then keeps only the greater change.
public struct Counter: Equatable, Hashable, Sendable, CustomStringConvertible {
  struct Entry: Equatable, Hashable {
    var plus: UInt64
    var minus: UInt64
  }

  private(set) var entries: [UInt64: Entry] = [:]
  /// The changes since the counter was decoded or created.
  private(set) var pending = Entry(plus: 0, minus: 0)

  /// Creates a counter at zero.
  public init() {}

  /// Creates a counter with an initial value, which is a pending change.
  ///
  /// - Parameter value: The initial value.
  public init(_ value: Int) { add(value) }

  /// The sum over all writers, clamped to `-Int.max...Int.max`.
  public var value: Int {
    var up = pending.plus
    var down = pending.minus
    for entry in entries.values {
      up = Self.sum(up, entry.plus)
      down = Self.sum(down, entry.minus)
    }
    return up >= down ? Int(clamping: up - down) : -Int(clamping: down - up)
  }

  /// Whether there is a pending change: one since the counter was decoded or created.
  public var hasPendingChange: Bool { pending != Entry(plus: 0, minus: 0) }

  /// Changes the counter. The change is pending.
  ///
  /// - Parameter amount: The amount to add; a negative amount lowers the counter. Sums are clamped, so this never
  ///   traps.
  public mutating func add(_ amount: Int) {
    if amount >= 0 {
      pending.plus = Self.sum(pending.plus, UInt64(amount))
    } else {
      pending.minus = Self.sum(pending.minus, UInt64(amount.magnitude))
    }
  }

  /// Raises the counter.
  ///
  /// - Parameters:
  ///   - counter: The counter.
  ///   - amount: The amount to add, as for `add(_:)`.
  public static func += (counter: inout Counter, amount: Int) { counter.add(amount) }

  /// Lowers the counter.
  ///
  /// - Parameters:
  ///   - counter: The counter.
  ///   - amount: The amount to subtract; a negative amount raises the counter.
  public static func -= (counter: inout Counter, amount: Int) {
    if amount >= 0 {
      counter.pending.minus = sum(counter.pending.minus, UInt64(amount))
    } else {
      counter.pending.plus = sum(counter.pending.plus, UInt64(amount.magnitude))
    }
  }

  /// Merges the other side's saved entries into this counter.
  ///
  /// For each entry, the side that changed it wins; if both sides changed it, the greater numbers do. The other side's
  /// pending change is left out, because that side will save it; this side's stays pending.
  ///
  /// Merge counters that were just decoded, as a merge of saved games does: a change that is still pending in this
  /// counter, but was saved and is in an entry of `other`, counts twice.
  ///
  /// - Parameters:
  ///   - other: The other side's counter.
  ///   - ancestor: The last state that both sides had in common, if it is known. Without it, the greater numbers win in
  ///     every entry that both sides have.
  public mutating func merge(_ other: Counter, ancestor: Counter? = nil) {
    for writer in Set(entries.keys).union(other.entries.keys) {
      let old = ancestor?.entries[writer]
      let (mine, theirs) = (entries[writer], other.entries[writer])
      if mine == theirs || theirs == old { continue }
      entries[writer] = mine == old ? theirs : Self.greater(mine, theirs)
    }
  }

  /// The value as text.
  public var description: String { String(value) }

  /// The greater numbers of two entries. A side without one, whose counter is new, counts as zero.
  private static func greater(_ mine: Entry?, _ theirs: Entry?) -> Entry {
    Entry(plus: max(mine?.plus ?? 0, theirs?.plus ?? 0), minus: max(mine?.minus ?? 0, theirs?.minus ?? 0))
  }

  private static func sum(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let (result, overflow) = a.addingReportingOverflow(b)
    return overflow ? .max : result
  }

  private func folded(into writer: UInt64) -> [UInt64: Entry] {
    guard hasPendingChange else { return entries }
    var result = entries
    let old = result[writer] ?? Entry(plus: 0, minus: 0)
    result[writer] = Entry(plus: Self.sum(old.plus, pending.plus), minus: Self.sum(old.minus, pending.minus))
    return result
  }
}

extension Counter: Archivable {
  public static var archiveName: String { "Counter" }
  public static var archiveIsKeyed: Bool { false }
  public static var archiveHasMergeRules: Bool { true }
  public mutating func mergeFields(from other: Counter, ancestor: Counter?) { merge(other, ancestor: ancestor) }
  public static func archiveFields(_ fields: ArchiveFieldList) { fields.field("entries", [UInt64: SIMD2<UInt64>].self) }

  public func encode(to writer: inout ArchiveWriter) throws {
    try writer.writeField(folded(into: writer.writer).mapValues { SIMD2($0.plus, $0.minus) })
  }

  public init(from reader: inout ArchiveReader) throws {
    var fields = try reader.enter(Counter.self)
    let saved: [UInt64: SIMD2<UInt64>] = try reader.field(0, &fields)
    try reader.leave(&fields)
    entries = saved.mapValues { Entry(plus: $0.x, minus: $0.y) }
  }
}
