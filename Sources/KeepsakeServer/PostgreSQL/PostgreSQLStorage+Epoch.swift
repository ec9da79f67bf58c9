#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import Synchronization

/// What is of the whole cloud, and what looks at all players.
extension PostgreSQLStorage {
  var bankEpoch: UInt64 { state.withLock { $0.epoch } }

  func ban(of identity: DeviceIdentity) -> Ban? {
    state.withLock { $0.bans.players[identity.container] ?? $0.bans.shared[identity.device] }
  }

  /// Learns what other servers have changed: the banks' epoch, bans, and the tables. When this returns, all that was
  /// committed before is known. First opens the database if that wasn't possible yet.
  func refresh() async throws {
    try await openIfNeeded()
    try await learn()
  }

  /// Does that of a database that is open, or being opened.
  func learn() async throws {
    // First, and alone: the other tables may be others by now.
    let oldest = try await pool.runUntilDone([PostgreSQLSchema.reading])[0].first?.int(1) ?? 0
    if oldest > PostgreSQLSchema.number {
      let isFirst = state.withLock { state in
        defer { state.isOutdated = true }
        return !state.isOutdated
      }
      if isFirst { logger.failure("This server refuses everything from now on", PostgreSQLSchema.outdated) }
      return
    }
    let number = state.withLock { state in
      state.begun += 1
      return state.begun
    }
    let answers = try await pool.read([
      PostgreSQLStatement("SELECT value FROM number WHERE name = $1", [Self.epochName]),
      PostgreSQLStatement("SELECT container, reason, at FROM ban"),
      PostgreSQLStatement(
        """
        SELECT shared_device.device, ban.reason, ban.at
        FROM ban JOIN shared_device ON shared_device.parent = ban.container
        """),
      PostgreSQLStatement("SELECT name FROM shard ORDER BY name"),
    ])
    try noticeShards(Set(answers[3].map { try $0.text(0) }))
    let epoch = try answers[0].first?.unsigned(0) ?? 0
    var bans = Ban.All()
    for row in answers[1] {
      bans.players[try row.identifier(0)] = Ban(reason: try row.text(1), sinceMilliseconds: try row.int(2))
    }
    for row in answers[2] {
      bans.shared[try row.identifier(0)] = Ban(reason: try row.text(1), sinceMilliseconds: try row.int(2))
    }
    state.withLock { state in
      state.epoch = max(state.epoch, epoch)
      // One that was begun later knows no less.
      guard number > state.known else { return }
      (state.known, state.bans) = (number, bans)
    }
  }

  /// Refuses everything from now on if the players are spread over databases that this server doesn't know: it would
  /// look for them here.
  private func noticeShards(_ names: Set<String>) throws {
    guard let knownShards, let error = ShardBinding.objection(to: names, known: knownShards) else { return }
    let isFirst = state.withLock { state in
      defer { state.unknownShard = error }
      return state.unknownShard == nil
    }
    if isFirst { logger.failure("This server refuses everything from now on", error) }
  }

  private static let epochName = PostgreSQLValue.bytes(Data(CloudNumber.bankEpoch.rawValue.utf8))

  /// Begins a new epoch of all banks, if the present one is `known`, or an earlier one: then the database was set back
  /// while this server was running.
  ///
  /// - Returns: The epoch; nil if another device or server was first.
  func beginEpoch(after known: UInt64, now: Int64) async throws -> UInt64? {
    let begun = try await transaction { transaction -> UInt64? in
      let found = try transaction.run("SELECT value FROM number WHERE name = $1", [Self.epochName]).first
      guard try found?.unsigned(0) ?? 0 <= known else { return nil }
      let next = CloudNumber.epoch(after: known, now: now)
      try transaction.run(
        """
        INSERT INTO number (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
        """, [Self.epochName, .signed(next)])
      return next
    }
    if let begun {
      state.withLock { $0.epoch = max($0.epoch, begun) }
    } else {
      try await refresh()
    }
    return begun
  }

  func frozenBanks(after container: ContainerID?, epoch: UInt64) async throws -> FrozenBanks {
    let page = try BankPage(try await read([BankPage.statement(after: container)])[0], epoch: epoch)
    return FrozenBanks(
      containers: page.entries.filter(\.bank.isFrozen).map(\.container), unreadable: page.unreadable, next: page.next)
  }

  func containersToPrune(
    after place: PrunablePage.Place?, now: Int64, limit: Int
  ) async throws -> PrunablePage {
    let rules = PruningRules()
    var after: ContainerID?
    if case .container(let id) = place { after = id }
    // Those that weren't looked at for a while, and that have changed since what they have was last forgotten. What is
    // left of players who were moved counts as looked at: a page mustn't read through all of it.
    let statement = PostgreSQLStatement(
      """
      SELECT id, revision >= 0 AND seq > 0 AND NOT EXISTS (
        SELECT 1 FROM past_position WHERE past_position.container = id AND milliseconds > $2
      ) AND NOT EXISTS (
        SELECT 1 FROM past_position
        WHERE past_position.container = id AND past_position.seq = container.seq AND milliseconds <= $3
      )
      FROM container WHERE id > $1 ORDER BY id LIMIT $4
      """,
      [
        .bytes(after?.bytes ?? Data()), .int(now.addingClamped(-rules.stepMilliseconds)),
        .int(now.addingClamped(-rules.rememberedMilliseconds).addingClamped(-2 * rules.stepMilliseconds)),
        .int(Int64(limit)),
      ])
    let rows = try await read([statement])[0]
    var page = PrunablePage()
    for row in rows {
      let id: ContainerID = try row.identifier(0)
      page.next = .container(id)
      if try row.bool(1) { page.containers.append(id) }
    }
    if rows.rows.count < limit { page.next = nil }
    return page
  }

  func claimPruning(seconds: Int) async throws -> Bool {
    let claim = PostgreSQLStatement(
      """
      INSERT INTO number (name, value) VALUES ($1, \(DatabaseClock.now) + $2)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE number.value <= \(DatabaseClock.now)
      """, [.bytes(Data("pruning".utf8)), .int(Int64(seconds) * 1_000)])
    return try await run([claim])[0].count > 0
  }

  /// Removes codes and proofs that have expired, offers that nobody finishes, and bytes of contents that no row names,
  /// some of each.
  func sweep(now: Int64) async throws {
    let old = now.addingClamped(-ExchangeRules.offerLifetimeMilliseconds)
    let limit = PostgreSQLValue.int(1_000)
    let statements = [
      PostgreSQLStatement(
        "DELETE FROM pairing WHERE (app, code) IN (SELECT app, code FROM pairing WHERE expires <= $1 LIMIT $2)",
        [.int(now), limit]),
      PostgreSQLStatement(
        "DELETE FROM identity_use WHERE key IN (SELECT key FROM identity_use WHERE expires <= $1 LIMIT $2)",
        [.int(now), limit]),
      PostgreSQLStatement(
        """
        DELETE FROM leaving WHERE (container, device) IN (
          SELECT container, device FROM leaving WHERE until <= \(DatabaseClock.now) LIMIT $1)
        """, [limit]),
      // An offer is as old as its newest part.
      PostgreSQLStatement(
        """
        DELETE FROM offer_part WHERE (container, offer) IN (
          SELECT container, offer FROM offer_part WHERE touched < $1 AND NOT EXISTS (
            SELECT 1 FROM offer_part AS newer WHERE newer.container = offer_part.container
            AND newer.offer = offer_part.offer AND newer.touched >= $1)
          LIMIT $2)
        """, [.int(old), limit]),
      Self.givingUp(before: now.addingClamped(-Self.unnamedMilliseconds), limit),
    ]
    // Each by itself: one that meets others' changes leaves the rest alone, and is tried again the next time.
    for statement in statements {
      do {
        _ = try await run([statement])
      } catch {
        guard (error as? ServerError)?.code == .overloaded else { throw error }
      }
    }
    try await removeGivenUp(now: now)
    try await removeUnknown(now: now)
  }
}
#endif
