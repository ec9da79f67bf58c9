extension CellState {
  /// What a device makes of a best that came from another one, because a score was taken back; nil if it stays as it is.
  ///
  /// Whoever takes a best back knows its own scores only. Each device that hears of it offers the best that it still has, unless the whole board
  /// was taken back.
  ///
  /// - Parameters:
  ///   - kept: The best score here, without those that were taken back.
  ///   - isLater: Whether the generation is one that wasn't known here.
  package func offering(_ kept: BestScore?, isLater: Bool) -> CellState? {
    guard case .best(let held) = value else { return nil }
    if held.isTakenBack {
      // It stood second where the other one was taken back. Only a further generation gets it away.
      guard generation < Cursor.maximumSeq else { return nil }
      let next = BestScore(order: held.order, entry: kept?.entry, withdrawn: held.withdrawn, isCleared: held.isCleared)
      return CellState(generation: generation + 1, value: .best(next))
    }
    guard isLater, !held.isCleared, let kept, kept.order == held.order, kept.precedes(held) else { return nil }
    return CellState(generation: generation, value: .best(held.joined(with: kept)))
  }

  /// As if nothing had ever been taken back.
  var begunAnew: CellState {
    var state = self
    state.generation = 0
    if case .best(let best) = value { state.value = .best(BestScore(order: best.order, entry: best.entry)) }
    return state
  }

  /// As a device wrote it that had never heard of a cloud: what it says there takes nothing back, and its `latest` values rank below those there.
  var beforeCatchUp: CellState {
    var state = begunAnew
    state.value = state.value.beforeCatchUp
    return state
  }
}
