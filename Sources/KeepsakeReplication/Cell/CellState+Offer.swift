extension CellState {
  /// Returns this device's offer for a best score received from another device, where a score was taken back; nil if
  /// the received state stays as it is.
  ///
  /// The device that takes a best score back knows only its own scores. Each device that receives this offers the best
  /// score that it still has, unless the whole board was taken back.
  ///
  /// - Parameters:
  ///   - kept: The best score here, without those that were taken back.
  ///   - isLater: Whether the generation wasn't known here before.
  package func offering(_ kept: BestScore?, isLater: Bool) -> CellState? {
    guard case .best(let held) = value else { return nil }
    if held.isTakenBack {
      // It was the second best where the other one was taken back. Only another generation removes it.
      guard generation < Cursor.maximumSeq else { return nil }
      let next = BestScore(order: held.order, entry: kept?.entry, withdrawn: held.withdrawn, isCleared: held.isCleared)
      return CellState(generation: generation + 1, value: .best(next))
    }
    guard isLater, !held.isCleared, let kept, kept.order == held.order, kept.precedes(held) else { return nil }
    return CellState(generation: generation, value: .best(held.joined(with: kept)))
  }

  /// The state without generations, as if nothing had ever been taken back.
  var begunAnew: CellState {
    var state = self
    state.generation = 0
    if case .best(let best) = value { state.value = .best(BestScore(order: best.order, entry: best.entry)) }
    return state
  }

  /// The state as written by a device that had never fetched from a cloud: in the cloud it takes nothing back, and its
  /// `latest` values rank below those there.
  var beforeCatchUp: CellState {
    var state = begunAnew
    state.value = state.value.beforeCatchUp
    return state
  }
}
