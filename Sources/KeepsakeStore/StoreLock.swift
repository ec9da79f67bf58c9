import Foundation
import KeepsakePlatform
import Synchronization

/// Locks a store for one opener at a time: two would each believe that they are the only writer of what they mint.
///
/// The system releases the lock when the process ends, however it ends. Within the process, the folder's path is taken,
/// too: if the folder is removed, the lock in a new one of the same name would be free.
///
/// Whatever may still write to the folder holds this object, so that a store that is released without being closed
/// keeps its lock until everything that it accepted is written.
final class StoreLock: Sendable {
  /// Identifies an open file at a path.
  typealias Identifying = @Sendable (_ descriptor: Int32, _ path: String) throws -> FileIdentity

  /// Who has a folder's lock.
  private enum Holder {
    case open
    /// A store that nobody uses any more, which finishes what it accepted.
    case released
  }
  /// The folders whose locks this process has, by their paths without symbolic links.
  private static let holders = Mutex<[String: Holder]>([:])
  /// Signalled when a folder is free. Held while `holders` changes.
  private static let change = MonotonicCondition()

  let path: String
  /// The lock's own file, as it was opened.
  let identity: FileIdentity
  /// Whether the file had the same number by its path as when it was opened. If it doesn't, the file system invents
  /// numbers at each look.
  let isNumbered: Bool
  private let identify: Identifying
  private let folder: String
  private let file: Mutex<Int32>

  /// Takes the lock, or throws `inUse`: immediately, unless the lock is that of a released store in this process, which
  /// this waits for, no longer than `limit`.
  ///
  /// - Parameter identify: For tests, of file systems that number files in their own way.
  init(
    at url: URL, within limit: Duration = .seconds(5),
    identify: @escaping Identifying = { try FileIdentity(of: $0, path: $1) }
  ) throws {
    let path = url.path
    let place = url.deletingLastPathComponent()
    let folder = place.resolvingSymlinksInPath().path
    let inUse = StoreError(
      .inUse, "the store at \(place.path) is already open, in this process or in another one")
    try Self.take(folder, within: limit, inUse)
    do {
      let descriptor: Int32
      (descriptor, identity, isNumbered) = try Self.lock(path, inUse, identify)
      file = Mutex(descriptor)
    } catch {
      Self.free(folder)
      throw error
    }
    (self.path, self.folder, self.identify) = (path, folder, identify)
  }

  private static func take(_ folder: String, within limit: Duration, _ inUse: StoreError) throws {
    let deadline = ContinuousClock.now + limit
    var isTaken = false
    let isDecided = change.withLock {
      change.wait(until: deadline) {
        holders.withLock { holders in
          switch holders[folder] {
          case nil:
            holders[folder] = .open
            isTaken = true
            return true
          case .open: return true
          case .released: return false
          }
        }
      }
    }
    guard isDecided else {
      throw StoreError(
        .inUse,
        """
        the store at \(folder) was released without being closed, and is still being written, or a part of it is still \
        held
        """)
    }
    guard isTaken else { throw inUse }
  }

  private static func free(_ folder: String) {
    change.withLock { _ = holders.withLock { $0.removeValue(forKey: folder) } }
    change.broadcast()
  }

  private static func lock(
    _ path: String, _ inUse: StoreError, _ identify: Identifying
  ) throws -> (descriptor: Int32, FileIdentity, isNumbered: Bool) {
    let descriptor = SystemCall.openFile(path, .locking, mode: 0o600)
    guard descriptor >= 0 else { throw StoreError(errorNumber: errno, doing: "opening the lock \(path)") }
    guard SystemCall.lockFile(descriptor) == 0 else {
      let number = errno
      SystemCall.closeFile(descriptor)
      if number == EWOULDBLOCK { throw inUse }
      throw StoreError(errorNumber: number, doing: "locking \(path)")
    }
    do {
      let identity = try identify(descriptor, path)
      return (descriptor, identity, try FileIdentity(at: path).map { $0 == identity } ?? true)
    } catch {
      SystemCall.closeFile(descriptor)
      throw error
    }
  }

  /// Whether the lock's file still has the number that it was opened with. It doesn't on a file system that invents
  /// numbers, such as some of other systems' disks and of servers: there, numbers don't show which file is which.
  var keepsNumber: Bool {
    file.withLock { descriptor in
      // A file that can't be examined any more hasn't got another number.
      guard descriptor >= 0, let current = try? identify(descriptor, path) else { return true }
      return current == identity
    }
  }

  /// Records that nobody uses the store any more: who opens it next in this process waits until this object is gone.
  func willBeReleased() {
    file.withLock { descriptor in
      guard descriptor >= 0 else { return }
      Self.change.withLock { Self.holders.withLock { $0[folder] = .released } }
    }
  }

  func release() {
    file.withLock { descriptor in
      guard descriptor >= 0 else { return }
      // A child process that is being started also has the descriptor, until it runs its own program: if we only closed
      // ours, the lock would stay with the child. If unlocking fails, closing is all that is left.
      SystemCall.unlockFile(descriptor)
      SystemCall.closeFile(descriptor)
      descriptor = -1
      Self.free(folder)
    }
  }

  deinit { release() }
}
