import Synchronization

/// The purchases for which this device asks the bank, in the order in which they began.
final class WalletNeeds: Sendable {
  private struct Need {
    let id: UInt64
    let currency: String
    let amount: Int64
    let changes: AsyncStream<Void>.Continuation
    var answer: Result<Void, any Error>?
  }
  private struct State {
    var needs: [Need] = []
    var next: UInt64 = 0
  }
  private let state = Mutex(State())

  /// Adds a purchase.
  ///
  /// - Returns: Its number, and a stream with an element after each change of the wallet and after the bank's response.
  ///   A slow reader gets one element for several.
  func begin(_ amount: Int64, of currency: String) -> (id: UInt64, changes: AsyncStream<Void>) {
    let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let id = state.withLock { state in
      state.next += 1
      state.needs.append(Need(id: state.next, currency: currency, amount: amount, changes: continuation))
      return state.next
    }
    return (id, stream)
  }

  /// Records that the bank has responded to a purchase's request, or why it couldn't be asked.
  func bankAnswered(_ id: UInt64, _ answer: Result<Void, any Error>) {
    let changes = state.withLock { state -> AsyncStream<Void>.Continuation? in
      guard let index = state.needs.firstIndex(where: { $0.id == id }) else { return nil }
      state.needs[index].answer = answer
      return state.needs[index].changes
    }
    changes?.yield(())
  }

  /// Returns the bank's response; nil if there is none yet.
  func answer(to id: UInt64) -> Result<Void, any Error>? {
    state.withLock { $0.needs.first { $0.id == id }?.answer }
  }

  /// Ends the stream of a purchase. What it needs stays until `end`.
  func stopWaiting(_ id: UInt64) { state.withLock { $0.needs.first { $0.id == id }?.changes }?.finish() }

  func end(_ id: UInt64) {
    let ended = state.withLock { state in
      defer { state.needs.removeAll { $0.id == id } }
      return state.needs.first { $0.id == id }
    }
    ended?.changes.finish()
  }

  /// Wakes every purchase that waits: the wallet has changed, or was closed.
  func walletDidChange() {
    for need in state.withLock({ $0.needs }) { need.changes.yield(()) }
  }

  /// Returns what has to be spendable for the purchases in a currency: together, in their order, as far as the player's
  /// money is enough for them. Nil if there are none.
  func amount(of currency: String, total: Int64) -> Int64? {
    let amounts = state.withLock { state in state.needs.filter { $0.currency == currency }.map(\.amount) }
    // Amounts and totals are far below what 64 bits hold.
    let sum = amounts.reduce(Int64(0)) { sum, amount in amount <= total - sum ? sum + amount : sum }
    return sum > 0 ? sum : nil
  }
}
