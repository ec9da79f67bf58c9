import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// What the tests of the seal share: one game's secrets, a small store with a row of each kind, and forgeries.
enum SealLab {
  static let secret = Data((0..<32).map { UInt8($0) })
  static let otherSecret = Data((0..<32).map { UInt8(200 - $0) })
  static let owner = SealOwner(game: "com.example.space", profile: "default")
  static let level = CellKey(collection: "progress", key: "level")
  static let coins = CellKey(collection: "progress", key: "coins")
  static let kinds: [Seal.Kind] = [.signed, .sealed]
  /// The identity of the newest save of `fill` after the store was opened again.
  static let headPlace = RowIdentity.version(id(3), slot: "main", savedAt: 3, marks: VersionMarks())

  static func request(
    _ kind: Seal.Kind, _ secret: Data = secret, previous: [Data] = [], player: String? = nil,
    policy: Seal.Policy = .quarantine, adopts: Bool = false, owner: SealOwner = owner
  ) -> SealRequest {
    switch kind {
    case .none: .none
    case .signed:
      SealRequest(
        .signed(secret, previous: previous, player: player, policy: policy, adoptsUnsealed: adopts), owner: owner)
    case .sealed:
      SealRequest(
        .sealed(secret, previous: previous, player: player, policy: policy, adoptsUnsealed: adopts), owner: owner)
    }
  }

  static let ada = ScoreEntry(
    board: "easy", player: "Ada", order: .descending, value: .int(900), dateMilliseconds: 5,
    id: ScoreID(high: 0, low: 1),
    context: Data("a run".utf8))
  static let eve = ScoreEntry(
    board: "easy", player: "Eve", order: .descending, value: .int(10), dateMilliseconds: 6, id: ScoreID(high: 0, low: 2)
  )

  static func place(of score: ScoreEntry) throws -> String { try ScoreRow(score, RowCodec(seal: .none)).place }

  /// Three saves in one slot and one in another, two values, two preferences, two scores, an outbox, a staged change
  /// and a cursor.
  static func fill(_ store: Store) throws {
    for number in UInt64(1)...3 { try store.save(bytes(number), as: number, acknowledged: number < 3) }
    try store.save(Data("a slot of its own".utf8), as: 1_000, slot: "other")
    try store.write { transaction throws in
      var facts = try transaction.facts()
      facts.container = ContainerID(high: 1, low: 2)
      facts.cursor = Cursor(epoch: 3, seq: 7, mark: 9)
      facts.caughtUp = true
      try transaction.setFacts(facts)
      try transaction.setCell(CellUpdate(key: level, state: CellState(value: .max(.int(6)))))
      try transaction.setCell(CellUpdate(key: coins, state: CellState(value: .max(.int(60)))))
      try transaction.setPreference(Data("a quarter".utf8), named: "volume")
      try transaction.setPreference(Data("full".utf8), named: "brightness")
      for score in [ada, eve] { try transaction.putScore(score) }
      try transaction.appendToOutbox(OutboxGroup(versions: [id(3)]))
      try transaction.appendToOutbox(
        OutboxGroup(cells: [CellUpdate(key: level, state: CellState(value: .max(.int(6))))]))
      try transaction.stage([
        CloudChange(seq: 8, item: .cell(CellUpdate(key: coins, state: CellState(value: .max(.int(61))))))
      ])
    }
  }

  /// The bytes of a save, with words that can be searched for in files: the same in all saves, except for the number.
  static func bytes(_ number: UInt64) -> Data {
    var random = SeededRandom(seed: number)
    return Data("the treasure lies under the third tree, chapter \(number) ".utf8) + random.bytes(200)
  }

  /// Makes a filled store and closes it.
  static func make(_ request: SealRequest, at url: URL) throws {
    let store = try Store.open(at: url, seal: request)
    try fill(store)
    try store.close()
  }

  /// Opens the store's database as another program would.
  static func edit<Value>(_ url: URL, _ body: (Database) throws -> Value) throws -> Value {
    let queue = try DatabaseQueue(path: url.appendingPathComponent(Store.databaseName).path)
    defer { try? queue.close() }
    return try queue.write(body)
  }

  /// A row's body as an editor would write it that knows the format, but not the secret.
  static func forged(_ json: String, place: String) -> Data {
    RowCodec.checksum(of: Data(json.utf8), place: place) + Data(json.utf8)
  }

  static func forge(_ state: CellState, of key: CellKey, in url: URL) throws {
    let json = String(decoding: try JSONEncoder().encode(state), as: UTF8.self)
    try edit(url) { database in
      try database.execute(
        sql: "UPDATE cell SET body = ? WHERE key = ?", arguments: [forged(json, place: RowIdentity.cell(key)), key.key])
    }
  }

  static func findings(of store: Store) -> [SealFinding] {
    let found = Shared<[SealFinding]>([])
    store.sealFindings.observe { finding in found.value.append(finding) }
    return found.value
  }

  /// Everything that a store contains, for comparison. Contents by their plain bytes.
  static func state(of store: Store) throws -> [String] {
    try store.read { transaction throws in
      var lines = ["\(try transaction.facts())", "\(String(describing: try transaction.wallet()))"]
      lines += try transaction.cells(in: nil).map { "\($0)" }
      lines += try transaction.preferences().kept.map { "\($0.name): \(try $0.bytes().base64EncodedString())" }
      for slot in try transaction.slots() {
        lines.append("\(slot): \(try transaction.heads(of: slot))")
        for version in try transaction.history(of: slot) {
          // Without `offered`, which opening alone changes.
          lines.append("\(version.record), acknowledged: \(version.acknowledged)")
          lines += try version.record.contents.map { try transaction.plainContent($0).base64EncodedString() }
        }
      }
      lines += try transaction.topScores(100, on: "easy", .descending).entries.map { "\($0)" }
      lines += try transaction.outbox(limit: 100).map { "\($0)" }
      lines += try transaction.staged().map { "\($0)" }
      return lines
    }
  }

  /// Every value in every table of a store. Opening alone changes bytes of the files, but not these values.
  static func rows(of url: URL) throws -> [String] {
    try edit(url) { database in
      try String.fetchAll(database, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").flatMap {
        table in
        try Row.fetchAll(database, sql: "SELECT * FROM \(table)").map { row in
          "\(table): "
            + row.databaseValues.map {
              $0.storage.value.map { "\(($0 as? Data)?.base64EncodedString() ?? "\($0)")" } ?? "NULL"
            }
            .joined(separator: ", ")
        }
      }
    }
  }

  /// The bytes of all of a closed store's files, by name.
  static func files(of url: URL) throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: url.path) {
      files[name] = try Data(contentsOf: url.appendingPathComponent(name))
    }
    return files
  }

  static func contains(_ text: String, in url: URL) throws -> Bool {
    try files(of: url).values.contains { $0.range(of: Data(text.utf8)) != nil }
  }
}
