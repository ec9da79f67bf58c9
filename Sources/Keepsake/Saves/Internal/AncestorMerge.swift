import KeepsakeArchive
import KeepsakeReplication

/// What several saves of a slot come from, as one value: what a merge of them is made against.
///
/// Several ancestors are made one as it was done by the devices that went on from them: the best first, each against what it and those before
/// it come from in turn.
struct AncestorMerge<Value: Archivable> {
  let reading: SlotReading
  let context: Any?
  /// Is told of each ancestor that this program can't decode: the sides are merged without it.
  let reportUnreadable: (VersionID, any Error) -> Void
  /// By the versions that were made one. A merge only reads what it is made against, so one value serves them all.
  private var made: [[VersionID]: Value?] = [:]

  init(reading: SlotReading, context: Any?, reportUnreadable: @escaping (VersionID, any Error) -> Void) {
    self.reading = reading
    self.context = context
    self.reportUnreadable = reportUnreadable
  }

  /// What all sides come from; nil where nothing of it is here, or can be read.
  mutating func common() -> Value? { value(of: reading.mergeAncestors.common) }

  /// The same for one version and those merged before it.
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
        next = try Archive.decode(Value.self, from: side.bytes, context: context)
      } catch {
        // As if it weren't here.
        reportUnreadable(id, error)
        continue
      }
      if var whole = value {
        let base = ancestor(of: id, with: merged)
        MergeSession.run { whole.mergeFields(from: next, ancestor: base) }
        value = whole
      } else {
        value = next
        // One of them stands for all where nothing can be merged.
        guard Value.archiveHasMergeRules else { break }
      }
      merged.append(id)
    }
    made[ids] = .some(value)
    return value
  }
}
