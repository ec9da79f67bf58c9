import Foundation
import GRDB
import KeepsakeReplication

@testable import KeepsakeStore

/// The store of the golden files: a little of everything that a store can contain.
///
/// What is written here never changes, because the stores of earlier releases contain exactly this. What only a later
/// release can store needs golden files of its own.
enum GoldenStore {
  static let container = ContainerID(high: 1, low: 2)
  static let writer = WriterID(7)
  private static let block = 4_096

  // MARK: Writing

  /// The same bytes in every process and on every machine.
  private static func noise(_ count: Int, seed: UInt64) -> Data {
    var state = seed
    return Data(
      (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 56)
      })
  }

  /// A save that differs from the one before in a few bytes.
  static func save(_ number: UInt64) -> Data {
    var bytes = noise(800, seed: 1)
    for earlier in 1...number { bytes[Int(earlier) * 31 % 800] = UInt8(truncatingIfNeeded: earlier) }
    return bytes + Data("chapter \(number)".utf8)
  }

  /// Too large for one content, and easily compressed.
  static func map(_ number: UInt64) -> Data {
    var bytes = Data()
    let tile = noise(block, seed: 2)
    for _ in 0..<(5 << 20) / block { bytes += tile }
    if number > 1 { bytes[1_000_000] ^= 0xFF }
    return bytes
  }

  static func version(_ number: UInt64) -> VersionID { VersionID(high: 3, low: number) }

  private static func record(
    _ number: UInt64, _ slot: String, covers: [UInt64] = [], _ kept: (hashes: [ContentHash], length: Int) = ([], 0),
    metadata: SaveMetadata = SaveMetadata(),
    provisional: Bool = false, tombstone: Bool = false
  ) -> VersionRecord {
    VersionRecord(
      id: version(number), slot: slot, covers: covers.map { version($0) }, contents: kept.hashes,
      length: kept.length, metadata: metadata, savedAtMilliseconds: Int64(number), writer: writer,
      provisional: provisional, tombstone: tombstone)
  }

  private static func put(
    _ bytes: Data?, _ number: UInt64, _ slot: String, covers: [UInt64] = [], metadata: SaveMetadata = SaveMetadata(),
    provisional: Bool = false, acknowledged: Bool = true, in store: Store
  ) throws {
    let contents = bytes.map { [(slot: slot, bytes: $0)] } ?? []
    try store.submit(contents) { transaction, kept in
      let record = record(
        number, slot, covers: covers, (kept.flatMap(\.hashes), kept.reduce(0) { $0 + $1.length }), metadata: metadata,
        provisional: provisional, tombstone: bytes == nil)
      try transaction.putVersion(StoredVersion(record: record, acknowledged: acknowledged, offered: acknowledged))
      for covered in covers { try transaction.markCovered(version(covered)) }
    }.wait()
  }

  static let cells: [CellUpdate] = [
    cell("level", .max(.int(6))), cell("fastest", .min(.double(40.5)), generation: 2),
    cell("hat", .latest(Stamp(caughtUp: true, milliseconds: 5, writer: WriterID(1)), .string("röd"))),
    cell("badges", .union([.string("hero"), .int(3), .data(Data([1, 2])), .double(0.5)])),
    cell(
      "coins", .counter([WriterID(1): CounterEntry(plus: 7, minus: 2), WriterID(2): CounterEntry(plus: 1, minus: 0)])),
    cell(
      "flowers",
      .set(
        ObservedSet([
          WriterID(1): ObservedSet.Additions(
            seen: NumberRanges([1...4, 6...6]), present: [3: .string("rose"), 6: .int(7)])
        ]))),
    cell("best times", .dictionary([.string("cave"): .min(.int(61)), .string("hill"): .min(.double(40.5))])),
    cell("first win", .optional(.min(.int(9)))), cell("never", .optional(nil)),
    cell(
      "vote",
      .later(
        LaterValue([
          LaterValueID(high: 0, low: 2): LaterValue.Entry(
            rule: "quorum", content: Data([1, 2]), over: [LaterValueID(high: 0, low: 1)])
        ]))),
    CellUpdate(
      key: CellKey(collection: "preferences", key: "language"),
      state: CellState(
        value: .latest(Stamp(caughtUp: false, milliseconds: 4, writer: WriterID(2)), .data(Data("de".utf8))))),
  ]

  private static func cell(_ key: String, _ value: CellValue, generation: UInt64 = 0) -> CellUpdate {
    CellUpdate(key: CellKey(collection: "progress", key: key), state: CellState(generation: generation, value: value))
  }

  private static let scores: [ScoreEntry] = [
    score("easy", "Ada", .descending, .int(900), 1, context: Data("a run".utf8)),
    score("easy", "Eve", .descending, .int(10), 2),
    score("easy", "Ada", .descending, .int(5), 3), score("race", "Ada", .ascending, .double(61.5), 4),
  ]

  private static func score(
    _ board: String, _ player: String, _ order: ScoreOrder, _ value: Scalar, _ number: UInt64, context: Data = Data()
  ) -> ScoreEntry {
    ScoreEntry(
      board: board, player: player, order: order, value: value, dateMilliseconds: Int64(number) * 1_000,
      id: ScoreID(high: 0, low: number),
      context: context)
  }

  private static func operation(
    _ number: UInt64, _ kind: WalletOperation.Kind, _ amount: Int64, _ currency: String = "gems", goods: [String] = []
  ) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 9, low: number), kind: kind, currency: currency, amount: amount, reason: "reason \(number)",
      goods: goods,
      madeAtMilliseconds: Int64(number))
  }

  static func fill(_ store: Store) throws {
    // More than the rules keep with contents, each a few bytes different from the one before.
    for number in UInt64(1)...24 {
      try put(
        save(number), number, "main", covers: number > 1 ? [number - 1] : [],
        metadata: SaveMetadata(
          title: "Chapter \(number)", playtime: 1.5, progress: Double(number), thumbnail: Data([1, 2, 3]),
          custom: ["hat": "red"]),
        acknowledged: number < 24, in: store)
    }
    for number in UInt64(1)...2 {
      try put(map(number), 100 + number, "map", covers: number > 1 ? [101] : [], in: store)
    }
    try put(Data("common".utf8), 200, "journal", in: store)
    try put(Data("mine".utf8), 201, "journal", covers: [200], provisional: true, acknowledged: false, in: store)
    try put(Data("theirs".utf8), 202, "journal", covers: [200], in: store)
    try put(Data("gone".utf8), 300, "deleted", in: store)
    try put(nil, 301, "deleted", covers: [300], in: store)
    try put(Data("stays here".utf8), 400, SlotKey.localSave("secret").text, in: store)
    try put(Data("a file".utf8), 500, SlotKey.file("level.dat").text, in: store)
    try store.write { transaction throws in
      try transaction.setPinned(true, version(10))
      try transaction.setLocalDeclaration(LocalDeclaration(parents: [version(399)]), of: "secret")
      try transaction.setFileBase(version(500), of: SlotKey.file("level.dat").text)
      var facts = DeviceFacts(
        container: container, cursor: Cursor(epoch: 3, seq: 7, mark: 9), caughtUp: true, serverOffsetMilliseconds: -250,
        lastFetchedMilliseconds: 1_700_000_000_000)
      facts.moves = 2
      try transaction.setFacts(facts)
      try transaction.setFact("of its own", ["a": 1, "b": 2])
      for cell in cells { try transaction.setCell(cell) }
      for score in scores {
        try transaction.putScore(score)
        try transaction.setCell(CellUpdate(key: score.key, state: CellState(value: .best(score.best))))
      }
      try transaction.setPreference(Data("a quarter".utf8), named: "volume")
      try transaction.setPreference(Data([0, 255]), named: "bindings")
      var note = AdoptionNote()
      note.scores = ["elsewhere": [ScoreID(high: 0, low: 4)]]
      try transaction.setAdoptionNote(note)
      var parcels = AdoptedParcels()
      parcels.append(OperationID(high: 8, low: 8))
      try transaction.setAdoptedParcels(parcels)
    }
    var wallet = Wallet(WalletState(chain: ChainID(high: 5, low: 6), follows: ChainID(high: 5, low: 5)))
    for operation in [
      operation(1, .earn, 100), operation(2, .spend, 30, goods: ["sword", "shield"]),
      operation(3, .claim(key: "daily"), 50),
      operation(4, .earn, 3, "keys"),
    ] {
      try wallet.perform(operation)
      let state = wallet.state
      try store.write { try $0.setWallet(state) }
    }
    try store.write { transaction throws in
      try transaction.appendToOutbox(OutboxGroup(cells: [cells[0]], versions: [version(24)]))
      try transaction.appendToOutbox(
        OutboxGroup(
          cells: [cells[5]], versions: [version(201)],
          refusals: [Refusal(item: "version \(version(201))", reason: .quota, message: "No room.")]))
      try transaction.stage([
        CloudChange(seq: 8, item: .cell(cell("coins", .counter([WriterID(2): CounterEntry(plus: 9, minus: 0)])))),
        CloudChange(
          seq: 9, item: .version(record(25, "main", covers: [24], metadata: SaveMetadata(title: "From the cloud")))),
      ])
      for content in try transaction.contentSummaries().prefix(3) { try transaction.setCloudDepth(2, of: content.hash) }
    }
  }

  /// What stores of the first format can't contain: a save whose contents are only in the cloud.
  static func fillDeferred(_ store: Store) throws {
    try store.write { transaction throws in
      let hash = ContentHash(of: Data("in the cloud".utf8))
      let away = record(600, "away", ([hash], 12))
      try transaction.putVersion(StoredVersion(record: away, acknowledged: true, offered: true))
      try transaction.setNotDownloaded(true, away.id)
    }
  }

  /// What stores before the third format can't contain: operations that a bank declined, and one that waits there.
  static func fillDecisions(_ store: Store) throws {
    try store.write { transaction throws in
      guard var state = try transaction.wallet() else { throw StoreError(.damaged, "the wallet is gone") }
      let spends = [operation(5, .spend, 7, goods: ["hat"]), operation(6, .spend, 8, goods: ["castle"])]
      state.late = OperationList(spends)
      try transaction.setWallet(state)
      (state.late, state.waiting) = ([], [spends[1]])
      state.isBound = true
      try transaction.setWallet(state)
      try transaction.recordDecisions([Wallet.Decided(operation: spends[0], verdict: .declined)])
    }
  }
}
