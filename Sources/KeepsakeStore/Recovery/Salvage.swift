import Foundation
import GRDB
import KeepsakeReplication

/// The join of everything that can still be read of a store, from any number of sources.
///
/// Everything in a store, apart from its wallet and its facts, is a state that only grows: values join, versions
/// accumulate, covered ids form a union, and contents are named by their hash. So rows may come twice, stale and in any
/// order. For the marks of a version, for facts and for preferences, the first one wins: sources are read newest first.
///
/// A row with a valid checksum and an invalid seal isn't damaged. If nothing better is found in its place, it is copied
/// unchanged, neither joined nor sealed again. The seal's own audit judges it afterwards.
struct Salvage {
  private struct FoundVersion {
    var stored: StoredVersion
    var marks: VersionMarks
    var position: Int64
    /// The order in which versions were found. Positions are comparable within one source, and between sources of one
    /// store.
    var order: Int
  }

  private(set) var transaction: StoreTransaction
  private var versions: [VersionID: FoundVersion] = [:]
  private var cells: [CellKey: CellState] = [:]
  /// Verified bodies of preferences.
  private var preferences: [String: Data] = [:]
  private var covered: Set<VersionID> = []
  /// Verified bodies of facts.
  private var facts: [String: Data] = [:]
  /// Without its operations, which are facts of their own.
  private var wallet: WalletBook?
  private var walletPages: [String: WalletPage] = [:]
  /// Undamaged rows of the store itself whose seal doesn't verify, by their identities.
  private var strange: [String: SalvagedRow] = [:]
  private var quarantined: [SalvagedRow] = []
  /// The highest count of all ledgers that were found.
  private var changeCount: UInt64 = 0
  private let seal: StoreSeal
  /// Contents of the new database whose bytes were decoded and match their hash.
  private var proven: Set<Data> = []
  /// Number of versions whose bytes no source had in full, for the report.
  private(set) var lostContents = 0
  /// Slots whose newest save was lost, so that the one before it is shown again.
  private(set) var steppedBack: [String] = []
  /// What happened to the wallet, if a part of it was lost, for the report.
  private(set) var walletLoss: String?

  init(into database: Database, seal: StoreSeal) {
    self.seal = seal
    transaction = StoreTransaction(database, in: StoreContext(seal: seal))
  }

  /// Whether nothing was found that a store contains.
  var isEmpty: Bool {
    versions.isEmpty && cells.isEmpty && preferences.isEmpty && facts.isEmpty && wallet == nil && walletPages.isEmpty
      && covered.isEmpty && strange.isEmpty && scoreCount == 0 && performedCount == 0
  }

  var versionCount: Int { versions.count }
  /// Values such as progress, and preferences.
  var valueCount: Int { cells.count + preferences.count }
  var contentCount: Int { proven.count }
  /// Rows of scores already written. A row found twice counts twice.
  private var scoreCount = 0
  /// Rows of performed operations already written, counted in the same way.
  private var performedCount = 0

  // MARK: Gathering

  /// Adds a row if it can be verified, and ignores it otherwise. Throws only errors of the new database.
  ///
  /// - Parameter isStore: Whether SQLite read it from the store itself, and it wasn't only found in pages or in a copy.
  mutating func add(_ row: SalvagedRow, isStore: Bool = false) throws {
    if isStore, let place = Self.place(of: row), isStrange(row, place) { strange[place] = row }
    switch row.table {
    case "content": try addContent(row)
    case "covered":
      guard let id = row.data("id"), let checksum = row.data("checksum"),
        CoveredRow.isSound(id: id, checksum: checksum),
        let version = VersionID(bytes: id)
      else { return }
      covered.insert(version)
    case "performed":
      guard let performed = PerformedRow(row) else { return }
      // Inserted directly, like scores.
      try transaction.insert(performed)
      performedCount += 1
    case "version": addVersion(row)
    case "cell":
      guard let collection = row.text("collection"), let name = row.text("key"), let body = row.data("body") else {
        return
      }
      let key = CellKey(collection: collection, key: name)
      guard let state: CellState = proof(of: body, place: RowIdentity.cell(key)) else { return }
      cells[key] = cells[key]?.joined(with: state) ?? state
    case "preference":
      guard let name = row.text("name"), preferences[name] == nil, let body = row.data("body"),
        isProven(body, place: RowIdentity.preference(name))
      else { return }
      preferences[name] = body
    case "fact": try addFact(row)
    case "score":
      guard let score = ScoreRow(row), isProven(score.body, place: score.place) else { return }
      // Inserted directly into the new database: there may be a million.
      try transaction.insert(score, or: "IGNORE")
      scoreCount += 1
    case "quarantine":
      if !quarantined.contains(where: { $0.values == row.values }) { quarantined.append(row) }
    case "ledger":
      let counts = seal.keys.compactMap { key in row.data("body").flatMap { SealLedger($0, key: key)?.count } }
      changeCount = counts.reduce(changeCount, max)
    default: return
    }
  }

  private mutating func addVersion(_ row: SalvagedRow) {
    guard let found = VersionRow(row), let position = row.integer("position"), versions[found.id] == nil,
      let record: VersionRecord = proof(of: found.body, place: found.place), record.id == found.id
    else { return }
    let marks = found.marks
    versions[found.id] = FoundVersion(
      stored: StoredVersion(record: record, acknowledged: marks.acknowledged, offered: marks.offered),
      marks: marks, position: position, order: versions.count)
    covered.formUnion(record.covers)
  }

  private mutating func addFact(_ row: SalvagedRow) throws {
    // The seal's header isn't sealed, and is written again separately.
    guard let name = row.text("name"), name != SealHeader.factName, let body = row.data("body") else { return }
    if name == WalletBook.name {
      guard let found: WalletBook = proof(of: body, place: RowIdentity.fact(name)), found.objection == nil else {
        return
      }
      for key in found.settledClaims { try transaction.insert(PerformedRow(claim: key)) }
      wallet = wallet.map { Self.further($0.state, found.state) ? found : $0 } ?? found
    } else if name > WalletPage.names.first, name < WalletPage.names.last {
      guard let found: WalletPage = proof(of: body, place: RowIdentity.fact(name)), found.isSound,
        WalletPage.name(of: found.first) == name
      else { return }
      // A page only grows: the longer one contains all of the shorter. So does what is recorded of its operations.
      if found.size > walletPages[name]?.size ?? (-1, 0) { walletPages[name] = found }
    } else if facts[name] == nil, isProven(body, place: RowIdentity.fact(name)) {
      facts[name] = body
    }
  }

  /// Returns whether the other wallet is more recent: the later of two successive chains, or the longer state of one
  /// chain.
  private static func further(_ known: WalletState, _ other: WalletState) -> Bool {
    if other.follows == known.chain { return true }
    guard other.chain == known.chain else { return false }
    if other.head.count != known.head.count { return other.head.count > known.head.count }
    if other.statement != known.statement { return other.statement > known.statement }
    return other.acknowledged.count > known.acknowledged.count
  }

  private func proof<Value: Decodable>(of body: Data, place: String) -> Value? {
    do {
      return try transaction.codec.decode(Value.self, from: body, place: place, strictly: true)
    } catch {
      return nil  // Altered, stale beyond understanding, or no row at all: other sources may have it.
    }
  }

  private func isProven(_ body: Data, place: String) -> Bool {
    do {
      _ = try transaction.codec.json(in: body, place: place, strictly: true)
      return true
    } catch {
      return false  // As above.
    }
  }

  // MARK: Rows that don't verify

  private static func place(of row: SalvagedRow) -> String? {
    switch row.table {
    case "fact": return row.text("name").map(RowIdentity.fact)
    case "cell":
      guard let collection = row.text("collection"), let key = row.text("key") else { return nil }
      return RowIdentity.cell(CellKey(collection: collection, key: key))
    case "preference": return row.text("name").map(RowIdentity.preference)
    case "version": return VersionRow(row)?.place
    case "score": return ScoreRow(row)?.place
    default: return nil
    }
  }

  private func isStrange(_ row: SalvagedRow, _ place: String) -> Bool {
    guard seal.kind != .none, place != RowIdentity.fact(SealHeader.factName), let body = row.data("body") else {
      return false
    }
    do {
      _ = try seal.open(RowCodec.payload(of: body, place: place), place: place, strictly: true)
      return false
    } catch let error as StoreError {
      return error.code == .tampered
    } catch {
      return false
    }
  }

  /// Writes the header that describes the store's seal, and what the seal keeps besides the rows. Must be last, because
  /// the ledger sums up the other rows.
  func writeSeal(_ header: SealHeader) throws {
    for (_, row) in strange.sorted(by: { $0.key < $1.key }) {
      // A better row may already have its place.
      let columns = row.values.keys.filter { $0 != "position" }.sorted()
      try insert(row, columns, or: "IGNORE")
    }
    try HeadTable.rebuild(in: transaction.database)
    for row in quarantined { try insert(row, ["place", "outcome", "body"], or: "ABORT") }
    try header.write(to: transaction.database)
    guard let key = seal.keys.first(where: { $0.id == header.key }) else { return }
    // A sum over what was found, written in the step that stores it: what is missing was lost, not removed by an
    // attacker.
    try SealLedger.counted(in: transaction.database, key: key)
      .write(to: transaction.database, key: key, count: changeCount &+ 1)
  }

  private func insert(_ row: SalvagedRow, _ columns: [String], or otherwise: String) throws {
    let marks = columns.map { _ in "?" }.joined(separator: ", ")
    try transaction.run(
      "INSERT OR \(otherwise) INTO \(row.table) (\(columns.joined(separator: ", "))) VALUES (\(marks))",
      StatementArguments(columns.map { row.values[$0] ?? .null }))
  }

  // MARK: Contents

  private mutating func addContent(_ row: SalvagedRow) throws {
    guard let hash = row.data("hash"), ContentHash(bytes: hash) != nil else { return }
    do {
      try insert(row, row.values.keys.filter { $0 != "position" }.sorted(), or: "IGNORE")
    } catch let error as DatabaseError
      where error.resultCode == .SQLITE_CONSTRAINT || error.resultCode == .SQLITE_TOOBIG
    {
      return  // Bytes that only looked like a content.
    }
  }

  /// Deletes contents that don't match their hash, so that another source can provide them. Must be called after each
  /// source.
  ///
  /// Contents whose base is missing stay for the time being: it may still be found.
  mutating func proveContents() throws {
    let contents = transaction.contents
    for hash in try Data.fetchAll(transaction.database, sql: "SELECT hash FROM content ORDER BY position")
    where !proven.contains(hash) {
      guard let name = ContentHash(bytes: hash) else { continue }
      switch try contents.soundness(name) {
      case .sound: proven.insert(hash)
      case .leansOnMissing: continue
      case .damaged:
        // The fault may be in its bases; each of them is examined in turn, on its own.
        if try baseIsProven(name) { try transaction.run("DELETE FROM content WHERE hash = ?", [hash]) }
      }
    }
  }

  /// Returns whether a content's base is intact, so that the content itself is what is damaged.
  private func baseIsProven(_ hash: ContentHash) throws -> Bool {
    let row = try Row.fetchOne(
      transaction.database, sql: "SELECT base FROM content WHERE hash = ?", arguments: [hash.bytes])
    guard let value: DatabaseValue = row?["base"], !value.isNull else { return true }
    guard let base = Data.fromDatabaseValue(value), let name = ContentHash(bytes: base), name != hash else {
      return true
    }
    if proven.contains(base) { return true }
    return try transaction.contents.soundness(name) == .sound
  }

  // MARK: Writing

  /// Writes everything that was gathered into the new database.
  mutating func write() throws {
    try dropUnprovenContents()
    try writeFacts()
    for (key, state) in cells.sorted(by: { $0.key < $1.key }) {
      try transaction.setCell(CellUpdate(key: key, state: state))
    }
    for (name, body) in preferences.sorted(by: { $0.key < $1.key }) {
      try transaction.run("INSERT INTO preference (name, body) VALUES (?, ?)", [name, body])
    }
    try writeVersions()
    try writeOutbox()
  }

  /// An unreadable content is better missing: it is then requested from the cloud again.
  private mutating func dropUnprovenContents() throws {
    try proveContents()
    for hash in try Data.fetchAll(transaction.database, sql: "SELECT hash FROM content") where !proven.contains(hash) {
      try transaction.run("DELETE FROM content WHERE hash = ?", [hash])
    }
  }

  private mutating func writeFacts() throws {
    for (name, body) in facts.sorted(by: { $0.key < $1.key }) {
      try transaction.run("INSERT INTO fact (name, body) VALUES (?, ?)", [name, body])
    }
    for (name, page) in walletPages.sorted(by: { $0.key < $1.key }) { try transaction.setFact(name, page) }
    if let wallet {
      try transaction.setFact(WalletBook.name, wallet)
      try transaction.continueWallet(with: walletPages.values)
    } else {
      let message = try transaction.mendWallet()?.message
      walletLoss =
        message
        ?? "nothing of the wallet could be read, so a new one was started; a cloud that knows the old one restores it"
    }
    // An older source may have some that the game has taken since.
    try transaction.removeTakenNotices()
    var device = try transaction.facts()
    if device.container != nil, device.cursor.seq > 0 {
      // A mark that the cloud never issued: at the next exchange, the cloud makes this device start over, and
      // everything that either side has is exchanged again. That replaces what was in the outbox and what was staged.
      device.cursor.mark ^= 0x5245_434F_5645_5259
      try transaction.setFacts(device)
    }
  }

  private mutating func writeVersions() throws {
    var position: Int64 = 0
    for id in inOrder() {
      guard var found = versions[id] else { continue }
      position += 1
      found.position = position
      let missing = try found.stored.record.contents.contains { hash in try !transaction.contents.has(hash) }
      if missing, !found.marks.pruned {
        lostContents += 1
        // Of a replaced version, only the record is of use; a head must remain visible as damaged.
        if covered.contains(id) { found.marks.pruned = true }
      }
      // Any other pruned version had been replaced.
      if found.marks.pruned, !found.marks.notDownloaded { covered.insert(id) }
      versions[id] = found
    }
    try stepBack()
    for id in inOrder() {
      guard let found = versions[id] else { continue }
      try transaction.putVersion(found.stored, marks: found.marks)
    }
    for id in covered.sorted() { try transaction.markCovered(id) }
  }

  /// Returns the ids in the order in which the store learned of the versions.
  private func inOrder() -> [VersionID] {
    versions.keys.sorted { left, right in
      guard let a = versions[left], let b = versions[right] else { return left < right }
      return a.position != b.position ? a.position < b.position : left < right
    }
  }

  /// If every version of a slot is recorded as replaced, the one that replaced them is lost: the newest readable
  /// version becomes the head again. Otherwise the player would find an empty slot.
  private mutating func stepBack() throws {
    var slots: [String: [VersionID]] = [:]
    for id in inOrder() { slots[versions[id]?.stored.record.slot ?? "", default: []].append(id) }
    for (slot, ids) in slots.sorted(by: { $0.key < $1.key }) where ids.allSatisfy(covered.contains) {
      guard let newest = ids.last(where: { versions[$0]?.marks.pruned == false }) else { continue }
      covered.remove(newest)
      // Other devices may have replaced it already, or never have seen it. Either way it is offered again, unless the
      // slot is local.
      versions[newest]?.stored.acknowledged =
        try SlotKey(text: slot).isLocal || transaction.localDeclaration(of: slot) != nil
      steppedBack.append(slot)
    }
  }

  /// Adds everything that the cloud may not have, as if it had just been committed.
  private mutating func writeOutbox() throws {
    try transaction.offerAgain(
      inOrder().reversed().compactMap { versions[$0]?.stored }.filter { !$0.acknowledged }.map(\.record),
      cells.sorted(by: { $0.key < $1.key }).map { CellUpdate(key: $0.key, state: $0.value) })
  }
}

extension ContentTable {
  enum Soundness {
    case sound
    /// The content, or one that it builds on, isn't as it should be.
    case damaged
    /// A content that it builds on is missing.
    case leansOnMissing
  }

  /// Returns whether a content can be read. Costs decoding it.
  func soundness(_ hash: ContentHash) throws -> Soundness {
    do {
      _ = try plain(hash)
      return .sound
    } catch is StoreError {
      var next = try entryIfReadable(hash)?.base
      var passed: Set<ContentHash> = [hash]
      while let base = next, passed.insert(base).inserted {
        guard try has(base) else { return .leansOnMissing }
        next = try entryIfReadable(base)?.base
      }
      return .damaged
    }
  }

  private func entryIfReadable(_ hash: ContentHash) throws -> Entry? {
    do {
      return try entry(hash)
    } catch is StoreError {
      return nil  // Its columns are altered: then it is itself what is damaged.
    }
  }
}
