#if Cloud && PostgreSQL
import HTTPTypes
import KeepsakeReplication
import Synchronization

/// Which containers requests of this server have moved lately. A move may copy gigabytes, and a person with two
/// accounts could ask for one after the other.
final class RequestMoves: Sendable {
  static let pause = Duration.seconds(60)
  private static let remembered = 10_000

  private let pause: Duration
  private let moved = Mutex<[ContainerID: ContinuousClock.Instant]>([:])

  /// - Parameter pause: For how long a container isn't moved again. Shorter in tests.
  init(pause: Duration = pause) { self.pause = pause }

  /// - Throws: `APIError` with `busy` if a request has moved a container within the last minute.
  func requireRested(_ container: ContainerID) throws {
    guard let last = moved.withLock({ $0[container] }), ContinuousClock.now - last < pause else { return }
    throw APIError(
      .serviceUnavailable, .busy, "This player was just moved to another database; try again in a minute.",
      retryAfterSeconds: Int(pause / .seconds(1)))
  }

  func note(_ family: [ContainerID]) {
    let now = ContinuousClock.now
    moved.withLock { moved in
      if moved.count + family.count > Self.remembered { moved = moved.filter { now - $0.value < pause } }
      // There are no more than that in a minute, unless somebody makes them: the newest ones count.
      if moved.count + family.count > Self.remembered { moved.removeAll() }
      for container in family { moved[container] = now }
    }
  }
}
#endif
