import Foundation
import Keepsake
import Synchronization
import TestSupport

/// A credential store in memory, which fails as a test wants.
final class MemoryCredentials: CredentialStore {
  /// What goes wrong.
  enum Fault: Hashable {
    case read, write, remove
    /// The entry is written, and then the call fails.
    case afterWriting
    /// The call succeeds, and nothing is written.
    case forgetting
  }
  struct Failure: Error {}

  let faults = Shared<Set<Fault>>([])
  private let state = Mutex<[String: Data]>([:])

  var entries: [String: Data] { state.withLock { $0 } }

  /// As after the game was installed again, or its folder restored on another machine.
  func removeAll() { state.withLock { $0 = [:] } }

  func read(_ key: String) throws -> Data? {
    if faults.value.contains(.read) { throw Failure() }
    return state.withLock { $0[key] }
  }

  func write(_ data: Data, for key: String) throws {
    if faults.value.contains(.write) { throw Failure() }
    if !faults.value.contains(.forgetting) { state.withLock { $0[key] = data } }
    if faults.value.contains(.afterWriting) { throw Failure() }
  }

  func remove(_ key: String) throws {
    if faults.value.contains(.remove) { throw Failure() }
    state.withLock { $0[key] = nil }
  }
}
