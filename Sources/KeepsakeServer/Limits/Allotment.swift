#if Cloud
import Synchronization

/// A part of the server's memory, disk or attention, measured in bytes or in any other unit, of which requests take
/// shares.
///
/// A request that can't have its share at once may wait in a bounded queue, first come, first served. It holds nothing
/// of the same allotment meanwhile, so that the wait always ends.
final class Allotment: Sendable {
  /// A share that was taken. It is given back when nothing holds it any more.
  final class Share: Sendable {
    private let allotment: Allotment
    private let taken: Mutex<Int>

    fileprivate init(_ allotment: Allotment, _ amount: Int) {
      self.allotment = allotment
      taken = Mutex(amount)
    }

    deinit { allotment.give(taken.withLock { $0 }) }

    /// Takes more, if it is there now.
    func grow(by amount: Int) -> Bool {
      guard allotment.takeNow(amount) else { return false }
      taken.withLock { $0 += amount }
      return true
    }

    /// Gives everything back now.
    func end() {
      allotment.give(
        taken.withLock { taken in
          defer { taken = 0 }
          return taken
        })
    }
  }
  private struct Waiter {
    var id: UInt64
    var amount: Int
    var continuation: CheckedContinuation<Share?, Never>
  }
  private struct State {
    var used = 0
    var most = 0
    var waiters: [Waiter] = []
    var lastID: UInt64 = 0
  }
  private enum Next { case wait, go, refuse }

  let capacity: Int
  private let maximumWaiters: Int
  private let state = Mutex(State())

  /// - Parameter waiters: The most that wait at a time; 0 for an allotment for which nobody waits.
  init(_ capacity: Int, waiters: Int = 0) {
    self.capacity = max(capacity, 1)
    maximumWaiters = waiters
  }

  /// What is taken now, what was taken at most, and how many wait.
  var use: (used: Int, most: Int, waiting: Int) { state.withLock { ($0.used, $0.most, $0.waiters.count) } }

  /// Takes a share if it is there now; nil otherwise.
  func share(_ amount: Int) -> Share? { takeNow(amount) ? Share(self, amount) : nil }

  /// Takes a share, after waiting for it if necessary. More than the whole counts as the whole.
  ///
  /// - Returns: Nil if too many wait already, or the task was cancelled.
  func wait(for amount: Int) async -> Share? {
    let amount = min(max(amount, 0), capacity)
    if state.withLock({ $0.waiters.isEmpty && Self.take(amount, of: capacity, &$0) }) { return Share(self, amount) }
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let next: Next = state.withLock { state in
          if Task.isCancelled { return .refuse }
          if state.waiters.isEmpty, Self.take(amount, of: capacity, &state) { return .go }
          guard state.waiters.count < maximumWaiters else { return .refuse }
          state.waiters.append(Waiter(id: id, amount: amount, continuation: continuation))
          return .wait
        }
        switch next {
        case .wait: break
        case .go: continuation.resume(returning: Share(self, amount))
        case .refuse: continuation.resume(returning: nil)
        }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
      }
      waiter?.continuation.resume(returning: nil)
      // Shares that waited behind a large one may fit now.
      if waiter != nil { give(0) }
    }
  }

  private static func take(_ amount: Int, of capacity: Int, _ state: inout State) -> Bool {
    guard amount <= capacity - state.used else { return false }
    state.used += amount
    state.most = max(state.most, state.used)
    return true
  }

  fileprivate func takeNow(_ amount: Int) -> Bool {
    state.withLock { $0.waiters.isEmpty && Self.take(amount, of: capacity, &$0) }
  }

  fileprivate func give(_ amount: Int) {
    let ready = state.withLock { state in
      state.used -= amount
      var ready: [Waiter] = []
      while let first = state.waiters.first, Self.take(first.amount, of: capacity, &state) {
        ready.append(first)
        state.waiters.removeFirst()
      }
      return ready
    }
    for waiter in ready { waiter.continuation.resume(returning: Share(self, waiter.amount)) }
  }
}
#endif
