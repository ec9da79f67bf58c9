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
/// The system releases the lock when the process ends, however it ends. Within the process, the folder's path is taken,
/// too: if the folder is removed, the lock in a new one of the same name would be free.
final class StoreLock: Sendable {
  /// The folders whose locks this process has, by their paths without symbolic links.
  private static let taken = Mutex<Set<String>>([])

  let path: String
  let identity: FileIdentity
  private let folder: String
  private let file: Mutex<Int32>

  /// Takes the lock, or throws `inUse` immediately.
  init(at url: URL) throws {
    let path = url.path
    let place = url.deletingLastPathComponent()
    let folder = place.resolvingSymlinksInPath().path
    let inUse = StoreError(
      .inUse, "the store at \(place.path) is already open, in this process or in another one")
    guard Self.taken.withLock({ $0.insert(folder).inserted }) else { throw inUse }
    do {
      let descriptor: Int32
      (descriptor, identity) = try Self.lock(path, inUse)
      file = Mutex(descriptor)
    } catch {
      _ = Self.taken.withLock { $0.remove(folder) }
      throw error
    }
    (self.path, self.folder) = (path, folder)
  }

  private static func lock(_ path: String, _ inUse: StoreError) throws -> (Int32, FileIdentity) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StoreError(errorNumber: errno, doing: "opening the lock \(path)") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let number = errno
      close(descriptor)
      if number == EWOULDBLOCK { throw inUse }
      throw StoreError(errorNumber: number, doing: "locking \(path)")
    }
    do {
      return (descriptor, try FileIdentity(of: descriptor, path: path))
    } catch {
      close(descriptor)
      throw error
    }
  }

  func release() {
    file.withLock { descriptor in
      guard descriptor >= 0 else { return }
      // A child process that is being started also has the descriptor, until it runs its own program: if we only closed
      // ours, the lock would stay with the child. If unlocking fails, closing is all that is left.
      _ = flock(descriptor, LOCK_UN)
      close(descriptor)
      descriptor = -1
      _ = Self.taken.withLock { $0.remove(folder) }
    }
  }

  deinit { release() }
}
