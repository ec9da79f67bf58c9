import Foundation
import Synchronization

/// Closes something on a thread of its own, since that may take longer than the caller may wait: a disk may hang, and
/// connections wait for all their users.
final class LateClosing: Sendable {
  private let outcome = Mutex<Result<Void, any Error>?>(nil)
  private let done = Latch()

  /// Starts immediately.
  init(_ body: @escaping @Sendable () throws -> Void) {
    let thread = Thread { [self] in
      let result = Result { try body() }
      outcome.withLock { $0 = result }
      done.open()
    }
    thread.name = "keepsake.closing"
    thread.start()
  }

  /// Returns the result; nil if closing isn't finished by the deadline. Any number of threads may wait.
  func wait(until deadline: ContinuousClock.Instant?) -> Result<Void, any Error>? {
    done.wait(within: deadline.map { $0 - .now })
    return outcome.withLock { $0 }
  }
}
