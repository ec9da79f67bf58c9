/// A set whose elements can be removed again, as held by a cell of the rule `set`.
///
/// Each insertion of an element has a unique name: the writer, and the next of its numbers. An element is in the set as
/// long as one of its insertions is present. Removing it marks as gone those of its insertions that this device has
/// seen, and only those: so an element that another device inserts meanwhile stays.
///
/// For a state an insertion is unknown, present or gone, in this order, and a join takes the later of the two. An
/// insertion that is gone leaves only its number, and the numbers of a writer form ranges, so inserting and removing
/// forever needs no more room. What stays is one entry for each writer that ever inserted something.
package struct ObservedSet: Hashable, Sendable {
  /// The insertions of one writer.
  package struct Additions: Hashable, Sendable {
    /// The numbers that are known here. Those that aren't in `present` are gone.
    package private(set) var seen: NumberRanges
    /// The elements of the insertions that are present.
    package private(set) var present: [UInt64: Scalar]

    /// Creates insertions; the numbers of `present` are added to `seen`.
    package init(seen: NumberRanges, present: [UInt64: Scalar] = [:]) {
      let unseen = present.keys.filter { !seen.contains($0) }
      self.seen = unseen.isEmpty ? seen : seen.union(NumberRanges(unseen.map { $0...$0 }))
      self.present = present
    }

    func joined(with other: Additions) -> Additions {
      var present = present.filter { other.present[$0.key] != nil || !other.seen.contains($0.key) }
      for (number, element) in other.present {
        if let known = present[number] {
          // Two elements under one name: no program writes that, but the result has to be the same everywhere.
          if known < element { present[number] = element }
        } else if !seen.contains(number) {
          present[number] = element
        }
      }
      return Additions(seen: seen.union(other.seen), present: present)
    }
  }

  package private(set) var writers: [WriterID: Additions]

  package init(_ writers: [WriterID: Additions] = [:]) { self.writers = writers.filter { !$0.value.seen.isEmpty } }

  /// The elements in the set.
  package var elements: Set<Scalar> {
    var elements: Set<Scalar> = []
    for additions in writers.values { elements.formUnion(additions.present.values) }
    return elements
  }

  package func joined(with other: ObservedSet) -> ObservedSet {
    var joined = self
    for (writer, additions) in other.writers {
      joined.writers[writer] = joined.writers[writer]?.joined(with: additions) ?? additions
    }
    return joined
  }

  // MARK: Changes

  /// Returns what has to be joined to insert the elements: insertions of those that aren't in the set. Nil if the
  /// writer has no numbers left.
  func adding(_ elements: Set<Scalar>, by writer: WriterID) -> ObservedSet? {
    let missing = elements.subtracting(self.elements).sorted()
    guard !missing.isEmpty else { return ObservedSet() }
    let last = writers[writer]?.seen.bounds?.upperBound ?? 0
    guard last <= Cursor.maximumSeq - UInt64(missing.count) else { return nil }
    var present: [UInt64: Scalar] = [:]
    for (index, element) in missing.enumerated() { present[last + 1 + UInt64(index)] = element }
    return ObservedSet([
      writer: Additions(seen: NumberRanges([last + 1...last + UInt64(missing.count)]), present: present)
    ])
  }

  /// Returns what has to be joined to remove the elements: those of their insertions that are present here, as gone.
  func removing(_ elements: Set<Scalar>) -> ObservedSet {
    ObservedSet(
      writers.compactMapValues { additions in
        let gone = additions.present.filter { elements.contains($0.value) }.keys
        return gone.isEmpty ? nil : Additions(seen: NumberRanges(gone.map { $0...$0 }))
      })
  }

  // MARK: Limits

  /// The approximate size in bytes.
  package var size: Int {
    writers.values.reduce(0) { sum, additions in
      sum + 8 + additions.seen.ranges.count * 16 + additions.present.values.reduce(0) { $0 + $1.size + 16 }
    }
  }

  /// Why the set can't be kept or sent; nil if it can.
  package var objection: String? {
    for additions in writers.values {
      guard let bounds = additions.seen.bounds, bounds.lowerBound >= 1, bounds.upperBound <= Cursor.maximumSeq else {
        return "the number of an addition is out of range"
      }
      guard additions.present.values.allSatisfy(\.isOrdered) else { return "not a number" }
    }
    return nil
  }
}

// {"set": [{"writer": "...", "seen": [[1, 4]], "standing": [{"number": 2, "element": {"string": "rose"}}]}]}, sorted by
// writer and number.
extension ObservedSet: Codable {
  private struct Entry: Codable {
    struct Addition: Codable {
      var number: UInt64
      var element: Scalar
    }

    var writer: WriterID
    var seen: [[UInt64]]
    var present: [Addition]?

    // The names on the wire; one is older than the property's name.
    private enum CodingKeys: String, CodingKey {
      case writer, seen
      case present = "standing"
    }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    var writers: [WriterID: Additions] = [:]
    for entry in try container.decode([Entry].self) {
      let ranges = try entry.seen.map { pair in
        guard pair.count == 2, pair[0] <= pair[1] else {
          throw DecodingError.dataCorruptedError(
            in: container,
            debugDescription: "expected the first and the last number of a range, found \(pair.prefix(4))")
        }
        return pair[0]...pair[1]
      }
      // A writer that is listed twice has seen both, as after a join; likewise a number.
      let present = Dictionary(
        (entry.present ?? []).map { ($0.number, $0.element) }, uniquingKeysWith: { Swift.max($0, $1) })
      let additions = Additions(seen: NumberRanges(ranges), present: present)
      writers[entry.writer] = writers[entry.writer]?.joined(with: additions) ?? additions
    }
    self.init(writers)
  }

  package func encode(to encoder: any Encoder) throws {
    let entries = writers.sorted { $0.key < $1.key }.map { writer, additions in
      Entry(
        writer: writer, seen: additions.seen.ranges.map { [$0.lowerBound, $0.upperBound] },
        present: additions.present.isEmpty
          ? nil : additions.present.sorted { $0.key < $1.key }.map { Entry.Addition(number: $0.key, element: $0.value) }
      )
    }
    var container = encoder.singleValueContainer()
    try container.encode(entries)
  }
}
