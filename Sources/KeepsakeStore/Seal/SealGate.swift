package import Foundation
import GRDB

/// What the opener of a store knows about its seal.
package struct SealRequest: Sendable {
  /// Nil for tools: whatever the store has, if anything.
  var kind: Seal.Kind?
  var seal: Seal
  /// Nil for tools: the owner in the store's header.
  var owner: SealOwner?

  /// For a game that opens its own data.
  package init(_ seal: Seal, owner: SealOwner) {
    (kind, self.seal, self.owner) = (seal.kind, seal, owner)
  }

  /// For a tool that was given the secret of whatever seal there is.
  package init(secret: Data, player: String? = nil) {
    kind = nil
    seal = .signed(secret, player: player)
  }

  package static let none = SealRequest(.none, owner: SealOwner(game: "", profile: ""))
}

/// Opens the seal of a store, or applies one: decides before anything is changed, then audits and seals in one
/// transaction. Removing plain bytes from the file, and replacing an earlier secret, follow in transactions of their
/// own.
struct SealGate {
  /// How many bytes an opening seals again after the secret changed: a fraction of a second. Later openings do the
  /// rest.
  static let resealedAtOpening = 4 << 20

  private let request: SealRequest
  private let folder: URL
  /// The header of the existing store; nil if it isn't sealed.
  let found: SealHeader?
  /// The seal of the existing rows.
  private let old: StoreSeal
  /// The seal that the rows should have.
  private let new: StoreSeal
  private var header: SealHeader?

  // MARK: Deciding

  /// Reads the header and verifies the secret; changes nothing.
  ///
  /// - Parameter database: Nil if it can't be read: the header is then searched for everywhere else. Only for a
  ///   recovery.
  /// - Throws: `otherSeal`, `wrongSecret`, `misuse`, or `damaged` if nothing shows how a damaged store was sealed.
  init(_ request: SealRequest, database: Database?, folder: URL) throws {
    try request.seal.check()
    self.request = request
    self.folder = folder
    if let database {
      found = try SealHeader.find(in: database, folder: folder)
    } else {
      let candidates = try SealHeader.findAnywhere(StoreFiles(folder: folder))
      found = try candidates.first { try Self.isProven($0, request) } ?? candidates.first
    }
    let kind = request.kind ?? found?.kind ?? .none
    if let found {
      guard kind != .none else { throw Self.sealed(found, folder) }
      (old, new, header) = try Self.seals(for: request, kind: kind, found)
      return
    }
    old = .none
    guard kind != .none, let owner = request.owner else {
      (new, header) = (.none, nil)
      return
    }
    guard let database else {
      guard request.seal.adoptsUnsealed else {
        throw StoreError(
          .damaged,
          "the store at \(folder.path) is damaged, and no readable part records how it was sealed: nothing was changed")
      }
      // What can be read first goes into a new database; opening that one applies the seal.
      (new, header) = (.none, nil)
      return
    }
    let isNew = try !database.tableExists("fact") || SealedTable.areEmpty(in: database)
    guard isNew || request.seal.adoptsUnsealed else {
      throw StoreError(
        .otherSeal,
        """
        the store at \(folder.path) isn't sealed: it is from before the game had a seal, or somebody removed the \
        seal. If the game had none before, open it with `adoptsUnsealed: true`
        """)
    }
    var random = SystemRandomNumberGenerator()
    let salt = Data((0..<SealKey.saltBytes).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    let key = SealKey(secret: request.seal.secrets[0], salt: salt, owner: owner, player: request.seal.player)
    var header = SealHeader(
      kind: kind, salt: salt, owner: owner, hasPlayer: request.seal.player != nil, key: key)
    header.isScrubbed = isNew || kind != .sealed
    try header.prove(with: key)
    self.header = header
    new = StoreSeal(
      kind: kind, policy: request.seal.policy, keys: [key], files: FileSeal(request.seal, kind: kind, game: owner.game))
  }

  /// The seal of the existing rows, for reading them and writing more of the same. Doesn't report findings.
  var seal: StoreSeal {
    // What is written before a change of the secret must verify even if the change is never made.
    let keys = old.keys.filter { $0.id == found?.key } + old.keys.filter { $0.id != found?.key }
    return StoreSeal(kind: old.kind, policy: .quarantine, keys: keys, files: old.files)
  }

  /// Returns the seal of a store's rows, for reading only: with the secret if there is a request, otherwise without.
  static func seal(of database: Database, _ request: SealRequest?, folder: URL) throws -> StoreSeal {
    if let request { return try SealGate(request, database: database, folder: folder).old }
    let found = try SealHeader.find(in: database, folder: folder)
    guard let found else { return .none }
    return StoreSeal(
      kind: found.kind, policy: .quarantine, keys: [], files: FileSeal(withoutSecret: found.kind, game: found.game))
  }

  private static func isProven(_ header: SealHeader, _ request: SealRequest) throws -> Bool {
    try request.seal.secrets.contains { secret in
      try header.isProven(
        by: SealKey(
          secret: secret, salt: header.salt, owner: request.owner ?? header.owner, player: request.seal.player))
    }
  }

  private static func seals(
    for request: SealRequest, kind: Seal.Kind, _ found: SealHeader
  ) throws -> (old: StoreSeal, new: StoreSeal, header: SealHeader) {
    let owner = request.owner ?? found.owner
    let keys = request.seal.secrets.map {
      SealKey(secret: $0, salt: found.salt, owner: owner, player: request.seal.player)
    }
    guard try keys.contains(where: { try found.isProven(by: $0) }) else {
      throw wrongSecret(found, request, owner)
    }
    let earlier = Set(found.earlierKeys + [found.key]).subtracting([keys[0].id])
    let accepted = [keys[0]] + keys.dropFirst().filter { earlier.contains($0.id) }
    guard earlier.isSubset(of: accepted.map(\.id)) else {
      throw StoreError(
        .wrongSecret,
        "a part of the store is still sealed with an earlier secret that was not given: pass it in `previous` until "
          + "`GameData.reseal()` has returned on this device")
    }
    let policy = request.seal.policy
    var header = found
    if kind == found.kind {
      header.earlierKeys = earlier.sorted { $0.lexicographicallyPrecedes($1) }
    } else {
      // All of it is sealed again before it is used.
      (header.kind, header.earlierKeys) = (kind, [])
      header.isScrubbed = kind != .sealed
    }
    try header.prove(with: keys[0])
    let findings = SealFindings()
    let files = FileSeal(request.seal, kind: kind, game: owner.game)
    return (
      StoreSeal(kind: found.kind, policy: policy, keys: accepted, findings: findings, files: files),
      StoreSeal(
        kind: kind, policy: policy, keys: kind == found.kind ? accepted : [keys[0]], findings: findings, files: files),
      header
    )
  }

  private static func sealed(_ header: SealHeader, _ folder: URL) -> StoreError {
    StoreError(
      .otherSeal,
      """
      the store at \(folder.path) is \(header.kind.rawValue), for \(header.game), profile \(header.profile): open it \
      with `seal: .\(header.kind.rawValue)` and its secret. A seal can't be removed
      """)
  }

  private static func wrongSecret(_ header: SealHeader, _ request: SealRequest, _ owner: SealOwner) -> StoreError {
    var reasons: [String] = []
    if owner != header.owner {
      reasons.append(
        """
        it belongs to \(header.game), profile \(header.profile), but was opened as \(owner.game), profile \
        \(owner.profile)
        """)
    }
    if header.hasPlayer != (request.seal.player != nil) {
      reasons.append(
        header.hasPlayer ? "it is bound to a player, but none was given" : "it is bound to no player, but one was given"
      )
    }
    if reasons.isEmpty {
      reasons.append("the secret or the player is wrong, or its header was changed")
    }
    return StoreError(.wrongSecret, "the store's seal can't be opened: \(reasons.joined(separator: "; "))")
  }

  // MARK: Doing

  /// Verifies the existing rows, seals what is necessary, and returns the seal to use while the store is open.
  mutating func enter(_ pool: DatabasePool) throws -> StoreSeal {
    guard header != nil else { return .none }
    let gate = self
    try pool.write { database in try gate.enter(database) }
    try Self.keepLedger(of: new, on: pool)
    if header?.isScrubbed == false { try scrub(pool) }
    try resealSome(pool)
    try header?.writeCopy(in: folder)
    return new
  }

  /// Writes the header again if its row is damaged and the copy beside the database was verified. Returns nil if
  /// nothing was wrong.
  func repairHeader(_ pool: DatabasePool) throws -> StoreIncident? {
    guard let found, try pool.read({ try !SealHeader.isSound(in: $0) }) else { return nil }
    try pool.write { try found.write(to: $0) }
    return StoreIncident(
      .rebuilt, "the seal's header was damaged in the database and was restored from its copy; nothing was lost")
  }

  /// Makes the pool's writer keep the ledger. Must be called once for each pool of a sealed store, before anything is
  /// written.
  static func keepLedger(of seal: StoreSeal, on pool: DatabasePool) throws {
    guard let key = seal.keys.first else { return }
    try pool.writeWithoutTransaction { try SealLedger.keep(on: $0, key: key) }
  }

  private func enter(_ database: Database) throws {
    var count: UInt64 = 0
    var isLedgerDue = true
    if let found, let key = old.keys.first(where: { $0.id == found.key }) {
      let ledger = try SealLedger.read(from: database, key: key)
      let isSame = try ledger?.isSame(as: SealLedger.counted(in: database, key: key)) ?? false
      let audit = SealAudit(database: database, seal: old)
      let findings = try audit.run(isWhole: isSame)
      for finding in findings { new.findings.note(finding) }
      count = ledger?.count ?? 0
      // What the audit set aside and repaired isn't in any sum yet.
      isLedgerDue = !isSame || !findings.isEmpty || key.id != new.keys.first?.id || old.kind != new.kind
    }
    if old.kind != new.kind {
      var resealing = try Resealing(from: old, to: new, in: database)
      while !resealing.isDone { _ = try resealing.step(in: database) }
    }
    if isLedgerDue, let key = new.keys.first {
      try SealLedger.counted(in: database, key: key).write(to: database, key: key, count: count &+ 1)
    }
    try header?.write(to: database)
  }

  /// Rewrites the database, so that no page still holds what was there before it was encrypted.
  private mutating func scrub(_ pool: DatabasePool) throws {
    try pool.vacuum()
    // Backups are made again; these hold unencrypted data from before.
    for backup in StoreFiles(folder: folder).backups { try StoreFiles.remove(backup) }
    try update(pool) { $0.isScrubbed = true }
    try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
  }

  private mutating func resealSome(_ pool: DatabasePool) throws {
    guard header?.earlierKeys.isEmpty == false else { return }
    try Self.reseal(pool, new, folder: folder, atMost: Self.resealedAtOpening)
    header = try pool.read { try SealHeader.find(in: $0, folder: folder) } ?? header
  }

  private mutating func update(_ pool: DatabasePool, _ change: (inout SealHeader) -> Void) throws {
    guard var changed = header, let key = new.keys.first else { return }
    change(&changed)
    try changed.prove(with: key)
    try pool.write { try changed.write(to: $0) }
    header = changed
  }

  /// Seals with the current key what other keys sealed, in steps, and records in the header when that is finished.
  static func reseal(_ pool: some StoreConnections, _ seal: StoreSeal, folder: URL, atMost limit: Int = .max) throws {
    guard let key = seal.keys.first,
      try pool.read({ try SealHeader.find(in: $0, folder: folder) })?.earlierKeys.isEmpty == false
    else { return }
    var resealing = try pool.read { try Resealing(from: seal, to: seal, in: $0) }
    var left = limit
    while !resealing.isDone {
      guard left > 0 else { return }
      left -= try pool.write { try resealing.step(in: $0, bytes: min(left, Resealing.stepBytes)) }
    }
    let header = try pool.write { database -> SealHeader? in
      guard var header = try SealHeader.find(in: database, folder: folder) else { return nil }
      header.earlierKeys = []
      try header.prove(with: key)
      try header.write(to: database)
      return header
    }
    try header?.writeCopy(in: folder)
  }
}

/// What resealing needs of the connections: plain ones on opening, self-healing ones later.
protocol StoreConnections {
  func read<Value>(_ body: (Database) throws -> Value) throws -> Value
  func write<Value>(_ body: (Database) throws -> Value) throws -> Value
}

extension DatabasePool: StoreConnections {}
extension StoreDatabase: StoreConnections {}
