import Foundation
import Synchronization

/// A lock for each name: callers wait only for those who use the same one.
final class NamedLocks: Sendable {
  private struct Entry {
    let lock = NSLock()
    /// Who has the lock, or waits for it.
    var users = 0
  }

  private let entries = Mutex<[String: Entry]>([:])

  func withLock<Value>(_ name: String, _ body: () throws -> Value) rethrows -> Value {
    let lock = entries.withLock { entries in
      entries[name, default: Entry()].users += 1
      return entries[name, default: Entry()].lock
    }
    defer {
      entries.withLock { entries in
        entries[name]?.users -= 1
        if entries[name]?.users == 0 { entries[name] = nil }
      }
    }
    return try lock.withLock(body)
  }
}
