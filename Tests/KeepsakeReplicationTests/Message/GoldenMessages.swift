import Foundation
import KeepsakeReplication

/// The messages of the golden files.
///
/// They never change: they are what a device or a server of the first release sent. A field of a later release goes
/// into messages of its own.
enum GoldenMessages {
  private static func hash(_ text: String) -> ContentHash { ContentHash(of: Data(text.utf8)) }
  private static func version(_ number: UInt64) -> VersionID { VersionID(high: 3, low: number) }

  private static func cell(_ key: String, _ value: CellValue, generation: UInt64 = 0) -> CellUpdate {
    CellUpdate(key: CellKey(collection: "progress", key: key), state: CellState(generation: generation, value: value))
  }

  /// One cell of each rule.
  private static let cells: [CellUpdate] = [
    cell("level", .max(.int(6))), cell("fastest", .min(.double(40.5)), generation: 2),
    cell("hat", .latest(Stamp(caughtUp: true, milliseconds: 5, writer: WriterID(1)), .string("röd"))),
    cell("badges", .union([.string("hero"), .int(-3), .data(Data([1, 2])), .double(0.5)])),
    cell(
      "coins",
      .counter([WriterID(1): CounterEntry(plus: 7, minus: 2), WriterID(2): CounterEntry(plus: .max, minus: 0)])),
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
      key: CellKey(collection: "scores", key: "4/easy/Ada"),
      state: CellState(
        value: .best(
          BestScore(
            order: .descending,
            entry: .init(score: .int(900), dateMilliseconds: 5, payload: Data(count: 16) + Data("a run".utf8)),
            withdrawn: [BestScore.Withdrawal(generation: 0, id: ScoreID(high: 0, low: 1))], isCleared: true)))),
  ]

  private static let versions: [VersionRecord] = [
    VersionRecord(
      id: version(2), slot: "main", covers: [version(1)], contents: [hash("one"), hash("two")], length: 6,
      metadata: SaveMetadata(
        title: "Cave", playtime: 1.5, progress: 2, thumbnail: Data([1, 2]), custom: ["hat": "red"]),
      savedAtMilliseconds: 1_767_225_600_000, writer: WriterID(1), provisional: true),
    VersionRecord(
      id: version(3), slot: "deleted", covers: [], contents: [], length: 0, savedAtMilliseconds: 5, writer: WriterID(2),
      provisional: false,
      tombstone: true),
  ]

  private static let contents: [EncodedContent] = [
    EncodedContent(hash: hash("one"), length: 3, base: nil, bytes: Data([40, 181, 47, 253, 0])),
    EncodedContent(hash: hash("two"), length: 3, base: hash("one"), bytes: Data((0...255).map { UInt8($0) })),
  ]

  private static let head = ChainHead(count: 3, hash: hash("head"))

  private static func operation(
    _ number: UInt64, _ kind: WalletOperation.Kind, goods: [String] = [], at time: Int64 = 0
  ) -> WalletOperation {
    WalletOperation(
      id: OperationID(high: 9, low: number), kind: kind, currency: "gems", amount: Int64(number) * 10,
      reason: "reason \(number)",
      goods: goods, madeAtMilliseconds: time)
  }

  private static let offer = WalletOffer(
    chain: ChainID(high: 5, low: 6), version: 1, follows: ChainID(high: 5, low: 5), base: head, statement: 12,
    operations: [
      operation(1, .earn, at: 7), operation(2, .spend, goods: ["sword"]), operation(3, .giveBack),
      operation(4, .claim(key: "daily")), operation(6, .convert(to: "crowns", received: 7)),
    ],
    late: [grouped(operation(5, .earn), with: 5), grouped(operation(7, .spend), with: 5)],
    waiting: [OperationID(high: 9, low: 8)], needs: ["gems": 4], goods: 5)

  private static func grouped(_ operation: WalletOperation, with number: UInt64) -> WalletOperation {
    var operation = operation
    operation.group = OperationID(high: 9, low: number)
    return operation
  }

  private static func reply(_ state: WalletReply.State) -> WalletReply {
    var totals = WalletTotals()
    (totals.granted, totals.earned, totals.spent, totals.returned) = (4, 3, 2, 1)
    return WalletReply(
      chain: ChainID(high: 5, low: 6), state: state, statement: 13, totals: ["gems": totals], balances: ["gems": 9],
      recalled: ["gems": 1],
      decisions: [
        WalletDecision(id: OperationID(high: 9, low: 4), verdict: .declined),
        WalletDecision(id: OperationID(high: 9, low: 1), verdict: .accepted),
        WalletDecision(id: OperationID(high: 9, low: 7), verdict: .waiting),
        WalletDecision(id: OperationID(high: 9, low: 2), verdict: .idReused),
        WalletDecision(id: OperationID(high: 9, low: 8), verdict: .unknown),
      ],
      held: [
        "gems": [
          WalletHolding(device: DeviceID(high: 0, low: 2), amount: 30, seenMilliseconds: 1_767_222_000_000),
          WalletHolding(device: nil, amount: 5, seenMilliseconds: 0),
        ]
      ], goods: WalletGoods(after: 5, number: 7, counts: ["sword": 2, "hat": 0]))
  }

  private static let cursor = Cursor(epoch: 3, seq: 41, mark: 977)
  private static let changes: [CloudChange] =
    cells.enumerated().map { CloudChange(seq: UInt64($0.offset) + 20, item: .cell($0.element)) }
    + versions.enumerated().map { CloudChange(seq: UInt64($0.offset) + 40, item: .version($0.element)) }

  static let requests: [(name: String, message: ExchangeRequest)] = [
    ("request-bare", ExchangeRequest(cursor: .start, limit: 100)),
    (
      "request",
      ExchangeRequest(
        cursor: cursor, cells: cells, versions: versions, contents: contents, wallet: offer, limit: 500,
        damaged: [hash("lost")])
    ),
    (
      "request-part",
      ExchangeRequest(
        cursor: cursor, cells: [cells[0]], limit: 100,
        part: OfferPart(offer: OfferID(high: 0, low: 3), number: 2, isLast: true),
        hasStaged: true)
    ),
    (
      "request-first-part",
      ExchangeRequest(
        cursor: cursor, versions: [versions[1]], limit: 100,
        part: OfferPart(offer: OfferID(high: 0, low: 3), number: 0, isLast: false))
    ),
  ]

  static let responses: [(name: String, message: ExchangeResponse)] =
    [
      (
        "response-accepted",
        ExchangeResponse(
          outcome: .accepted(seq: 41), changes: changes, contents: contents, wallet: reply(.accepted(head)),
          cursor: cursor, more: true,
          serverTimeMilliseconds: 1_767_225_600_000, wanted: [hash("two")],
          quota: QuotaUse(limit: 1_073_741_824, used: 1_073_700_000))
      ),
      (
        "response-restart",
        ExchangeResponse(
          outcome: nil, restart: true, changes: [], contents: [], wallet: nil, cursor: .start, more: false,
          serverTimeMilliseconds: 5)
      ),
      (
        "response-missing",
        response(.missing([hash("one"), hash("two")]), .accepted(ChainHead(count: 0, hash: hash("none"))))
      ),
      (
        "response-refused",
        response(
          .refused([
            Refusal(item: "cell progress/level", reason: .tooLarge, message: "Too large."),
            Refusal(item: "cell progress/hat", reason: .invalid, message: "Makes no sense."),
            Refusal(
              item: "version \(version(2))", reason: .quota, message: "No room.",
              quota: QuotaShortage(limit: 1_073_741_824, used: 1_073_700_000, needed: 52_000)),
          ]), .from(head: head, common: head))
      ),
      ("response-held", response(.held(parts: 2), .closed(common: head))),
      ("response-behind", response(nil, .from(head: head, common: nil))),
    ]

  private static func response(_ outcome: ExchangeOutcome?, _ state: WalletReply.State) -> ExchangeResponse {
    ExchangeResponse(
      outcome: outcome, changes: [], contents: [], wallet: reply(state), cursor: cursor, more: false,
      serverTimeMilliseconds: 5)
  }

  static let events: [(name: String, message: CloudEvent)] = [
    ("event-bare", CloudEvent(seq: 41)), ("event-restored", CloudEvent(seq: 12, unknown: cursor)),
    (
      "event",
      CloudEvent(
        seq: 41,
        step: CloudEvent.Step(
          after: Cursor(epoch: 3, seq: 19, mark: 5), cursor: cursor, changes: changes, contents: contents))
    ),
  ]

  static let devices: [(name: String, message: DeviceList)] = [
    (
      "devices",
      DeviceList(devices: [
        device(1, isThis: true, has: nil), device(2, isThis: false, has: [version(2), version(3)]),
        device(3, isThis: false, has: []),
      ])
    )
  ]

  private static func device(_ number: UInt64, isThis: Bool, has: [VersionID]?) -> AccountDevice {
    AccountDevice(
      device: DeviceID(high: 0, low: number), name: "iPad \(number)", createdMilliseconds: 5, seenMilliseconds: 7,
      isThis: isThis, has: has)
  }
}
