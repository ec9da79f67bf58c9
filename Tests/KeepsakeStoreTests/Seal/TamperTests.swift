import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Tampering with a sealed store: changes are detected, and a player who changed nothing loses nothing.
@Suite struct TamperTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Reads every row of a store with the secret; nil if everything verifies.
  private static func objection(_ reader: StoreReader) -> StoreError.Code? {
    errorCode {
      try reader.read { transaction throws in
        _ = try transaction.facts()
        _ = try transaction.wallet()
        _ = try transaction.cells(in: nil)
        for preference in try transaction.preferences().kept { _ = try preference.bytes() }
        for slot in try transaction.slots() { _ = try transaction.history(of: slot) }
        let scores = try transaction.topScores(100, on: "easy", .descending)
        if let objection = scores.objections.first { throw objection }
        _ = try transaction.outbox(limit: 100)
        _ = try transaction.staged()
      }
    }
  }

  @Test("a change of any byte of any row is detected, even if the checksum is corrected", arguments: SealLab.kinds)
  func everyByte(kind: Seal.Kind) async throws {
    let url = folder.store
    try SealLab.make(SealLab.request(kind), at: url)
    let (rows, flips, wrong) = try await onThread { try Self.flipEveryByte(of: url) }
    #expect(rows == 15 && flips > 2_000)
    #expect(wrong == [])
    print("\(kind.rawValue): \(flips) bytes of \(rows) rows changed, with the checksum wrong and right")
  }

  /// Changes each byte of each row and restores it; `wrong` lists the changes that weren't detected as they should be.
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

  @Test("a change of any byte of a sealed content, or of its recorded length, is detected")
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
    // The unencrypted frame, as an unsealed store has it.
    let clear = try Zstd.compress(bytes)
    for edit in [
      ("UPDATE content SET bytes = ?", [clear.databaseValue]),
      ("UPDATE content SET bytes = ?, length = 13", [frame.databaseValue]),
    ] {
      try SealLab.edit(folder.store) { try $0.execute(sql: edit.0, arguments: StatementArguments(edit.1)) }
      #expect(load() == .damaged, "\(edit.0)")
    }
    try SealLab.edit(folder.store) {
      try $0.execute(sql: "UPDATE content SET bytes = ?, length = 12", arguments: [frame])
    }
    #expect(load() == nil)
  }

  /// A way to move a row to where it doesn't belong.
  struct Move: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var sql: String
    /// The row's identity in quarantine, by its new name.
    var place: String
  }

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
      testDescription: "a preference under another name",
      sql: "UPDATE preference SET body = (SELECT body FROM preference WHERE name = 'volume') WHERE name = 'brightness'",
      place: "preference brightness"),
    Move(
      testDescription: "a preference as a fact",
      sql: "INSERT OR REPLACE INTO fact (name, body) SELECT 'volume', body FROM preference WHERE name = 'volume'",
      place: "fact volume"),
    Move(
      testDescription: "another version's record",
      sql: "UPDATE version SET body = (SELECT body FROM version WHERE position = 2) WHERE position = 3",
      place: SealLab.headPlace),
    Move(
      testDescription: "another slot's record",
      sql: "UPDATE version SET body = (SELECT body FROM version WHERE slot = 'other') WHERE position = 3",
      place: SealLab.headPlace),
    Move(
      testDescription: "a version under another id",
      sql: "UPDATE version SET id = x'00000000000000000000000000000042' WHERE position = 3",
      place: RowIdentity.version(id(0x42), slot: "main", savedAt: 3, marks: VersionMarks())),
    Move(
      testDescription: "a fact under another name", sql: "UPDATE fact SET name = 'purse' WHERE name = 'wallet'",
      place: "fact purse"),
    Move(
      testDescription: "a score given to another player", sql: "UPDATE score SET player = 'Eve' WHERE player = 'Ada'",
      place: "score 00000000000000000000000000000001 21" + "7ffffffffffffc7c 5 4/easy/Eve"),
    Move(
      testDescription: "a score made better",
      sql: "UPDATE score SET rank = (SELECT rank FROM score WHERE player = 'Ada') WHERE player = 'Eve'",
      place: "score 00000000000000000000000000000002 21" + "7ffffffffffffc7c 6 4/easy/Eve"),
    Move(
      testDescription: "a score on another board", sql: "UPDATE score SET board = 'hard' WHERE player = 'Eve'",
      place: "score 00000000000000000000000000000002 217ffffffffffffff6 6 4/hard/Eve"),
    Move(
      testDescription: "a score made earlier", sql: "UPDATE score SET date = 1 WHERE player = 'Eve'",
      place: "score 00000000000000000000000000000002 217ffffffffffffff6 1 4/easy/Eve"),
    Move(
      testDescription: "a group of the outbox under another number", sql: "UPDATE outbox SET id = 77 WHERE id = 1",
      place: "outbox 77"),
  ]

  @Test(
    "a moved row is treated as damage, or set aside if its checksum was corrected",
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
      // A wrong checksum counts as a failing disk: the row is dropped, without a finding of the seal.
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

  @Test("rows of another store, player, profile, game or secret are not accepted", arguments: SealLab.kinds)
  func strangersRows(kind: Seal.Kind) throws {
    let twins: [(String, SealRequest)] = [
      ("another store", SealLab.request(kind, player: "ada")), ("another player", SealLab.request(kind, player: "eve")),
      (
        "another profile",
        SealLab.request(kind, player: "ada", owner: SealOwner(game: "com.example.space", profile: "two"))
      ),
      (
        "another game",
        SealLab.request(kind, player: "ada", owner: SealOwner(game: "com.example.dungeon", profile: "default"))
      ),
      ("another secret", SealLab.request(kind, SealLab.otherSecret, player: "ada")),
    ]
    for (what, request) in twins {
      let mine = folder.url.appendingPathComponent("mine of \(what)")
      let theirs = folder.url.appendingPathComponent(what)
      try SealLab.make(SealLab.request(kind, player: "ada"), at: mine)
      try SealLab.make(request, at: theirs)
      // Both have the same names: only the keys differ. The salts differ, too, even if only the player or profile is
      // another.
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
      #expect(Set(findings.map(\.place)) == ["cell progress/level", "fact wallet", SealLab.headPlace], "\(what)")
      #expect(findings.allSatisfy { !$0.isDamage }, "\(what)")
      try store.close()
    }
  }

  @Test("a save that is moved into another slot is detected", arguments: SealLab.kinds)
  func otherSlot(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    let before = RowIdentity.version(
      id(1_000), slot: "other", savedAt: 1_000, marks: VersionMarks(acknowledged: true, offered: true))
    let after = RowIdentity.version(
      id(1_000), slot: "main", savedAt: 1_000, marks: VersionMarks(acknowledged: true, offered: true))
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

  @Test(
    "in an open sealed store a forged head is detected, so that an older save isn't shown as the newest",
    arguments: SealLab.kinds)
  func heads(kind: Seal.Kind) throws {
    let store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    defer { try? store.close() }
    for number in UInt64(1)...3 { try store.save(Data("save \(number)".utf8), as: number) }
    let hands = try DatabaseQueue(path: folder.store.appendingPathComponent(Store.databaseName).path)
    try hands.write { try $0.execute(sql: "UPDATE head SET id = ?", arguments: [id(1).bytes]) }
    try hands.close()
    #expect(errorCode { _ = try store.read { try Resolution.view(of: "main", in: $0) } } == .damaged)
    #expect(errorCode { _ = try store.read { try $0.headsOfAllSlots() } } == .damaged)
    #expect(errorCode { _ = try store.read { try $0.headVersionsOfAllSlots() } } == .damaged)
  }
}
