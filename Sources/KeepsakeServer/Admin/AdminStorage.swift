#if Cloud
import HTTPTypes
import KeepsakeReplication

/// A cloud as the studio's port needs it. An act is committed together with its row of the audit log, or neither is.
protocol AdminStorage: CloudStorage, WebhookStorage {
  /// All admin keys, revoked ones too.
  func adminKeys() async throws -> [AdminKey]

  /// Returns where the players are kept that match; a player without any device, recovery code or identity
  /// isn't found.
  func places(_ query: PlayerQuery) async throws -> [AdminPlace]
  func usedBytes(of container: ContainerID) async throws -> Int64
  /// Returns the ban of a player; nil for none. Doesn't ask the database.
  func ban(of container: ContainerID) -> Ban?
  /// Returns whose a shared container is: the players of games who have it, or had it before they joined another one.
  func sharedParents(of container: ContainerID) async throws -> [SharedParent]

  func slots(of container: ContainerID, after slot: String?, limit: Int) async throws -> [AdminSlot]
  /// Returns versions of a slot, the newest first.
  ///
  /// - Parameters:
  ///   - seq: Only those that came before this one.
  ///   - limit: The most versions.
  ///   - bytes: How many bytes of records the page may have after its first version: a device may replace many versions
  ///     with each.
  func versions(
    of container: ContainerID, in slot: String, before seq: UInt64, limit: Int, bytes: Int
  ) async throws -> AdminVersionPage
  func version(_ id: VersionID, of container: ContainerID) async throws -> AdminVersion?

  /// Appends a row that goes with no change.
  func append(_ entry: AuditEntry) async throws
  /// - Parameter entry: What the audit log says about it, in the same transaction.
  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?,
    auditing entry: AuditEntry?
  ) async throws -> Bool
  /// - Parameter entry: What the audit log says about it, in the same transaction.
  func delete(_ container: ContainerID, now: Int64, auditing entry: AuditEntry?) async throws -> Deletion
  /// Has an identity lead nowhere.
  ///
  /// - Throws: `APIError.identityNotLinked` if it doesn't lead to this player.
  func unlink(_ identity: ContentHash, of container: ContainerID, auditing entry: AuditEntry) async throws
  /// Bans a player, or lifts that with nil. A ban that was made before is replaced. This server knows it when this
  /// returns, and others a second later.
  ///
  /// - Throws: `APIError.playerUnknown` if everything of the player was deleted meanwhile: nothing of it comes back.
  func setBan(_ ban: Ban?, of container: ContainerID, auditing entry: AuditEntry) async throws

  /// Erases what was deleted from the database's files, as far as that can be done from here.
  ///
  /// - Returns: Whether nothing is left there.
  func erase() async -> Bool
}

extension AdminStorage {
  /// Returns the accepted key with this text.
  func adminKey(_ text: String) async throws -> AdminKey? { AdminKey.accepted(text, among: try await adminKeys()) }

  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?
  ) async throws -> Bool {
    try await commit(writes, of: container, ifAt: revision, leaving: leaving, auditing: nil)
  }

  @discardableResult
  func delete(_ container: ContainerID, now: Int64) async throws -> Deletion {
    try await delete(container, now: now, auditing: nil)
  }
}

extension APIError {
  static let identityNotLinked = APIError(.notFound, .notFound, "This player has no such identity.")
}
#endif
