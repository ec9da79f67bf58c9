import Dispatch
import Foundation

/// What tells the system that the process has something to finish.
///
/// Each function returns what takes it back, to be called once; it may be called on any thread.
package struct ProcessActivity: Sendable {
  /// Keeps the system from ending the process without a word. On macOS, an app may allow that (sudden termination):
  /// neither the app nor `atexit` is told then.
  package var beginWork: @Sendable () -> @Sendable () -> Void
  /// Asks for time in the background, for as long as the system grants it (seconds). The system suspends the process
  /// otherwise as soon as its notification returns.
  package var beginBackground: @Sendable (_ reason: String) -> @Sendable () -> Void

  package init(
    beginWork: @escaping @Sendable () -> @Sendable () -> Void = { {} },
    beginBackground: @escaping @Sendable (_ reason: String) -> @Sendable () -> Void = { _ in {} }
  ) {
    (self.beginWork, self.beginBackground) = (beginWork, beginBackground)
  }

  package static var system: ProcessActivity {
    #if os(macOS)
    ProcessActivity(beginWork: {
      ProcessInfo.processInfo.disableSuddenTermination()
      return { ProcessInfo.processInfo.enableSuddenTermination() }
    })
    #elseif canImport(Darwin)
    // Works in extensions, too, and on watches, unlike a background task of UIKit. The block runs on a thread of its
    // own: the system lets the process run until it returns, or calls it once more because the time is over.
    ProcessActivity(beginBackground: { reason in
      let isDone = DispatchSemaphore(value: 0)
      ProcessInfo.processInfo.performExpiringActivity(withReason: reason) { isExpired in
        if isExpired { isDone.signal() } else { isDone.wait() }
      }
      return { isDone.signal() }
    })
    #else
    ProcessActivity()
    #endif
  }
}
