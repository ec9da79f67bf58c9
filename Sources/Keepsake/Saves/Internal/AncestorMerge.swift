import KeepsakeArchive
import KeepsakeReplication

/// The common ancestor of several saves of a slot, as one value: the base that they are merged against.
///
/// Several ancestors are merged into one, in the same way as the devices that continued from them did it: the best
/// first, each against what it has in common with those before it, recursively.
struct AncestorMerge<Value> {
  let slot: Slot<Value>
  let reading: SlotReading
  let context: Any?
  /// Called for each ancestor that this program can't decode: the sides are merged without it.
  let reportUnreadable: (VersionID, any Error) -> Void
  /// The results, by the versions that they were merged from. A merge only reads its base, so one value serves all.
  private var made: [[VersionID]: Value?] = [:]

  init(
    slot: Slot<Value>, reading: SlotReading, context: Any?, reportUnreadable: @escaping (VersionID, any Error) -> Void
  ) {
    self.slot = slot
    self.reading = reading
    self.context = context
    self.reportUnreadable = reportUnreadable
  }

  /// Returns the common ancestor of all sides; nil if none is on this device, or none can be read.
  mutating func common() -> Value? { value(of: reading.mergeAncestors.common) }

  /// Returns the common ancestor of one version and those merged before it.
  mutating func ancestor(of id: VersionID, with merged: [VersionID]) -> Value? {
    value(of: reading.mergeAncestors.nearest(of: id, with: merged))
  }

  private mutating func value(of ids: [VersionID]) -> Value? {
    if let known = made[ids] { return known }
    var value: Value?
    var merged: [VersionID] = []
    for id in ids {
      guard let side = reading.older[id] else { continue }
      let next: Value
      do {
        next = try SlotDecoding.decode(side.bytes, in: slot, context: context)
      } catch {
        // Continues as if it weren't on this device.
        reportUnreadable(id, error)
        continue
      }
      if var whole = value {
        let base = ancestor(of: id, with: merged)
        MergeSession.run { slot.coding.merge(&whole, from: next, ancestor: base) }
        value = whole
      } else {
        value = next
        // If the type can't be merged, one ancestor is used for all.
        guard slot.coding.hasMergeRules else { break }
      }
      merged.append(id)
    }
    made[ids] = .some(value)
    return value
  }
}
