import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#elseif canImport(Darwin)
import Darwin
#endif

/// Locks a store for one opener at a time: two would each believe that they are the only writer of what they mint.
///
/// The system releases the lock when the process ends, however it ends.
final class StoreLock: Sendable {
  private let file: Mutex<Int32>

  /// Takes the lock, or throws `inUse` immediately.
  init(at url: URL) throws {
    let path = url.path
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StoreError(errorNumber: errno, doing: "opening the lock \(path)") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let number = errno
      close(descriptor)
      if number == EWOULDBLOCK {
        throw StoreError(
          .inUse,
          "the store at \(url.deletingLastPathComponent().path) is already open, in this process or in another one")
      }
      throw StoreError(errorNumber: number, doing: "locking \(path)")
    }
    file = Mutex(descriptor)
  }

  func release() {
    file.withLock { descriptor in
      guard descriptor >= 0 else { return }
      // A child process that is being started also has the descriptor, until it runs its own program: if we only closed
      // ours, the lock would stay with the child. If unlocking fails, closing is all that is left.
      _ = flock(descriptor, LOCK_UN)
      close(descriptor)
      descriptor = -1
    }
  }

  deinit { release() }
}
