import Foundation
import Synchronization

/// Marks the threads that are inside something, so that nested calls can be handled differently.
///
/// Not a task-local value: tasks started inside would inherit it for their whole life.
final class ThreadMarks: Sendable {
  private let depths = Mutex<[ObjectIdentifier: Int]>([:])

  /// Whether the current thread is marked.
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
