import Foundation
import Synchronization

/// Closes something on a thread of its own, since that may take longer than the caller may wait: a disk may hang, and
/// connections wait for all their users.
final class LateClosing: Sendable {
  /// Practically forever, and within the range of the system's clock.
  private static let longestWait = Duration.seconds(1 << 30)
  private let outcome = Mutex<Result<Void, any Error>?>(nil)
  private let done = DispatchSemaphore(value: 0)

  /// Starts immediately.
  init(_ body: @escaping @Sendable () throws -> Void) {
    let thread = Thread { [self] in
      let result = Result { try body() }
      outcome.withLock { $0 = result }
      done.signal()
    }
    thread.name = "keepsake.closing"
    thread.start()
  }

  /// Returns the result; nil if closing isn't finished by the deadline. Any number of threads may wait.
  func wait(until deadline: ContinuousClock.Instant?) -> Result<Void, any Error>? {
    guard let deadline else {
      done.wait()
      done.signal()
      return outcome.withLock { $0 }
    }
    let rest = min(max(deadline - .now, .zero), Self.longestWait) / .seconds(1)
    if done.wait(timeout: .now() + rest) == .success { done.signal() }
    return outcome.withLock { $0 }
  }
}
