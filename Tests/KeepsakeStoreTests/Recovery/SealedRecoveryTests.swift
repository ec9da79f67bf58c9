import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Damage to a store that has a seal: damage by a failing disk is repaired without a finding of the seal, tampering is
/// reported all the same, and breaking something doesn't circumvent the seal.
@Suite struct SealedRecoveryTests {
  let folder: TemporaryFolder
  var files: StoreFiles { StoreFiles(folder: folder.store) }

  init() throws { folder = try TemporaryFolder() }

  /// Which page of the file the disk lost.
  enum Lost: CaseIterable {
    /// The first: the header and the schema. SQLite can't open what is left.
    case first
    /// The facts: the wallet, the cursor and the seal's header.
    case facts
    /// Versions: the index of their ids.
    case versions
  }

  private func damage(_ lost: Lost) throws {
    let page = try SealLab.edit(folder.store) { database in
      switch lost {
      case .first: 1
      case .facts: try Int.fetchOne(database, sql: "SELECT rootpage FROM sqlite_schema WHERE name = 'fact'")
      case .versions:
        try Int.fetchOne(database, sql: "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_version_1'")
      }
    }
    var bytes = try Data(contentsOf: files.database)
    let start = (try #require(page) - 1) * PageScanner.pageSize
    bytes.replaceSubrange(
      start..<(start + PageScanner.pageSize), with: Data(repeating: 0xA5, count: PageScanner.pageSize))
    try bytes.write(to: files.database)
  }

  private func removeBackups() throws {
    for backup in files.presentBackups { try FileManager.default.removeItem(at: backup) }
  }

  /// Every file with its bytes, without those that SQLite makes beside any database that it opens.
  private func untouchables() throws -> [String: Data] {
    try SealLab.files(of: folder.store).filter { !$0.key.hasSuffix("-shm") && !$0.key.hasSuffix("-wal") }
  }

  private func checkSaves(_ store: Store) throws {
    try store.read { transaction throws in
      #expect(try transaction.heads(of: "main") == [id(3)])
      let head = try #require(try transaction.version(id(3)))
      #expect(try transaction.plainContent(head.record.contents[0]) == SealLab.bytes(3))
      #expect(try transaction.heads(of: "other") == [id(1_000)])
      #expect(try transaction.cell(SealLab.level) == CellState(value: .max(.int(6))))
    }
  }

  @Test(
    "a sealed store that lost a page is recovered, verifies, and has no findings of the seal",
    arguments: SealLab.kinds, Lost.allCases)
  func recovers(kind: Seal.Kind, lost: Lost) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    if lost != .facts { try removeBackups() }
    let count = try #require(
      try StoreReader.open(at: folder.store, seal: SealRequest(secret: SealLab.secret)).ledgerCount())
    try damage(lost)
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    #expect(store.incidents.map(\.kind) == [.recovered])
    #expect(SealLab.findings(of: store) == [])
    try checkSaves(store)
    // A count that shrank would look like an older copy of the folder.
    #expect(try #require(try store.changeCount()) > count)
    if lost == .facts { #expect(try store.read { try $0.facts() }.container == ContainerID(high: 1, low: 2)) }
    try store.save(SealLab.bytes(4), as: 4)
    try store.close()
    // Complete again: under the strictest policy, without its copy of the header, and for tools.
    try FileManager.default.removeItem(at: folder.store.appendingPathComponent(SealHeader.fileName))
    let again = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject))
    #expect(again.incidents.isEmpty && SealLab.findings(of: again) == [])
    #expect(try again.read { try $0.heads(of: "main") } == [id(4)])
    try again.close()
    let reader = try StoreReader.open(at: folder.store, seal: SealRequest(secret: SealLab.secret))
    #expect(try reader.problems() == [])
  }

  @Test(
    "with another secret, or none, a damaged store is not repaired, and not a byte of it is changed",
    arguments: SealLab.kinds, Lost.allCases)
  func refusesStrangers(kind: Seal.Kind, lost: Lost) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    try damage(lost)
    for hasCopy in [true, false] {
      if !hasCopy { try FileManager.default.removeItem(at: folder.store.appendingPathComponent(SealHeader.fileName)) }
      let before = try untouchables()
      for (request, code) in [
        (SealLab.request(kind, SealLab.otherSecret), StoreError.Code.wrongSecret), (.none, .otherSeal),
      ] {
        #expect(errorCode { _ = try Store.open(at: folder.store, seal: request) } == code, "copy: \(hasCopy)")
        let isUntouched = try untouchables() == before
        #expect(isUntouched, "copy: \(hasCopy), \(code)")
      }
    }
    // The player's own game finds the header in the pages, or in a backup.
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered] && SealLab.findings(of: store) == [])
    try checkSaves(store)
  }

  @Test("if no copy of the seal's header can be read, opening throws `damaged` and changes nothing")
  func needsHeader() throws {
    try SealLab.make(SealLab.request(.sealed), at: folder.store)
    try removeBackups()
    try damage(.facts)
    try FileManager.default.removeItem(at: folder.store.appendingPathComponent(SealHeader.fileName))
    let before = try untouchables()
    #expect(errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(.sealed)) } == .damaged)
    let isUntouched = try untouchables() == before
    #expect(isUntouched)
  }

  @Test(
    "a recovery doesn't seal a forged row: the row is reported, and set aside or used according to the policy",
    arguments: [Seal.Policy.quarantine, .flag])
  func judgesForgeries(policy: Seal.Policy) throws {
    try SealLab.make(SealLab.request(.signed), at: folder.store)
    try removeBackups()
    try SealLab.forge(CellState(value: .max(.int(99))), of: SealLab.level, in: folder.store)
    try SealLab.edit(folder.store) { try $0.execute(sql: "UPDATE cell SET body = x'0011223344' WHERE key = 'coins'") }
    let store = try Store.open(at: folder.store, seal: SealLab.request(.signed, policy: policy))
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    #expect(SealLab.findings(of: store).map(\.place) == ["cell progress/level"])
    let level = try store.read { try $0.cell(SealLab.level) }
    #expect(level == (policy == .flag ? CellState(value: .max(.int(99))) : nil))
  }

  @Test("after a recovery between two secrets, the store opens unchanged with either of them", arguments: SealLab.kinds)
  func recoversBeforeRotation(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    try damage(.versions)
    // The game with both secrets recovers the store, and is killed before the seal is changed: what a recovery alone
    // leaves.
    let rotated = SealLab.request(kind, SealLab.otherSecret, previous: [SealLab.secret])
    _ = try Recovery(files, SealGate(rotated, database: nil, folder: folder.store)).run(because: ["a test"])
    let old = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject))
    #expect(old.incidents.isEmpty && SealLab.findings(of: old) == [])
    try checkSaves(old)
    try old.close()
    let new = try Store.open(at: folder.store, seal: rotated)
    defer { try? new.close() }
    #expect(new.incidents.isEmpty && SealLab.findings(of: new) == [])
    try checkSaves(new)
  }

  @Test("backups from before a store was encrypted are removed when it is encrypted")
  func clearsBackups() throws {
    let store = try Store.open(at: folder.store)
    try SealLab.fill(store)
    try store.close()
    #expect(!files.presentBackups.isEmpty)
    let sealed = try Store.open(at: folder.store, seal: SealLab.request(.sealed, adopts: true))
    #expect(files.presentBackups.isEmpty)
    try sealed.close()
    #expect(try !SealLab.contains("caughtUp", in: folder.store))
  }

  @Test("a save that a seal has set aside keeps its bytes, and later openings find nothing more to repair")
  func keepsQuarantined() throws {
    try SealLab.make(SealLab.request(.signed), at: folder.store)
    let json = String(decoding: try JSONEncoder().encode(record(3, covers: [2])), as: UTF8.self)
    try SealLab.edit(folder.store) { database in
      try database.execute(
        sql: "UPDATE version SET body = ? WHERE id = ?",
        arguments: [SealLab.forged(json, place: SealLab.headPlace), id(3).bytes])
    }
    for opening in 1...2 {
      let store = try Store.open(at: folder.store, seal: SealLab.request(.signed))
      #expect(store.incidents.isEmpty, "opening \(opening)")
      #expect(SealLab.findings(of: store).map(\.version) == (opening == 1 ? [id(3)] : []))
      #expect(try store.read { try $0.hasContent(ContentHash(of: SealLab.bytes(3))) })
      try store.close()
    }
  }

  // MARK: The doctor

  @Test(
    "the doctor needs the secret to examine a sealed store completely, and to repair a damaged signed or sealed store",
    arguments: SealLab.kinds)
  func doctor(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    func examine(_ seal: SealRequest?, repairs: Bool = false) throws -> StoreDoctor.Diagnosis {
      let doctor = try StoreDoctor(at: folder.store, seal: seal)
      defer { doctor.release() }
      let diagnosis = try doctor.examine()
      if repairs { _ = try doctor.repair(diagnosis) }
      return diagnosis
    }
    let secret = SealRequest(secret: SealLab.secret)
    #expect(try examine(secret).isSound && examine(secret).needsSecret == nil)
    #expect(try examine(nil).isSound && (examine(nil).needsSecret == nil) == (kind == .signed))
    #expect(errorCode { _ = try examine(SealRequest(secret: SealLab.otherSecret)) } == .wrongSecret)
    try damage(.versions)
    let before = try untouchables()
    let blind = try examine(nil)
    #expect(!blind.isSound && blind.recovery == nil && blind.needsSecret != nil)
    #expect(errorCode { _ = try examine(nil, repairs: true) } == .wrongSecret)
    #expect(errorCode { _ = try examine(SealRequest(secret: SealLab.otherSecret), repairs: true) } == .wrongSecret)
    let isUntouched = try untouchables() == before
    #expect(isUntouched)
    #expect(try examine(secret, repairs: true).recovery?.versions == 4)
    #expect(try examine(secret).isSound)
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject))
    defer { try? store.close() }
    #expect(store.incidents.isEmpty && SealLab.findings(of: store) == [])
    try checkSaves(store)
  }
}

extension StoreReader {
  fileprivate func ledgerCount() throws -> UInt64? {
    try read { transaction throws in
      let key = try #require(transaction.context.seal.keys.first)
      return try SealLedger.read(from: transaction.database, key: key)?.count
    }
  }
}
