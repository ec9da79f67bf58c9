import Foundation

/// A thread of its own on which a test calls something that has to wait, and which shows when it does.
package final class WatchedThread<Value: Sendable>: Sendable {
  private let place = Shared<String?>(nil)
  private let result = Shared<Result<Value, any Error>?>(nil)
  private let done = DispatchSemaphore(value: 0)

  /// Starts immediately.
  package init(_ body: @escaping @Sendable () throws -> Value) {
    let thread = Thread { [place, result, done] in
      #if os(Linux)
      // The calling thread's folder there, as PROCESS/task/THREAD.
      place.value = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
      #endif
      result.value = Result { try body() }
      done.signal()
    }
    thread.stackSize = 8 << 20
    thread.start()
  }

  /// Blocks until the thread sleeps in the kernel, as it does while it waits for a lock or a condition. Returns false
  /// if it ends instead, or doesn't sleep within `Patience.limit`.
  package func waitUntilBlocked() -> Bool {
    #if os(Linux)
    let start = ContinuousClock.now
    while result.value == nil, ContinuousClock.now - start < Patience.limit {
      if isAsleep { return true }
      Thread.sleep(forTimeInterval: 0.001)
    }
    return false
    #else
    // Elsewhere the thread's state isn't read: on a slow machine it may not wait yet, and the test checks less.
    Thread.sleep(forTimeInterval: 0.5)
    return result.value == nil
    #endif
  }

  /// Blocks until the thread has ended, and returns its result.
  package func value() throws -> Value {
    done.wait()
    done.signal()
    guard let result = result.value else { throw NeverHappened("the result of a thread") }
    return try result.get()
  }

  #if os(Linux)
  private var isAsleep: Bool {
    guard let place = place.value,
      let state = try? String(contentsOfFile: "/proc/\(place)/stat", encoding: .utf8)
    else { return false }
    // The state comes after the program's name, which is in parentheses and may contain some.
    return state.split(separator: ")").last?.hasPrefix(" S ") == true
  }
  #endif
}
