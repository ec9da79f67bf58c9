import Foundation
import Synchronization

/// Which threads are within something, so that a call within it can be answered in another way.
///
/// Not a task-local value: tasks that are begun within would have it for as long as they live.
final class ThreadMarks: Sendable {
  private let depths = Mutex<[ObjectIdentifier: Int]>([:])

  /// Whether this thread is.
  var isMarked: Bool {
    let thread = ObjectIdentifier(Thread.current)
    return depths.withLock { $0[thread] != nil }
  }

  func within<Value>(_ body: () throws -> Value) rethrows -> Value {
    let thread = ObjectIdentifier(Thread.current)
    depths.withLock { $0[thread, default: 0] += 1 }
    defer {
      depths.withLock { depths in
        let depth = depths[thread] ?? 1
        depths[thread] = depth > 1 ? depth - 1 : nil
      }
    }
    return try body()
  }
}
