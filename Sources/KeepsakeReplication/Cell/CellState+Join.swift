extension CellState {
  /// Returns the least state that includes both. Commutative, associative and idempotent for any two states.
  ///
  /// The later generation wins as a whole. Within a generation the rule joins the values; if two rules meet under one
  /// key, which only a mistake can cause, the rule of the higher rank wins, on every device.
  package func joined(with other: CellState) -> CellState {
    if generation != other.generation { return generation > other.generation ? self : other }
    return CellState(generation: generation, value: value.joined(with: other.value))
  }

  /// Returns whether joining `other` changes nothing.
  package func contains(_ other: CellState) -> Bool { joined(with: other) == self }
}
