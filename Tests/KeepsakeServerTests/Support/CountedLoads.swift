#if Cloud
import KeepsakeReplication
import TestSupport

@testable import KeepsakeServer

/// Storage that counts what is loaded, and what is committed.
final class CountedLoads: DecidingStorage {
  let storage: any CloudStorage
  let loads = Shared(0)
  let commits = Shared(0)
  var clock: @Sendable () -> Int64 { storage.clock }

  init(_ storage: any CloudStorage) { self.storage = storage }

  func remembered(of container: ContainerID) async throws -> RememberedContainers? {
    try await storage.remembered(of: container)
  }

  func load(_ reads: ReadSet, of container: ContainerID) async throws -> Snapshot {
    loads.value += 1
    return try await storage.load(reads, of: container)
  }

  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?
  ) async throws -> Bool {
    commits.value += 1
    return try await storage.commit(writes, of: container, ifAt: revision, leaving: leaving)
  }
}
#endif
