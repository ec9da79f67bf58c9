import KeepsakeArchive
package import KeepsakeReplication

/// Makes one value of the heads of a slot, by its policy. Writes nothing.
///
/// A side that this program can't read, most likely because a newer one wrote it, doesn't prevent the others from being
/// loaded, whatever the policy and wherever it ranks, and the next save doesn't replace it: it stays beside that save,
/// for the program that can read it. The reason why it can't be read doesn't matter.
package struct ConflictResolver<Value> {
  package struct View {
    package var value: Value?
    /// The versions that a save of the value replaces: all that went into it. With `ask`, only the one that was shown;
    /// a choice replaces the rest.
    package var parents: [VersionID]
    /// The sides that can't be read and were left out.
    var unreadable: [Unreadable] = []
  }
  struct Readable {
    var side: SlotReading.Side
    var value: Value
  }
  struct Unreadable {
    var side: SlotReading.Side
    var error: any Error
  }

  let slot: Slot<Value>
  let reading: SlotReading
  let context: Any?
  private let reportUnreadableAncestor: (VersionID, any Error) -> Void

  /// - Parameter reportUnreadableAncestor: Called for a common ancestor that this program can't decode: the sides are
  ///   merged without it.
  package init(
    slot: Slot<Value>, reading: SlotReading, context: Any?,
    reportUnreadableAncestor: @escaping (VersionID, any Error) -> Void
  ) {
    self.slot = slot
    self.reading = reading
    self.context = context
    self.reportUnreadableAncestor = reportUnreadableAncestor
  }

  /// Returns the value, and the versions that a save of it replaces. Throws the first side's error if none can be read.
  ///
  /// A policy that chooses one side doesn't need the others for the value, but has to decode them to know whether the
  /// save may replace them. `ask` decodes no side after the one that it shows.
  package func view() throws -> View {
    guard let first = reading.sides.first else { return View(value: nil, parents: reading.parents) }
    guard reading.sides.count > 1 else { return View(value: try decode(first), parents: reading.parents) }
    switch slot.policy.kind {
    case .ask:
      let decoded = try decoded(atMost: 1)
      let shown = decoded.readable[0]
      return View(value: shown.value, parents: [shown.side.version.record.id], unreadable: decoded.unreadable)
    case .mostProgress, .longestPlayed, .newest: return try combined { $0[0].value }
    case .automatic: return try combined { slot.coding.hasMergeRules ? merged($0) : $0[0].value }
    case .combining(let combine):
      return try combined { sides in
        try combine(
          ConflictingSaves(values: sides.map(\.value), versions: sides.map(\.side.summary), ancestor: ancestor()))
      }
    }
  }

  /// Makes the value of the sides that can be read, the best first.
  private func combined(_ combine: ([Readable]) throws -> Value) throws -> View {
    let decoded = try decoded()
    let value = decoded.readable.count == 1 ? decoded.readable[0].value : try combine(decoded.readable)
    return View(
      value: value, parents: parents(without: decoded.unreadable.map(\.side)), unreadable: decoded.unreadable)
  }

  func parents(without unreadable: [SlotReading.Side]) -> [VersionID] {
    let left = Set(unreadable.map(\.version.record.id))
    return reading.parents.filter { !left.contains($0) }
  }

  /// Returns the sides that can be read, at least one, and those that can't, both the best first. Throws the first
  /// side's error if none can be read.
  ///
  /// - Parameter limit: How many readable sides are enough. The sides after them aren't looked at.
  func decoded(atMost limit: Int = .max) throws -> (readable: [Readable], unreadable: [Unreadable]) {
    var readable: [Readable] = []
    var unreadable: [Unreadable] = []
    for side in reading.sides where readable.count < limit {
      do {
        readable.append(Readable(side: side, value: try decode(side)))
      } catch {
        unreadable.append(Unreadable(side: side, error: error))
      }
    }
    if readable.isEmpty, let first = unreadable.first { throw first.error }
    return (readable, unreadable)
  }

  private func decode(_ side: SlotReading.Side) throws -> Value {
    try SlotDecoding.decode(side.bytes, in: slot, context: context, isCurrent: true)
  }

  // MARK: Merging

  /// Returns the common ancestor of all sides, if it is on this device and can be read. Several are merged first, if
  /// the type can be merged.
  func ancestor() -> Value? {
    var ancestors = AncestorMerge<Value>(
      slot: slot, reading: reading, context: context, reportUnreadable: reportUnreadableAncestor)
    return ancestors.common()
  }

  /// Merges all sides into one, the best first: the order is the same on every device. Each is merged against what it
  /// has in common with those before it.
  private func merged(_ sides: [Readable]) -> Value {
    var ancestors = AncestorMerge<Value>(
      slot: slot, reading: reading, context: context, reportUnreadable: reportUnreadableAncestor)
    var value = sides[0].value
    var merged = [sides[0].side.version.record.id]
    for next in sides.dropFirst() {
      let id = next.side.version.record.id
      let ancestor = ancestors.ancestor(of: id, with: merged)
      MergeSession.run { slot.coding.merge(&value, from: next.value, ancestor: ancestor) }
      merged.append(id)
    }
    return value
  }
}

extension ConflictPolicy {
  /// The order in which heads are ranked.
  var order: SavePolicy {
    switch kind {
    case .longestPlayed: .longestPlayed
    case .newest: .newest
    case .automatic, .mostProgress, .ask, .combining: .mostProgress
    }
  }
}
