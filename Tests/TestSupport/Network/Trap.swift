import Foundation
import Synchronization

/// One request that is held at a point.
package final class Trap: Sendable {
  package enum Decision: Sendable { case pass, cut }
  /// What had passed when it was held.
  package struct Hit: Sendable {
    package var bytes: Int
    /// The length of the body that is being transferred; nil if it isn't known in advance.
    package var bytesInAll: Int?
  }
  package let name: String
  package let point: WatchingProxy.Point
  private let skipping: Atomic<Int>
  private let hit = Mutex<Hit?>(nil)
  private let decision = Mutex<Decision?>(nil)

  init(name: String, point: WatchingProxy.Point, skipping: Int) {
    (self.name, self.point) = (name, point)
    self.skipping = Atomic(skipping)
  }

  func isNext() -> Bool { skipping.subtract(1, ordering: .relaxed).oldValue <= 0 }

  package var isReached: Bool { hit.withLock { $0 != nil } }

  /// Waits until the request is held.
  package func reached() async throws -> Hit {
    try await until("a request \(name) at the point where it is to be held") { isReached }
    guard let hit = hit.withLock({ $0 }) else { throw NeverHappened("a request \(name)") }
    return hit
  }

  /// Decides what happens to the request.
  package func decide(_ decision: Decision) { self.decision.withLock { $0 = decision } }

  /// Called on the proxy's thread.
  func wait(_ found: Hit) -> Decision {
    hit.withLock { $0 = found }
    let start = ContinuousClock.now
    while ContinuousClock.now - start < Patience.limit {
      if let decision = decision.withLock({ $0 }) { return decision }
      Thread.sleep(forTimeInterval: 0.002)
    }
    return .cut
  }
}
