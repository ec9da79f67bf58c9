import Foundation
import Synchronization

/// Makes sure that a signal takes effect even if the game doesn't call `update()`: a thread that sleeps until a signal
/// arrives, and then waits for the deadline.
///
/// A game that loads a level for a minute, or hangs, can be ended and stopped like any other program; the last save
/// remains.
package enum SignalGuard {
  #if !os(Windows)
  private static let isStarted = Atomic(false)
  private static let stackBytes = 256 * 1024

  static func start(wokenBy pipe: Int32) {
    guard pipe >= 0, !isStarted.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let thread = Thread { watch(pipe) }
    thread.name = "Keepsake signals"
    thread.stackSize = stackBytes
    thread.start()
  }

  private static func watch(_ pipe: Int32) {
    var endBy: ContinuousClock.Instant?
    var stopBy: (stop: Int, instant: ContinuousClock.Instant)?
    while true {
      wait(for: pipe, until: [endBy, stopBy?.instant].compactMap(\.self).min())
      let asked = SignalWatch.askedAndNotDone()
      let now = ContinuousClock.now
      if let end = asked.end {
        let limit = endBy ?? now + asked.limit
        endBy = limit
        if now >= limit {
          say("signal \(end): the game did not save within \(asked.limit) and ends with its last save")
          SignalWatch.forceEnd(end)
        }
      } else {
        endBy = nil
      }
      if let stop = asked.stop {
        // A limit set for an earlier stop no longer applies.
        let limit = stopBy?.stop == stop ? stopBy?.instant ?? now : now + asked.limit
        stopBy = (stop, limit)
        if now >= limit { SignalWatch.forceStop() }
      } else {
        stopBy = nil
      }
    }
  }

  /// Returns at the instant, or as soon as a signal arrives.
  private static func wait(for pipe: Int32, until instant: ContinuousClock.Instant?) {
    var milliseconds: Int32 = -1
    if let instant {
      // Rounded up, so that the last fraction of a millisecond isn't spent in a busy loop.
      let left = min(max(instant - .now, .zero), .seconds(3_600)).components
      milliseconds = Int32(left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000 + 1)
    }
    var descriptor = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
    _ = poll(&descriptor, 1, milliseconds)
    var bytes: [UInt8] = Array(repeating: 0, count: 64)
    while read(pipe, &bytes, bytes.count) > 0 {}
  }
  #endif

  /// Writes a line to standard error, for errors that no call can throw.
  package static func say(_ sentence: String) {
    // If standard error is gone too, there is nowhere left to report to.
    try? FileHandle.standardError.write(contentsOf: Data("Keepsake: \(sentence)\n".utf8))
  }
}
