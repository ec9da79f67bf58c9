import Foundation
import GRDB
import KeepsakeReplication
import Testing

@testable import KeepsakeStore

/// Other hands in a sealed store: what they change is found, and the player who changed nothing loses nothing by it.
@Suite struct TamperTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Reads every row of a store with the secret; nil if all is well.
  private static func objection(_ reader: StoreReader) -> StoreError.Code? {
    errorCode {
      try reader.read { transaction throws in
        _ = try transaction.facts()
        _ = try transaction.wallet()
        _ = try transaction.cells(in: nil)
        for slot in try transaction.slots() { _ = try transaction.history(of: slot) }
        _ = try transaction.outbox(limit: 100)
        _ = try transaction.staged()
      }
    }
  }

  @Test("no byte of any row can be changed unnoticed, even by who repairs the checksum", arguments: SealLab.kinds)
  func everyByte(kind: Seal.Kind) async throws {
    let url = folder.store
    try SealLab.make(SealLab.request(kind), at: url)
    let (rows, flips, wrong) = try await SealLab.onThread { try Self.flipEveryByte(of: url) }
    #expect(rows == 11 && flips > 2_000)
    #expect(wrong == [])
    print("\(kind.rawValue): \(flips) bytes of \(rows) rows changed, with the checksum wrong and right")
  }

  /// Changes each byte of each row and puts it back; `wrong` tells what was not answered as it should be.
  private static func flipEveryByte(of url: URL) throws -> (rows: Int, flips: Int, wrong: [String]) {
    let reader = try StoreReader.open(at: url, seal: SealRequest(secret: SealLab.secret))
    let queue = try DatabaseQueue(path: url.appendingPathComponent(Store.databaseName).path)
    defer { try? queue.close() }
    try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = OFF") }
    let rows = try queue.read { database in
      var rows: [SealedTable.SealedRow] = []
      try SealedTable.forEach(in: database) { rows.append($0) }
      return rows
    }
    var flips = 0
    var wrong: [String] = []
    func expect(_ code: StoreError.Code?, _ what: String) {
      let found = objection(reader)
      if found != code { wrong.append("\(what): \(found?.rawValue ?? "unnoticed")") }
    }
    expect(nil, "before")
    for row in rows {
      guard let body = row.body, let place = row.place else {
        wrong.append("a row of \(row.table) without a place")
        continue
      }
      for index in body.indices {
        var changed = body
        changed[index] ^= 1 << UInt8(index % 8)
        try queue.write { try row.table.update(row, body: changed, in: $0) }
        expect(.damaged, "\(place), byte \(index)")
        if index >= RowCodec.checksumLength {
          let payload = changed.dropFirst(RowCodec.checksumLength)
          let repaired = RowCodec.checksum(of: payload, place: place) + payload
          try queue.write { try row.table.update(row, body: repaired, in: $0) }
          expect(.tampered, "\(place), byte \(index), checksum repaired")
        }
        flips += 1
      }
      try queue.write { try row.table.update(row, body: body, in: $0) }
    }
    expect(nil, "after")
    return (rows.count, flips, wrong)
  }

  @Test("no byte of a sealed content, nor what is said of it, can be changed unnoticed")
  func everyFrameByte() throws {
    let store = try Store.open(at: folder.store, seal: SealLab.request(.sealed))
    let bytes = Data("a short save".utf8)
    try store.save(bytes, as: 1)
    try store.close()
    let hash = ContentHash(of: bytes)
    let frame = try SealLab.edit(folder.store) { database in
      try #require(try Data.fetchOne(database, sql: "SELECT bytes FROM content"))
    }
    func load() -> StoreError.Code? {
      errorCode {
        let reader = try StoreReader.open(at: folder.store, seal: SealRequest(secret: SealLab.secret))
        _ = try reader.read { try $0.plainContent(hash) }
      }
    }
    #expect(load() == nil)
    for index in frame.indices {
      var changed = frame
      changed[index] ^= 0x10
      try SealLab.edit(folder.store) { try $0.execute(sql: "UPDATE content SET bytes = ?", arguments: [changed]) }
      #expect(load() == .damaged, "byte \(index)")
    }
    // The frame in clear, as an unsealed store has it.
    let clear = try Zstd.compress(bytes)
    for edit in [
      ("UPDATE content SET bytes = ?", [clear.databaseValue]), ("UPDATE content SET bytes = ?, length = 13", [frame.databaseValue]),
    ] {
      try SealLab.edit(folder.store) { try $0.execute(sql: edit.0, arguments: StatementArguments(edit.1)) }
      #expect(load() == .damaged, "\(edit.0)")
    }
    try SealLab.edit(folder.store) { try $0.execute(sql: "UPDATE content SET bytes = ?, length = 12", arguments: [frame]) }
    #expect(load() == nil)
  }

  /// A way to move a row to where it doesn't belong.
  struct Move: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var sql: String
    /// The row in quarantine, by its new name.
    var place: String
  }

  /// The newest save of `SealLab.fill`, as it stands once the store was opened again.
  static let headPlace = RowPlace.version(id(3), slot: "main", savedAt: 3, marks: VersionMarks())

  static let moves = [
    Move(
      testDescription: "a value under another key",
      sql: "UPDATE cell SET body = (SELECT body FROM cell WHERE key = 'coins') WHERE key = 'level'",
      place: "cell progress/level"),
    Move(
      testDescription: "a value's key renamed", sql: "UPDATE cell SET key = 'stars' WHERE key = 'coins'",
      place: "cell progress/stars"),
    Move(
      testDescription: "a value's collection renamed", sql: "UPDATE cell SET collection = 'scores' WHERE key = 'coins'",
      place: "cell scores/coins"),
    Move(
      testDescription: "another version's record",
      sql: "UPDATE version SET body = (SELECT body FROM version WHERE position = 2) WHERE position = 3",
      place: RowPlace.version(id(3), slot: "main", savedAt: 3, marks: VersionMarks())),
    Move(
      testDescription: "another slot's record",
      sql: "UPDATE version SET body = (SELECT body FROM version WHERE slot = 'other') WHERE position = 3",
      place: RowPlace.version(id(3), slot: "main", savedAt: 3, marks: VersionMarks())),
    Move(
      testDescription: "a version under another id", sql: "UPDATE version SET id = x'00000000000000000000000000000042' WHERE position = 3",
      place: RowPlace.version(id(0x42), slot: "main", savedAt: 3, marks: VersionMarks())),
    Move(
      testDescription: "a fact under another name", sql: "UPDATE fact SET name = 'purse' WHERE name = 'wallet'", place: "fact purse"),
    Move(testDescription: "a group of the outbox under another number", sql: "UPDATE outbox SET id = 77 WHERE id = 1", place: "outbox 77"),
  ]

  @Test(
    "a row that is moved is set aside, even where its checksum is made to fit its new place",
    arguments: SealLab.kinds, Self.moves)
  func movedRows(kind: Seal.Kind, move: Move) throws {
    for repaired in [false, true] {
      let url = folder.url.appendingPathComponent("\(repaired)")
      try SealLab.make(SealLab.request(kind), at: url)
      try SealLab.edit(url) { database in
        try database.execute(sql: move.sql)
        guard repaired else { return }
        var rows: [SealedTable.SealedRow] = []
        try SealedTable.forEach(in: database) { if $0.place == move.place { rows.append($0) } }
        let row = try #require(rows.first)
        let payload = try #require(row.body).dropFirst(RowCodec.checksumLength)
        try row.table.update(row, body: RowCodec.checksum(of: payload, place: move.place) + payload, in: database)
      }
      let store = try Store.open(at: url, seal: SealLab.request(kind))
      let findings = SealLab.findings(of: store)
      // A wrong checksum is a broken disk: the row is gone, and nobody is blamed.
      #expect(store.incidents.contains { $0.kind == .recovered } == !repaired)
      #expect(findings.map(\.place) == (repaired ? [move.place] : []))
      #expect(findings.allSatisfy { !$0.isDamage && $0.outcome == .setAside })
      try store.close()
      let kept = try SealLab.edit(url) { try Row.fetchAll($0, sql: "SELECT place, outcome, body FROM quarantine") }
      #expect(kept.map { $0["place"] as String? } == findings.map(\.place))
      let again = try Store.open(at: url, seal: SealLab.request(kind))
      #expect(SealLab.findings(of: again) == [])
      try again.close()
    }
  }

  @Test("rows of another store, player or profile are not taken, whatever the secret", arguments: SealLab.kinds)
  func strangersRows(kind: Seal.Kind) throws {
    let twins: [(String, SealRequest)] = [
      ("another store", SealLab.request(kind, player: "ada")), ("another player", SealLab.request(kind, player: "eve")),
      ("another profile", SealLab.request(kind, player: "ada", owner: SealOwner(game: "com.example.space", profile: "two"))),
      ("another game", SealLab.request(kind, player: "ada", owner: SealOwner(game: "com.example.dungeon", profile: "default"))),
      ("another secret", SealLab.request(kind, SealLab.otherSecret, player: "ada")),
    ]
    for (what, request) in twins {
      let mine = folder.url.appendingPathComponent("mine of \(what)")
      let theirs = folder.url.appendingPathComponent(what)
      try SealLab.make(SealLab.request(kind, player: "ada"), at: mine)
      try SealLab.make(request, at: theirs)
      // The same names in both: only the keys differ. With the other's salt too, where only the player or profile does.
      let (level, wallet, head) = try SealLab.edit(theirs) { database in
        (
          try Data.fetchOne(database, sql: "SELECT body FROM cell WHERE key = 'level'"),
          try Data.fetchOne(database, sql: "SELECT body FROM fact WHERE name = 'wallet'"),
          try Data.fetchOne(database, sql: "SELECT body FROM version WHERE position = 3")
        )
      }
      try SealLab.edit(mine) { database in
        try database.execute(sql: "UPDATE cell SET body = ? WHERE key = 'level'", arguments: [level])
        try database.execute(sql: "UPDATE fact SET body = ? WHERE name = 'wallet'", arguments: [wallet])
        try database.execute(sql: "UPDATE version SET body = ? WHERE position = 3", arguments: [head])
      }
      let store = try Store.open(at: mine, seal: SealLab.request(kind, player: "ada"))
      let findings = SealLab.findings(of: store)
      #expect(Set(findings.map(\.place)) == ["cell progress/level", "fact wallet", Self.headPlace], "\(what)")
      #expect(findings.allSatisfy { !$0.isDamage }, "\(what)")
      try store.close()
    }
  }

  // MARK: Policies

  /// Raises a level and puts a save in place of another, as a save editor would.
  private func cheat(_ url: URL) throws {
    try SealLab.forge(CellState(value: .max(.int(99))), of: SealLab.level, in: url)
    let json = try JSONEncoder().encode(
      record(3, covers: [2], contents: [ContentHash(of: SealLab.bytes(1))], length: SealLab.bytes(1).count))
    try SealLab.edit(url) { database in
      try database.execute(
        sql: "UPDATE version SET body = ? WHERE position = 3",
        arguments: [SealLab.forged(String(decoding: json, as: UTF8.self), place: Self.headPlace)])
    }
  }

  @Test("quarantine: a cheat gains nothing, the newest save that verifies stands, and what was forged is kept", arguments: SealLab.kinds)
  func quarantines(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    try cheat(folder.store)
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    defer { try? store.close() }
    let findings = SealLab.findings(of: store)
    #expect(Set(findings.map(\.place)) == ["cell progress/level", Self.headPlace])
    let version = try #require(findings.first { $0.version != nil })
    #expect(version.version == id(3) && version.slot == "main" && version.usedInstead == id(2))
    try store.read { transaction throws in
      #expect(try transaction.cell(SealLab.level) == nil)
      #expect(try transaction.cell(SealLab.coins) == CellState(value: .max(.int(60))))
      #expect(try transaction.heads(of: "main") == [id(2)])
      #expect(try transaction.heads(of: "other") == [id(1_000)])
      let head = try #require(try transaction.version(id(2)))
      #expect(try transaction.plainContent(head.record.contents[0]) == SealLab.bytes(2))
      // The cloud is asked for everything once more: it may have the value that was forged here.
      #expect(try transaction.facts().cursor == Cursor(epoch: 3, seq: 0, mark: 0))
      #expect(try transaction.facts().caughtUp)
      #expect(try transaction.staged() == [])
    }
    try store.save(SealLab.bytes(4), as: 4)
    #expect(try store.read { try $0.heads(of: "main") }.contains(id(4)))
  }

  @Test("flag: what was forged is used, and reported at each opening from then on, also when the game has written it anew")
  func flags() throws {
    try SealLab.make(SealLab.request(.signed), at: folder.store)
    try cheat(folder.store)
    for _ in 0..<2 {
      let store = try Store.open(at: folder.store, seal: SealLab.request(.signed, policy: .flag))
      let findings = SealLab.findings(of: store)
      #expect(Set(findings.map(\.place)) == ["cell progress/level", Self.headPlace])
      #expect(findings.allSatisfy { $0.outcome == .used && !$0.isDamage })
      try store.read { transaction throws in
        #expect(try transaction.cell(SealLab.level) == CellState(value: .max(.int(99))))
        #expect(try transaction.heads(of: "main") == [id(3)])
        #expect(try transaction.facts().cursor.seq == 7)
      }
      // A value that goes on from a forged one verifies, and is no better than that.
      try store.write { transaction throws in
        try transaction.setCell(CellUpdate(key: SealLab.level, state: CellState(value: .max(.int(99)))))
      }
      try store.close()
    }
    let kept = try SealLab.edit(folder.store) { try Row.fetchAll($0, sql: "SELECT place, outcome FROM quarantine ORDER BY place") }
    #expect(kept.map { $0["outcome"] as String? } == ["used", "used"])
    // Damage is damage under any policy: nobody can say what it means.
    try SealLab.edit(folder.store) { database in
      try database.execute(sql: "UPDATE cell SET body = x'0011223344' WHERE key = 'coins'")
    }
    let store = try Store.open(at: folder.store, seal: SealLab.request(.signed, policy: .flag))
    defer { try? store.close() }
    #expect(store.incidents.map(\.kind) == [.recovered])
    // What was used stays told, across a recovery too.
    #expect(Set(SealLab.findings(of: store).map(\.place)) == ["cell progress/level", Self.headPlace])
  }

  @Test("reject: a forged store isn't opened, nothing in it is changed, and without the forgery it opens again", arguments: SealLab.kinds)
  func rejects(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    let good = try SealLab.edit(folder.store) { database in
      try #require(try Data.fetchOne(database, sql: "SELECT body FROM cell WHERE key = 'level'"))
    }
    try SealLab.forge(CellState(value: .max(.int(99))), of: SealLab.level, in: folder.store)
    let before = try SealLab.rows(of: folder.store)
    #expect(errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject)) } == .tampered)
    #expect(try SealLab.rows(of: folder.store) == before)
    try SealLab.edit(folder.store) { try $0.execute(sql: "UPDATE cell SET body = ? WHERE key = 'level'", arguments: [good]) }
    try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject)).close()
  }

  @Test("what is changed while the game runs is not believed either", arguments: Seal.Policy.all)
  func whileRunning(policy: Seal.Policy) throws {
    let store = try Store.open(at: folder.store, seal: SealLab.request(.signed, policy: policy))
    defer { try? store.close() }
    try SealLab.fill(store)
    try SealLab.forge(CellState(value: .max(.int(99))), of: SealLab.level, in: folder.store)
    if policy == .flag {
      #expect(try store.read { try $0.cell(SealLab.level) } == CellState(value: .max(.int(99))))
      #expect(SealLab.findings(of: store).map(\.place) == ["cell progress/level"])
    } else {
      #expect(errorCode { _ = try store.read { try $0.cell(SealLab.level) } } == .tampered)
    }
  }

  /// What somebody does who can't sign, and so only takes away what was signed, or puts it back.
  struct Replay: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var sql: [String]
  }

  static let replays = [
    Replay(
      testDescription: "a value put back as it was",
      sql: ["UPDATE cell SET body = (SELECT body FROM old.cell AS o WHERE o.key = cell.key) WHERE key = 'level'"]),
    Replay(
      testDescription: "money put back as it was",
      sql: ["UPDATE fact SET body = (SELECT body FROM old.fact AS o WHERE o.name = 'wallet') WHERE name = 'wallet'"]),
    Replay(testDescription: "a value taken out", sql: ["DELETE FROM cell WHERE key = 'level'"]),
    Replay(testDescription: "money taken out", sql: ["DELETE FROM fact WHERE name = 'wallet'"]),
    Replay(
      testDescription: "the newest save taken out",
      sql: ["DELETE FROM version WHERE position = 4", "DELETE FROM covered WHERE id IN (SELECT id FROM version WHERE position = 3)"]),
    Replay(
      testDescription: "an earlier save made to stand",
      sql: [
        "INSERT INTO covered SELECT id, covered_checksum(id) FROM version WHERE slot = 'main' AND id NOT IN (SELECT id FROM covered)",
        "DELETE FROM covered WHERE id IN (SELECT id FROM version WHERE position = 2)",
      ]),
    Replay(
      testDescription: "a value put back with the ledger of another day",
      sql: [
        "UPDATE cell SET body = (SELECT body FROM old.cell AS o WHERE o.key = cell.key) WHERE key = 'level'",
        "UPDATE ledger SET body = (SELECT body FROM old.ledger)",
      ]),
    Replay(testDescription: "the ledger taken out", sql: ["DELETE FROM ledger"]),
    Replay(
      testDescription: "the ledger's count set back", sql: ["UPDATE ledger SET body = CAST(x'0000000000000001' || substr(body, 9) AS BLOB)"]
    ),
  ]

  @Test(
    "rows that are taken out or put back as they were are noticed: money that was spent is not there again unnoticed",
    arguments: SealLab.kinds, Self.replays)
  func replayed(kind: Seal.Kind, replay: Replay) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    let old = folder.url.appendingPathComponent("yesterday")
    try FileManager.default.copyItem(at: folder.store, to: old)
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    try store.write { transaction throws in
      try transaction.setCell(CellUpdate(key: SealLab.level, state: CellState(value: .max(.int(7)))))
      var wallet = Wallet(try #require(try transaction.wallet()))
      try wallet.perform(
        WalletOperation(
          id: OperationID(high: 1, low: 1), kind: .earn, currency: "gems", amount: 5, reason: "level 7", goods: []))
      try transaction.setWallet(wallet.state)
    }
    try store.save(SealLab.bytes(4), as: 4)
    try store.close()
    // Nothing is wrong with any of it yet, and the count has grown.
    let untouched = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject))
    #expect(SealLab.findings(of: untouched) == [])
    let count = try #require(try untouched.changeCount())
    try untouched.close()
    let yesterday = try Store.open(at: old, seal: SealLab.request(kind, policy: .reject))
    #expect(try yesterday.changeCount().map { $0 < count } == true)
    try yesterday.close()

    let queue = try DatabaseQueue(path: folder.store.appendingPathComponent(Store.databaseName).path)
    try queue.writeWithoutTransaction { database in
      // Other hands know the format.
      database.add(
        function: DatabaseFunction("covered_checksum", argumentCount: 1, pure: true) { values in
          Data.fromDatabaseValue(values[0]).flatMap { VersionID(bytes: $0) }.map { CoveredRow.checksum(of: $0) }
        })
      try database.execute(
        sql: "ATTACH DATABASE ? AS old", arguments: [old.appendingPathComponent(Store.databaseName).path])
      for sql in replay.sql {
        try database.execute(sql: sql)
        #expect(database.changesCount > 0, "\(sql)")
      }
    }
    try queue.close()
    #expect(errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject)) } == .tampered)
    let found = try Store.open(at: folder.store, seal: SealLab.request(kind))
    #expect(SealLab.findings(of: found) == [.rollback])
    #expect(try found.read { try $0.facts().cursor.seq } == 0)
    try found.save(SealLab.bytes(5), as: 5)
    try found.close()
    // Told once; from here on the store is what it is.
    let again = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject))
    #expect(SealLab.findings(of: again) == [])
    try again.close()
  }

  @Test("a sum that breaks while the game runs keeps nobody from saving, and is found at the next start")
  func brokenLedger() throws {
    let store = try Store.open(at: folder.store, seal: SealLab.request(.signed))
    try SealLab.fill(store)
    try SealLab.edit(folder.store) { try $0.execute(sql: "UPDATE ledger SET body = x'00'") }
    try store.save(SealLab.bytes(4), as: 4)
    #expect(errorCode { _ = try store.changeCount() } == .tampered)
    try store.close()
    let again = try Store.open(at: folder.store, seal: SealLab.request(.signed))
    defer { try? again.close() }
    #expect(SealLab.findings(of: again) == [.rollback])
    #expect(try again.read { try $0.heads(of: "main") } == [id(4)])
    #expect(try again.changeCount() != nil)
  }

  @Test("a save that is moved into another slot is noticed", arguments: SealLab.kinds)
  func otherSlot(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    let before = RowPlace.version(id(1_000), slot: "other", savedAt: 1_000, marks: VersionMarks(acknowledged: true, offered: true))
    let after = RowPlace.version(id(1_000), slot: "main", savedAt: 1_000, marks: VersionMarks(acknowledged: true, offered: true))
    try SealLab.edit(folder.store) { database in
      let body = try #require(try Data.fetchOne(database, sql: "SELECT body FROM version WHERE slot = 'other'"))
      let payload = try RowCodec.payload(of: body, place: before)
      try database.execute(
        sql: "UPDATE version SET slot = 'main', body = ? WHERE slot = 'other'",
        arguments: [RowCodec.checksum(of: payload, place: after) + payload])
    }
    let code = errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(kind, policy: .reject)) }
    #expect(code == .tampered)
  }

  @Test("an older copy of the whole folder can't be told from the folder itself, and can by the count kept elsewhere")
  func wholeRollback() throws {
    try SealLab.make(SealLab.request(.sealed), at: folder.store)
    let old = folder.url.appendingPathComponent("yesterday")
    try FileManager.default.copyItem(at: folder.store, to: old)
    var store = try Store.open(at: folder.store, seal: SealLab.request(.sealed))
    try store.save(SealLab.bytes(4), as: 4)
    let anchor = try #require(try store.changeCount())
    try store.close()
    try FileManager.default.removeItem(at: folder.store)
    try FileManager.default.copyItem(at: old, to: folder.store)
    store = try Store.open(at: folder.store, seal: SealLab.request(.sealed))
    defer { try? store.close() }
    #expect(SealLab.findings(of: store) == [])
    #expect(try #require(try store.changeCount()) < anchor)
    let plain = try Store.open(at: folder.url.appendingPathComponent("plain"))
    #expect(try plain.changeCount() == nil)
    try plain.close()
  }

  @Test("a forged outbox takes nothing from what the cloud is to get")
  func offersAgain() throws {
    try SealLab.make(SealLab.request(.signed), at: folder.store)
    try SealLab.edit(folder.store) { database in
      for id in try Int64.fetchAll(database, sql: "SELECT id FROM outbox") {
        try database.execute(
          sql: "UPDATE outbox SET body = ? WHERE id = ?",
          arguments: [SealLab.forged(#"{"cells":[],"id":\#(id),"refusals":[],"versions":[]}"#, place: "outbox \(id)"), id])
      }
    }
    let store = try Store.open(at: folder.store, seal: SealLab.request(.signed))
    defer { try? store.close() }
    #expect(SealLab.findings(of: store).count == 2)
    let groups = try store.read { try $0.outbox(limit: 10) }
    #expect(groups.flatMap(\.versions) == [id(3)])
    #expect(Set(groups.flatMap(\.cells).map(\.key)) == [SealLab.level, SealLab.coins])
  }
}

extension Seal.Policy {
  static let all: [Seal.Policy] = [.flag, .quarantine, .reject]
}
