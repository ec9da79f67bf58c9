#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Pairing codes and recovery codes. Whose a code is isn't known, so that all databases are asked; it is then used in
/// the one in which its player lives.
extension ShardedStorage {
  func putPairing(_ pairing: Pairing, for device: DeviceID, now: Int64) async throws {
    try await at(pairing.container) { try await $0.putPairing(pairing, for: device, now: now) }
  }

  func join(
    _ code: Data, by right: EntryRight, as device: DeviceID, name: String, now: Int64
  ) async throws -> DeviceIdentity? {
    // Of two players that have drawn the same code, the later one has it, as in one database.
    let statement = PostgreSQLStatement(
      "SELECT container, expires FROM pairing WHERE app = $1 AND code = $2", [.bytes(right.scope.bytes), .bytes(code)])
    // Nobody is moved for one that has expired.
    let holders = try await find { try await Self.holders(statement, in: $0) }.filter { $0.number > now }
    guard let holder = holders.max(by: { $0.number < $1.number })?.container ?? right.parent?.container else {
      return nil
    }
    return try await atPresent(holder, with: right.parent.map { [$0.container] } ?? []) {
      try await $0.join(code, by: right, as: device, name: name, now: now)
    } isNothing: {
      $0 == nil
    }
  }

  func recovery(of container: ContainerID) async throws -> RecoveryFacts {
    try await at(container) { try await $0.recovery(of: container) }
  }

  func putRecovery(_ code: ContentHash, by identity: DeviceIdentity, scope: AppID, now: Int64) async throws {
    try await claim(code, for: identity.container, now: now)
    try await at(identity.container) { try await $0.putRecovery(code, by: identity, scope: scope, now: now) }
  }

  func recover(
    _ recovery: Recovery, as device: DeviceID, now: Int64, mayRecover: @escaping @Sendable (AppID) -> Bool
  ) async throws -> DeviceIdentity? {
    let statement = PostgreSQLStatement(
      "SELECT container, created FROM recovery WHERE code = $1 OR (used = $1 AND code = $2)",
      [.bytes(recovery.code.bytes), .bytes(recovery.next.bytes)])
    // Two players have one code only if somebody has made it up: the first one has it.
    let holders = try await find { try await Self.holders(statement, in: $0) }
    guard let holder = holders.min(by: { $0.number < $1.number })?.container ?? recovery.right.parent?.container else {
      return nil
    }
    try await claim(recovery.next, for: holder, now: now)
    return try await atPresent(holder, with: recovery.right.parent.map { [$0.container] } ?? []) {
      try await $0.recover(recovery, as: device, now: now, mayRecover: mayRecover)
    } isNothing: {
      $0 == nil
    }
  }

  /// Finds the containers that have something, each with a number.
  private static func holders(
    _ statement: PostgreSQLStatement, in storage: PostgreSQLStorage
  ) async throws -> [(container: ContainerID, number: Int64)] {
    try await storage.read([statement])[0].map { (container: try $0.identifier(0), number: try $0.int(1)) }
  }

  /// How long a claim keeps others from a recovery code: longer than a request takes.
  private static let claimMilliseconds: Int64 = 300_000

  /// Sees that no other player has a recovery code, or gets it at the same time: no transaction has two databases.
  ///
  /// - Throws: `APIError.codeTaken` if another player has it.
  private func claim(_ code: ContentHash, for container: ContainerID, now: Int64) async throws {
    // Among the proofs that devices have used lately, each known by a hash, and of no use for anything else.
    let key = ContentHash(of: Data("recovery code".utf8) + code.bytes)
    let holder = ContentHash(of: container.bytes + code.bytes)
    let isHeld = try await home.transaction { transaction in
      try transaction.run(
        """
        INSERT INTO identity_use (key, device, expires) VALUES ($1, $2, $3)
        ON CONFLICT (key) DO UPDATE SET device = excluded.device, expires = excluded.expires
        WHERE identity_use.device = excluded.device OR identity_use.expires <= $4
        """,
        [
          .bytes(key.bytes), .bytes(holder.bytes), .int(now.addingClamped(Self.claimMilliseconds)), .int(now),
        ]
      ).count > 0
    }
    guard isHeld else { throw APIError.codeTaken }
    let statement = PostgreSQLStatement(
      "SELECT container, created FROM recovery WHERE code = $1", [.bytes(code.bytes)])
    let holders = try await ask { try await Self.holders(statement, in: $0) }.flatMap(\.answer)
    if holders.contains(where: { $0.container != container }) { throw APIError.codeTaken }
  }
}
#endif
