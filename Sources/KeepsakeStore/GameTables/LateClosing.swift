import Foundation
import Synchronization

/// Closes something on a thread of its own, since it may take longer than whoever asks for it may wait: a disk may hang, and connections wait
/// for everybody who still uses them.
final class LateClosing: Sendable {
  /// As good as for ever, and not beyond what the system's clock can count.
  private static let longestWait = Duration.seconds(1 << 30)
  private let outcome = Mutex<Result<Void, any Error>?>(nil)
  private let done = DispatchSemaphore(value: 0)

  /// Begins at once.
  init(_ body: @escaping @Sendable () throws -> Void) {
    let thread = Thread { [self] in
      let result = Result { try body() }
      outcome.withLock { $0 = result }
      done.signal()
    }
    thread.name = "keepsake.closing"
    thread.start()
  }

  /// What came of it; nil if it isn't over by then. Any number of threads may wait.
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
