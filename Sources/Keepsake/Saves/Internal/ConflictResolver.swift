package import KeepsakeArchive
package import KeepsakeReplication

/// Makes one value of what stands in a slot, as its policy says. Writes nothing.
///
/// What this program can't read, most likely because a newer one wrote it, neither keeps the rest from being loaded nor is its to replace: it stays beside
/// the next save for the program that can. Why it can't be read doesn't matter for that.
package struct ConflictResolver<Value: Archivable> {
  package struct View {
    package var value: Value?
    /// What a save of the value replaces: all that went into it. With `ask`, only what was shown; a choice replaces the rest.
    package var parents: [VersionID]
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

  /// - Parameter reportUnreadableAncestor: Is told of a version that the sides come from and that this program can't decode: they are merged without it.
  package init(
    slot: Slot<Value>, reading: SlotReading, context: Any?, reportUnreadableAncestor: @escaping (VersionID, any Error) -> Void
  ) {
    self.slot = slot
    self.reading = reading
    self.context = context
    self.reportUnreadableAncestor = reportUnreadableAncestor
  }

  /// The value with what its save replaces. A policy that chooses passes over sides without reading them for the value, but has to decode them for the basis.
  package func view() throws -> View {
    guard let first = reading.sides.first else { return View(value: nil, parents: reading.parents) }
    guard reading.sides.count > 1 else { return View(value: try decode(first), parents: reading.parents) }
    switch slot.policy.kind {
    case .ask: return View(value: try decode(first), parents: [first.version.record.id])
    case .mostProgress, .longestPlayed, .newest: return try chosen(first)
    case .automatic:
      guard Value.archiveHasMergeRules else { return try chosen(first) }
      return try combined { merged($0) }
    case .combining(let combine):
      return try combined { sides in
        try combine(
          ConflictingSaves(values: sides.map(\.value), versions: sides.map(\.side.summary), ancestor: ancestor()))
      }
    }
  }

  private func chosen(_ side: SlotReading.Side) throws -> View {
    let value = try decode(side)
    let passedOver = decode(reading.sides.dropFirst())
    return View(value: value, parents: parents(without: passedOver.unreadable.map(\.side)))
  }

  private func combined(_ combine: ([Readable]) throws -> Value) throws -> View {
    let decoded = try decoded()
    let value = decoded.readable.count == 1 ? decoded.readable[0].value : try combine(decoded.readable)
    return View(value: value, parents: parents(without: decoded.unreadable.map(\.side)))
  }

  func parents(without unreadable: [SlotReading.Side]) -> [VersionID] {
    let left = Set(unreadable.map(\.version.record.id))
    return reading.parents.filter { !left.contains($0) }
  }

  /// The sides that can be read, at least one, and those that can't. Throws what the first one threw if none can.
  func decoded() throws -> (readable: [Readable], unreadable: [Unreadable]) {
    let decoded = decode(reading.sides[...])
    if decoded.readable.isEmpty, let first = decoded.unreadable.first { throw first.error }
    return decoded
  }

  private func decode(_ sides: ArraySlice<SlotReading.Side>) -> (readable: [Readable], unreadable: [Unreadable]) {
    var readable: [Readable] = []
    var unreadable: [Unreadable] = []
    for side in sides {
      do {
        readable.append(Readable(side: side, value: try decode(side)))
      } catch {
        unreadable.append(Unreadable(side: side, error: error))
      }
    }
    return (readable, unreadable)
  }

  private func decode(_ side: SlotReading.Side) throws -> Value {
    try Archive.decode(Value.self, from: side.bytes, context: context)
  }

  // MARK: Merging

  /// What all sides came from, if it is here and can be read; several are merged first, where the type can be merged.
  func ancestor() -> Value? {
    var ancestors = AncestorMerge<Value>(reading: reading, context: context, reportUnreadable: reportUnreadableAncestor)
    return ancestors.common()
  }

  /// All sides as one, the best first: the order is the same on every device. Each is merged against what it has in common with those before it.
  private func merged(_ sides: [Readable]) -> Value {
    var ancestors = AncestorMerge<Value>(reading: reading, context: context, reportUnreadable: reportUnreadableAncestor)
    var value = sides[0].value
    var merged = [sides[0].side.version.record.id]
    for next in sides.dropFirst() {
      let id = next.side.version.record.id
      let ancestor = ancestors.ancestor(of: id, with: merged)
      MergeSession.run { value.mergeFields(from: next.value, ancestor: ancestor) }
      merged.append(id)
    }
    return value
  }
}

extension ConflictPolicy {
  /// The order in which heads are offered.
  var order: SavePolicy {
    switch kind {
    case .longestPlayed: .longestPlayed
    case .newest: .newest
    case .automatic, .mostProgress, .ask, .combining: .mostProgress
    }
  }
}
