/// Identifies a cell within a container: a collection (`progress`, `scores`, `preferences`) and a key in it.
package struct CellKey: Hashable, Comparable, Sendable, CustomStringConvertible {
  package var collection: String
  package var key: String

  package init(collection: String, key: String) {
    self.collection = collection
    self.key = key
  }

  package var description: String { "\(collection)/\(key)" }

  package static func < (left: Self, right: Self) -> Bool {
    left.collection.utf8.elementsEqual(right.collection.utf8)
      ? left.key.utf8.lexicographicallyPrecedes(right.key.utf8)
      : left.collection.utf8.lexicographicallyPrecedes(right.collection.utf8)
  }

  // Compares bytes, as databases do: two spellings that Unicode considers equal are two keys everywhere, not only in
  // some places.
  package static func == (left: Self, right: Self) -> Bool {
    left.key.utf8.elementsEqual(right.key.utf8) && left.collection.utf8.elementsEqual(right.collection.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    // Canonically equal strings have the same hash, which is coarser than equality of bytes and therefore allowed.
    hasher.combine(collection)
    hasher.combine(key)
  }
}

/// The state of a cell: a value that only grows under its rule, in a generation that only an explicit reset raises.
package struct CellState: Hashable, Sendable {
  /// Compared before everything else: a state of a later generation replaces one of an earlier generation.
  package var generation: UInt64
  package var value: CellValue

  package init(generation: UInt64 = 0, value: CellValue) {
    self.generation = generation
    self.value = value
  }
}

/// The time at which a `latest` value was written, in an order that is the same on every device.
///
/// What was written before the store's first catch-up with its cloud ranks below everything written after a catch-up.
/// Ties are decided by the writer, and then by the value (in the join).
package struct Stamp: Hashable, Comparable, Sendable, Codable {
  package var caughtUp: Bool
  package var milliseconds: Int64
  package var writer: WriterID

  package init(caughtUp: Bool, milliseconds: Int64, writer: WriterID) {
    self.caughtUp = caughtUp
    self.milliseconds = milliseconds
    self.writer = writer
  }

  package static func < (left: Self, right: Self) -> Bool {
    if left.caughtUp != right.caughtUp { return right.caughtUp }
    if left.milliseconds != right.milliseconds { return left.milliseconds < right.milliseconds }
    return left.writer < right.writer
  }
}

/// A cell with its key, as it is committed, sent and received.
package struct CellUpdate: Hashable, Sendable {
  package var key: CellKey
  package var state: CellState

  package init(key: CellKey, state: CellState) {
    self.key = key
    self.state = state
  }
}
