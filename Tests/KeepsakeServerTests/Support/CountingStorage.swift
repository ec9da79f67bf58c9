#if Cloud
import Foundation
import KeepsakeReplication
import Logging
import TestSupport

@testable import KeepsakeServer

/// Storage that counts its round trips.
struct CountingStorage: CloudStorage {
  let storage: SQLiteCloudStorage
  let loads = Shared(0)
  let commits = Shared(0)
  let others = Shared(0)

  /// Round trips so far.
  var trips: Int { loads.value + commits.value + others.value }
  var clock: @Sendable () -> Int64 { storage.clock }
  var logger: Logger { storage.logger }
  var bankEpoch: UInt64 { storage.bankEpoch }

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
  // Known without a round trip, once it was loaded.
  func newestSeq(of container: ContainerID) async throws -> UInt64 { try await storage.newestSeq(of: container) }
  private func other() -> SQLiteCloudStorage {
    others.value += 1
    return storage
  }
  func hasContent(_ hash: ContentHash, of container: ContainerID) async throws -> Bool {
    try await other().hasContent(hash, of: container)
  }
  func content(_ hash: ContentHash, of container: ContainerID) async throws -> KeptContent? {
    try await other().content(hash, of: container)
  }
  func adopt(_ file: URL, as name: String, of container: ContainerID) async throws {
    try await other().adopt(file, as: name, of: container)
  }
  func discard(_ name: String, of container: ContainerID) async throws {
    try await other().discard(name, of: container)
  }
  func recordDevice(_ device: DeviceRecord) async throws { try await other().recordDevice(device) }
  func devices(of container: ContainerID) async throws -> [DeviceRecord] {
    try await other().devices(of: container)
  }
  func isRetired(_ identity: DeviceIdentity) async throws -> Bool { try await other().isRetired(identity) }
  func ban(of identity: DeviceIdentity) -> Ban? { storage.ban(of: identity) }
  @discardableResult
  func delete(_ container: ContainerID, now: Int64) async throws -> Deletion {
    try await other().delete(container, now: now)
  }
  func exported(_ place: PlayerExport.Position, of container: ContainerID) async throws -> PlayerExport.Page {
    try await other().exported(place, of: container)
  }
  func place(of player: PlayerID) async throws -> PlayerPlace? { try await other().place(of: player) }
  func beginEpoch(after known: UInt64, now: Int64) async throws -> UInt64? {
    try await other().beginEpoch(after: known, now: now)
  }
  func frozenBanks(after container: ContainerID?, epoch: UInt64) async throws -> FrozenBanks {
    try await other().frozenBanks(after: container, epoch: epoch)
  }
  func containersToPrune(after place: PrunablePage.Place?, now: Int64, limit: Int) async throws -> PrunablePage {
    try await other().containersToPrune(after: place, now: now, limit: limit)
  }
  func putPairing(_ pairing: Pairing, for device: DeviceID, now: Int64) async throws {
    try await other().putPairing(pairing, for: device, now: now)
  }
  func join(
    _ code: Data, by right: EntryRight, as device: DeviceID, name: String, now: Int64
  ) async throws -> DeviceIdentity? {
    try await other().join(code, by: right, as: device, name: name, now: now)
  }
  func registerShared(
    _ new: DeviceIdentity, named name: String, by right: EntryRight, now: Int64
  ) async throws -> DeviceIdentity {
    try await other().registerShared(new, named: name, by: right, now: now)
  }
  func sharedDevices(of parent: ContainerID, _ device: DeviceID?) async throws -> [SharedDevice] {
    try await other().sharedDevices(of: parent, device)
  }
  func isShared(_ container: ContainerID) async throws -> Bool { try await other().isShared(container) }
  func sharedContainers(of parent: ContainerID) async throws -> [SharedContainer] {
    try await other().sharedContainers(of: parent)
  }
  func recovery(of container: ContainerID) async throws -> RecoveryFacts {
    try await other().recovery(of: container)
  }
  func putRecovery(_ code: ContentHash, by identity: DeviceIdentity, scope: AppID, now: Int64) async throws {
    try await other().putRecovery(code, by: identity, scope: scope, now: now)
  }
  func recover(
    _ recovery: Recovery, as device: DeviceID, now: Int64, mayRecover: @escaping @Sendable (AppID) -> Bool
  ) async throws -> DeviceIdentity? {
    try await other().recover(recovery, as: device, now: now, mayRecover: mayRecover)
  }
  func identities(of container: ContainerID) async throws -> [LinkedIdentity] {
    try await other().identities(of: container)
  }
  func link(_ identity: VerifiedIdentity, to device: DeviceIdentity, now: Int64) async throws -> IdentityLink {
    try await other().link(identity, to: device, now: now)
  }
  func signIn(
    with identity: VerifiedIdentity, by device: DeviceIdentity, as new: NewDevice, now: Int64
  ) async throws -> IdentitySignIn {
    try await other().signIn(with: identity, by: device, as: new, now: now)
  }
  func unlink(_ identity: ContentHash, by device: DeviceIdentity) async throws -> Bool {
    try await other().unlink(identity, by: device)
  }
  func newestToken(of identity: DeviceIdentity) async throws -> Int64? {
    try await other().newestToken(of: identity)
  }
  func recordToken(issuedMilliseconds: Int64, of identity: DeviceIdentity) async throws {
    try await other().recordToken(issuedMilliseconds: issuedMilliseconds, of: identity)
  }
  func probe() async throws { try await other().probe() }
  func observeCommits(_ body: @escaping CommitObserver) { storage.observeCommits(body) }
  var waitingCommits: Int { storage.waitingCommits }
  func close() async throws { try await storage.close() }
}
#endif
