import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// A sealed store as its own game uses it: nothing is lost by sealing, and no other secret opens the store.
@Suite struct SealTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test(
    "signed and sealed stores contain a player's data unchanged when they are opened again", arguments: SealLab.kinds)
  func reopens(kind: Seal.Kind) throws {
    var store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    try SealLab.fill(store)
    let state = try SealLab.state(of: store)
    try store.close()
    store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    #expect(try SealLab.state(of: store) == state)
    #expect(SealLab.findings(of: store) == [])
    try store.save(SealLab.bytes(4), as: 4)
    try store.close()
    // A signed store remains readable for support and tools; no word of a sealed one may be in any file.
    #expect(try SealLab.contains("caughtUp", in: folder.store) == (kind == .signed))
    let frames = try SealLab.edit(folder.store) { try Data.fetchAll($0, sql: "SELECT bytes FROM content") }
    #expect(frames.count == 5)
    let magic = Data([0x28, 0xB5, 0x2F, 0xFD])
    for frame in frames { #expect(frame.starts(with: magic) == (kind == .signed)) }
  }

  @Test("equal rows are encrypted with different nonces, so that equal saves can't be recognized")
  func freshNonces() throws {
    try SealLab.make(SealLab.request(.sealed), at: folder.store)
    let staged = CloudChange(
      seq: 1, item: .cell(CellUpdate(key: SealLab.level, state: CellState(value: .max(.int(1))))))
    let store = try Store.open(at: folder.store, seal: SealLab.request(.sealed))
    try store.write { transaction throws in try transaction.stage(Array(repeating: staged, count: 50)) }
    try store.close()
    let bodies = try SealLab.edit(folder.store) { try Data.fetchAll($0, sql: "SELECT body FROM staged") }
    #expect(bodies.count == 51)
    let head = RowCodec.checksumLength + StoreSeal.headBytes
    let nonces = Set(bodies.map { (body: Data) -> Data in body.dropFirst(head).prefix(12) })
    #expect(nonces.count == 51)
  }

  @Test(
    "with another secret, game, profile or player a store isn't opened, and no row of it is changed",
    arguments: SealLab.kinds)
  func refusesStrangers(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind, player: "ada"), at: folder.store)
    let before = try SealLab.rows(of: folder.store)
    let strangers: [(SealRequest, StoreError.Code, String)] = [
      (SealLab.request(kind, SealLab.otherSecret, player: "ada"), .wrongSecret, "the secret"),
      (SealLab.request(kind, SealLab.secret + Data([0]), player: "ada"), .wrongSecret, "the secret"),
      (SealLab.request(kind, player: "eve"), .wrongSecret, "the player"),
      (SealLab.request(kind), .wrongSecret, "none was given"),
      (
        SealLab.request(kind, player: "ada", owner: SealOwner(game: "com.example.space", profile: "two")), .wrongSecret,
        "profile two"
      ),
      (
        SealLab.request(kind, player: "ada", owner: SealOwner(game: "com.example.spac", profile: "edefault")),
        .wrongSecret, "edefault"
      ),
      (.none, .otherSeal, "seal: .\(kind.rawValue)"),
    ]
    for (request, code, words) in strangers {
      do {
        _ = try Store.open(at: folder.store, seal: request)
        Issue.record("opened without \(words)")
      } catch let error as StoreError {
        #expect(error.code == code, "\(error)")
        #expect(error.message.contains(words), "\(error)")
      }
      #expect(try SealLab.rows(of: folder.store) == before, "\(words)")
    }
    try Store.open(at: folder.store, seal: SealLab.request(kind, player: "ada")).close()
  }

  @Test("secrets of fewer than 16 bytes and empty player names are refused as misuse, before a store is created")
  func refusesWeakness() throws {
    let weak = Data(repeating: 7, count: 15)
    #expect(errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(.signed, weak)) } == .misuse)
    #expect(
      errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(.sealed, previous: [weak])) } == .misuse)
    #expect(errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(.signed, player: "")) } == .misuse)
    #expect(!FileManager.default.fileExists(atPath: folder.store.path))
    try Store.open(at: folder.store, seal: SealLab.request(.signed, weak + weak)).close()
  }

  // MARK: Changing the seal

  @Test(
    "a game that adopts a seal keeps its players' data, and from then on accepts nothing unsealed",
    arguments: SealLab.kinds)
  func adopts(kind: Seal.Kind) throws {
    var store = try Store.open(at: folder.store)
    try SealLab.fill(store)
    let state = try SealLab.state(of: store)
    try store.close()
    #expect(try SealLab.contains("caughtUp", in: folder.store))
    // Otherwise an attacker who can remove a seal could have anything signed.
    #expect(errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(kind)) } == .otherSeal)
    store = try Store.open(at: folder.store, seal: SealLab.request(kind, adopts: true))
    #expect(try SealLab.state(of: store) == state)
    try store.close()
    // No page of a sealed store may still contain the earlier text.
    #expect(try SealLab.contains("caughtUp", in: folder.store) == (kind == .signed))
    store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    #expect(try SealLab.state(of: store) == state)
    #expect(SealLab.findings(of: store) == [])
    try store.close()
    try SealLab.forge(CellState(value: .max(.int(99))), of: SealLab.level, in: folder.store)
    store = try Store.open(at: folder.store, seal: SealLab.request(kind, adopts: true))
    defer { try? store.close() }
    #expect(SealLab.findings(of: store).map(\.place) == ["cell progress/level"])
    #expect(try store.read { try $0.cell(SealLab.level) } == nil)
  }

  @Test("a signed store becomes sealed, and a sealed one signed, in one opening, also with a new secret")
  func changesKind() throws {
    try SealLab.make(SealLab.request(.signed), at: folder.store)
    var store = try Store.open(at: folder.store, seal: SealLab.request(.signed))
    let state = try SealLab.state(of: store)
    try store.close()
    let steps: [(Seal.Kind, Data, [Data])] = [
      (.sealed, SealLab.secret, []), (.signed, SealLab.otherSecret, [SealLab.secret]),
      (.sealed, SealLab.otherSecret, []),
    ]
    for (kind, secret, previous) in steps {
      store = try Store.open(at: folder.store, seal: SealLab.request(kind, secret, previous: previous))
      #expect(try SealLab.state(of: store) == state)
      #expect(SealLab.findings(of: store) == [])
      try store.close()
      #expect(try SealLab.contains("caughtUp", in: folder.store) == (kind == .signed))
      // Complete with the new key: the one before isn't needed for anything.
      store = try Store.open(at: folder.store, seal: SealLab.request(kind, secret))
      #expect(try SealLab.state(of: store) == state)
      #expect(SealLab.findings(of: store) == [])
      try store.close()
    }
  }

  // MARK: Rotation

  @Test(
    "a new secret replaces the old one step by step, and a crash between two steps loses nothing",
    arguments: SealLab.kinds)
  func rotates(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    var store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    var random = SeededRandom(seed: 5)
    for number in UInt64(4)...10 { try store.save(random.bytes(SealGate.resealedAtOpening / 3), as: number) }
    let state = try SealLab.state(of: store)
    try store.close()

    let rotated = SealLab.request(kind, SealLab.otherSecret, previous: [SealLab.secret])
    // In signed stores no contents are resealed, only rows, for which one opening is enough.
    let steps = kind == .sealed ? 3 : 1
    for step in 1...steps {
      // Each opening does a part, and leaves what a crash at its end would leave.
      store = try Store.open(at: folder.store, seal: rotated)
      #expect(try SealLab.state(of: store) == state, "opening \(step)")
      #expect(SealLab.findings(of: store) == [], "opening \(step)")
      try store.close()
      let code = errorCode {
        try Store.open(at: folder.store, seal: SealLab.request(kind, SealLab.otherSecret)).close()
      }
      #expect(code == (step < steps ? .wrongSecret : nil), "opening \(step)")
    }
    #expect(errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(kind)) } == .wrongSecret)
    store = try Store.open(at: folder.store, seal: SealLab.request(kind, SealLab.otherSecret))
    defer { try? store.close() }
    #expect(try SealLab.state(of: store) == state)
    #expect(SealLab.findings(of: store) == [])
  }

  @Test(
    "a new secret replaces the old one in one call, from any state that a crash between its steps leaves",
    arguments: SealLab.kinds)
  func rotatesByCall(kind: Seal.Kind) throws {
    try SealLab.make(SealLab.request(kind), at: folder.store)
    let rotated = SealLab.request(kind, SealLab.otherSecret, previous: [SealLab.secret])
    var store = try Store.open(at: folder.store, seal: SealLab.request(kind))
    let state = try SealLab.state(of: store)
    try store.close()
    let header = try SealLab.edit(folder.store) { database in
      try #require(try SealHeader.find(in: database, folder: folder.store))
    }
    let keys = [SealLab.otherSecret, SealLab.secret].map {
      SealKey(secret: $0, salt: header.salt, owner: SealLab.owner, player: nil)
    }
    let seal = StoreSeal(kind: kind, policy: .quarantine, keys: keys)
    // The state of a store whose opening wrote the new header and was killed at once.
    try SealLab.edit(folder.store) { database in
      var begun = header
      begun.earlierKeys = [header.key]
      try begun.prove(with: keys[0])
      try begun.write(to: database)
      try SealLedger.counted(in: database, key: keys[0]).write(to: database, key: keys[0], count: 1)
    }
    var crashes = 0
    while true {
      // With a limit of one byte, each step is one row.
      let done = try SealLab.edit(folder.store) { database -> Bool in
        try SealLedger.keep(on: database, key: keys[0])
        var resealing = try Resealing(from: seal, to: seal, in: database)
        _ = try resealing.step(in: database, bytes: 1)
        return resealing.isDone
      }
      let copy = folder.url.appendingPathComponent("crash \(crashes)")
      try FileManager.default.copyItem(at: folder.store, to: copy)
      #expect(
        errorCode { _ = try Store.open(at: copy, seal: SealLab.request(kind, SealLab.otherSecret)) } == .wrongSecret)
      store = try Store.open(at: copy, seal: rotated)
      #expect(try SealLab.state(of: store) == state, "after \(crashes) rows")
      try store.reseal()
      try store.close()
      store = try Store.open(at: copy, seal: SealLab.request(kind, SealLab.otherSecret))
      #expect(try SealLab.state(of: store) == state, "after \(crashes) rows")
      #expect(SealLab.findings(of: store) == [], "after \(crashes) rows")
      try store.close()
      crashes += 1
      if done { break }
    }
    #expect(crashes > 10)
  }

  @Test("after a new secret has replaced the old one, rows that the old one signed are no longer accepted")
  func retiresOldKeys() throws {
    try SealLab.make(SealLab.request(.signed), at: folder.store)
    let old = try SealLab.edit(folder.store) { database in
      try #require(try Data.fetchOne(database, sql: "SELECT body FROM cell WHERE key = 'level'"))
    }
    let rotated = SealLab.request(.signed, SealLab.otherSecret, previous: [SealLab.secret])
    let store = try Store.open(at: folder.store, seal: rotated)
    try store.write { transaction throws in
      try transaction.setCell(CellUpdate(key: SealLab.level, state: CellState(value: .max(.int(7)))))
    }
    try store.close()
    try SealLab.edit(folder.store) {
      try $0.execute(sql: "UPDATE cell SET body = ? WHERE key = 'level'", arguments: [old])
    }
    let again = try Store.open(at: folder.store, seal: rotated)
    defer { try? again.close() }
    #expect(SealLab.findings(of: again).map(\.place) == ["cell progress/level"])
  }

  // MARK: Header

  @Test("a store whose seal was removed isn't opened as unsealed while its copy exists, and a forged header is refused")
  func guardsHeader() throws {
    try SealLab.make(SealLab.request(.sealed), at: folder.store)
    var store = try Store.open(at: folder.store, seal: SealLab.request(.sealed))
    let state = try SealLab.state(of: store)
    try store.close()
    for damage in ["DELETE FROM fact WHERE name = 'seal'", "UPDATE fact SET body = x'00' WHERE name = 'seal'"] {
      try SealLab.edit(folder.store) { try $0.execute(sql: damage) }
      #expect(errorCode { _ = try Store.open(at: folder.store) } == .otherSeal)
      store = try Store.open(at: folder.store, seal: SealLab.request(.sealed))
      #expect(try SealLab.state(of: store) == state, "\(damage)")
      try store.close()
    }
    let copy = folder.store.appendingPathComponent(SealHeader.fileName)
    try FileManager.default.removeItem(at: copy)
    store = try Store.open(at: folder.store, seal: SealLab.request(.sealed))
    try store.close()
    #expect(try !Data(contentsOf: copy).isEmpty)

    // Each field, changed by somebody who knows the format: the secret no longer verifies it.
    let body = try SealLab.edit(folder.store) { database in
      try #require(try Data.fetchOne(database, sql: "SELECT body FROM fact WHERE name = 'seal'"))
    }
    let json = String(decoding: body.dropFirst(RowCodec.checksumLength), as: UTF8.self)
    let edits = [
      ("\"kind\":\"sealed\"", "\"kind\":\"signed\""), ("\"isScrubbed\":true", "\"isScrubbed\":false"),
      ("\"hasPlayer\":false", "\"hasPlayer\":true"), ("com.example.space", "com.example.spade"),
      ("\"earlierKeys\":[]", "\"earlierKeys\":[\"AAAAAA==\"]"),
    ]
    for (old, new) in edits {
      #expect(json.contains(old), "\(old)")
      let forged = SealLab.forged(json.replacingOccurrences(of: old, with: new), place: "fact seal")
      try SealLab.edit(folder.store) {
        try $0.execute(sql: "UPDATE fact SET body = ? WHERE name = 'seal'", arguments: [forged])
      }
      #expect(
        errorCode { _ = try Store.open(at: folder.store, seal: SealLab.request(.sealed)) } == .wrongSecret, "\(new)")
    }
  }

  // MARK: Tools and transfers

  @Test("tools read a signed store without the secret, and a sealed one only with it; a wrong secret throws an error")
  func readers() throws {
    for kind in SealLab.kinds {
      let url = folder.url.appendingPathComponent(kind.rawValue)
      try SealLab.make(SealLab.request(kind), at: url)
      let blind = try StoreReader.open(at: url)
      #expect(blind.seal == kind && !blind.checksSeal)
      #expect(try blind.read { try $0.slots() } == ["main", "other"])
      let code = errorCode { _ = try blind.read { try $0.cells(in: nil) } }
      #expect(code == (kind == .signed ? nil : .wrongSecret))
      let tool = try StoreReader.open(at: url, seal: SealRequest(secret: SealLab.secret))
      #expect(tool.seal == kind && tool.checksSeal)
      #expect(try tool.read { try $0.cell(SealLab.level) } == CellState(value: .max(.int(6))))
      #expect(try tool.read { try $0.plainContent(ContentHash(of: SealLab.bytes(3))) } == SealLab.bytes(3))
      #expect(
        errorCode { _ = try StoreReader.open(at: url, seal: SealRequest(secret: SealLab.otherSecret)) } == .wrongSecret)
    }
    let plain = folder.url.appendingPathComponent("plain")
    try SealLab.make(.none, at: plain)
    #expect(try StoreReader.open(at: plain).seal == .none)
    #expect(try StoreReader.open(at: plain, seal: SealRequest(secret: SealLab.secret)).seal == .none)
  }

  @Test("contents that a sealed store sends can be read, and sent on unchanged, by a store with another secret")
  func travels() throws {
    let here = try Store.open(at: folder.url.appendingPathComponent("here"), seal: SealLab.request(.sealed))
    let there = try Store.open(
      at: folder.url.appendingPathComponent("there"), seal: SealLab.request(.sealed, SealLab.otherSecret))
    defer {
      try? here.close()
      try? there.close()
    }
    var random = SeededRandom(seed: 8)
    let first = random.bytes(20_000)
    let second = first + Data("and a little more".utf8)
    try here.save(first, as: 1)
    try here.save(second, as: 2)
    let hashes = [first, second].map { ContentHash(of: $0) }
    let sent = try here.read { transaction in
      [try transaction.encoded(hashes[0], against: nil), try transaction.encoded(hashes[1], against: hashes[0])]
    }
    #expect(sent[1].bytes.count < 1_000)
    try there.write { transaction throws in
      for content in sent { #expect(try transaction.receiveContent(content) == .stored) }
    }
    there.memory.forgetPlain()
    #expect(try there.read { try $0.plainContent(hashes[1]) } == second)
    #expect(try there.read { try $0.encoded(hashes[1], against: hashes[0]) } == sent[1])
  }
}
