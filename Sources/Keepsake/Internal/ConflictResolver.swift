import KeepsakeArchive
import KeepsakeReplication

/// Makes one value of what stands in a slot, as its policy says. Writes nothing.
struct ConflictResolver<Value: Archivable> {
  let slot: Slot<Value>
  let reading: SlotReading
  let context: Any?

  /// What a save of the value replaces: all that went into it. With `ask`, only what was shown; a choice replaces the rest.
  ///
  /// A policy that chooses passes over sides without reading them. What this program can't read at all, most likely because a newer
  /// one wrote it, is not its to replace: it stays beside the save for the program that can. Costs decoding those sides.
  var basis: [VersionID] {
    guard reading.sides.count > 1, let shown = reading.sides.first else { return reading.basis }
    if case .ask = slot.policy.kind { return [shown.version.record.id] }
    guard choosesOne else { return reading.basis }
    let unread = Set(reading.sides.dropFirst().filter { !isReadable($0) }.map(\.version.record.id))
    return reading.basis.filter { !unread.contains($0) }
  }

  /// The policy takes the first side as it is, so that the others need not have been decoded.
  private var choosesOne: Bool {
    switch slot.policy.kind {
    case .mostProgress, .longestPlayed, .newest: true
    case .automatic: !Value.archiveHasMergeRules
    case .ask, .combining: false
    }
  }

  /// Why it can't be read doesn't matter here: the side is left alone, and `conflict` tells.
  private func isReadable(_ side: SlotReading.Side) -> Bool { (try? decode(side)) != nil }

  func value() throws -> Value? {
    guard let first = reading.sides.first else { return nil }
    guard reading.sides.count > 1 else { return try decode(first) }
    switch slot.policy.kind {
    case .mostProgress, .longestPlayed, .newest, .ask: return try decode(first)
    case .combining(let combine):
      return try combine(
        ConflictingSaves(
          values: try reading.sides.map(decode), versions: reading.sides.map(\.summary),
          ancestor: try ancestor()))
    case .automatic:
      return Value.archiveHasMergeRules ? try merged(reading.sides, ancestor: ancestor()) : try decode(first)
    }
  }

  func decode(_ side: SlotReading.Side) throws -> Value {
    try Archive.decode(Value.self, from: side.bytes, context: context)
  }

  /// What all sides came from; several are merged first, where the type can be merged.
  func ancestor() throws -> Value? {
    guard let first = reading.ancestors.first else { return nil }
    return Value.archiveHasMergeRules ? try merged(reading.ancestors, ancestor: nil) : try decode(first)
  }

  /// All sides as one, the best first: the order is the same on every device.
  private func merged(_ sides: [SlotReading.Side], ancestor: Value?) throws -> Value? {
    var result: Value?
    for side in sides {
      let next = try decode(side)
      if result == nil { result = next } else { result?.mergeFields(from: next, ancestor: ancestor) }
    }
    return result
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
