extension CellState {
  /// The least state that holds both: commutative, associative and idempotent, for any two states.
  ///
  /// The later generation wins whole. Within a generation the rule joins; where two rules meet under one key, which only a
  /// mistake brings about, the rule that ranks higher wins, the same everywhere.
  package func joined(with other: CellState) -> CellState {
    if generation != other.generation { return generation > other.generation ? self : other }
    return CellState(generation: generation, value: value.joined(with: other.value))
  }

  /// Whether joining `other` changes nothing.
  package func contains(_ other: CellState) -> Bool { joined(with: other) == self }
}
