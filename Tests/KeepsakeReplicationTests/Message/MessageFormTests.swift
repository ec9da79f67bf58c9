import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

/// The exact text of each message: clients in other languages are written from it, and devices of other releases read
/// it.
@Suite struct MessageFormTests {
  /// A message and its text, with every field set, or with only the required ones.
  struct Form: CustomTestStringConvertible, Sendable {
    let name: String
    let text: String
    /// Whether the message is written as the text, and the text read as the message.
    let isWritten: @Sendable () throws -> Bool
    let isRead: @Sendable (String) throws -> Bool
    /// Decodes a message, and encodes it again.
    let again: @Sendable (Data) throws -> String

    init<Message: Codable & Equatable & Sendable>(_ name: String, _ message: Message, _ text: String) {
      self.name = name
      self.text = text
      isWritten = { try Self.text(message) == text }
      isRead = { try JSONDecoder().decode(Message.self, from: Data($0.utf8)) == message }
      again = { try Self.text(JSONDecoder().decode(Message.self, from: $0)) }
    }

    var testDescription: String { name }

    static func text(_ value: some Encodable) throws -> String {
      String(decoding: try CodingTests.encoder().encode(value), as: UTF8.self)
    }
  }

  static let one = "00000000000000000000000000000001"
  static let two = "00000000000000000000000000000002"
  static let three = "00000000000000000000000000000003"
  static let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

  static let hash = ContentHash(of: Data("abc".utf8))
  static let head = ChainHead(count: 3, hash: hash)
  static let headText = #"{"count":3,"hash":"\#(abc)"}"#
  static let cursor = Cursor(epoch: 0, seq: 41, mark: 977)
  static let cursorText = #"{"epoch":0,"mark":977,"seq":41}"#
  static let cell = CellUpdate(
    key: CellKey(collection: "progress", key: "level"), state: CellState(generation: 2, value: .max(.int(6))))
  static let cellText = #"{"collection":"progress","generation":2,"key":"level","value":{"max":{"int":6}}}"#
  static let setCell = CellUpdate(
    key: CellKey(collection: "progress", key: "flowers"),
    state: CellState(
      value: .set(
        ObservedSet([
          WriterID(1): ObservedSet.Additions(
            seen: NumberRanges([1...4, 6...6]), present: [3: .string("rose"), 6: .int(7)])
        ]))))
  static let setCellText =
    #"""
    {"collection":"progress","key":"flowers","value":{"set":[{"seen":[[1,4],[6,6]],\#
    "standing":[{"element":{"string":"rose"},"number":3},{"element":{"int":7},"number":6}],\#
    "writer":"0000000000000001"}]}}
    """#
  static let dictionaryCell = CellUpdate(
    key: CellKey(collection: "progress", key: "best times"),
    state: CellState(value: .dictionary([.string("cave"): .min(.int(61)), .string("hill"): .min(.double(40.5))])))
  static let dictionaryCellText =
    #"""
    {"collection":"progress","key":"best \#
    times","value":{"dictionary":[{"key":{"string":"cave"},"value":{"min":{"int":61}}},{"key":{"string":"hill"},\#
    "value":{"min":{"double":40.5}}}]}}
    """#
  static let laterCell = CellUpdate(
    key: CellKey(collection: "progress", key: "vote"),
    state: CellState(
      value: .later(
        LaterValue([
          LaterValueID(high: 0, low: 2): LaterValue.Entry(
            rule: "quorum", content: Data([1, 2]), over: [LaterValueID(high: 0, low: 1)]),
          LaterValueID(high: 0, low: 3): LaterValue.Entry(rule: "quorum", content: Data("abc".utf8)),
        ]))))
  static let laterCellText =
    #"""
    {"collection":"progress","key":"vote","value":{"later":[{"content":"AQI=","id":"\#(two)","over":["\#(one)"],\#
    "rule":"quorum"},{"content":"YWJj","id":"\#(three)","rule":"quorum"}]}}
    """#
  static let version = VersionRecord(
    id: VersionID(high: 0, low: 2), slot: "main", covers: [VersionID(high: 0, low: 1)], contents: [hash], length: 3,
    metadata: SaveMetadata(title: "Cave", playtime: 1.5, progress: 2, thumbnail: Data([1, 2]), custom: ["hat": "red"]),
    savedAtMilliseconds: 5, writer: WriterID(1), provisional: true)
  static let versionText =
    #"""
    {"contents":["\#(abc)"],"covers":["\#(one)"],"id":"\#(two)","length":3,"metadata":{"custom":{"hat":"red"},\#
    "playtime":1.5,"progress":2,"thumbnail":"AQI=","title":"Cave"},"provisional":true,"savedAtMilliseconds":5,\#
    "slot":"main","writer":"0000000000000001"}
    """#
  static let content = EncodedContent(hash: hash, length: 3, base: hash, bytes: Data([40, 181]))
  static let contentText = #"{"base":"\#(abc)","bytes":"KLU=","hash":"\#(abc)","length":3}"#
  static let claim = WalletOperation(
    id: OperationID(high: 0, low: 3), kind: .claim(key: "daily"), currency: "gems", amount: 5, reason: "day 1",
    goods: ["hat"],
    madeAtMilliseconds: 7)
  static let claimText =
    #"""
    {"amount":5,"currency":"gems","goods":["hat"],"id":"\#(three)","key":"daily","kind":"claim",\#
    "madeAtMilliseconds":7,"reason":"day 1"}
    """#
  static let offer = WalletOffer(
    chain: ChainID(high: 0, low: 1), follows: ChainID(high: 0, low: 2), base: head, statement: 8, epoch: 1, proving: 2,
    proof: WalletStatement(
      epoch: 1, number: 8, head: head, totals: ["gems": totals()], code: Data([0xAB, 0xCD, 0xEF, 0x12])),
    settled: SettledOperations(
      statement: WalletStatement(epoch: 1, number: 8, head: head, totals: [:]), previous: head.hash, operations: [claim]
    ),
    skipsLost: true, operations: [claim], late: [claim], ancestors: [ChainID(high: 0, low: 3)], again: 1,
    waiting: [claim.id], needs: ["gems": 4], goods: 6, orders: 2)
  static let offerText =
    #"""
    {"again":1,"ancestors":["\#(three)"],"base":\#(headText),"chain":"\#(one)","epoch":1,\#
    "follows":"\#(two)","goods":6,"late":[\#(claimText)],"needs":{"gems":4},"operations":[\#(claimText)],"orders":2,\#
    "proof":{"code":"q83vEg==","epoch":1,"head":\#(headText),"number":8,\#
    "totals":{"gems":{"earned":3,"granted":4,"returned":1,"spent":2}}},"proving":2,\#
    "settled":{"operations":[\#(claimText)],"previous":"\#(abc)",\#
    "statement":{"code":"","epoch":1,"head":\#(headText),"number":8,"totals":{}}},"skipsLost":true,"statement":8,\#
    "version":2,"waiting":["\#(three)"]}
    """#
  static let refusal = Refusal(item: "cell progress/level", reason: .tooLarge, message: "Too large.")
  static let full = Refusal(
    item: "version \(two)", reason: .quota, message: "No room.",
    quota: QuotaShortage(limit: 1_073_741_824, used: 1_073_700_000, needed: 52_000))
  static let fullText =
    #"""
    {"item":"version \#(two)","message":"No \#
    room.","quota":{"limit":1073741824,"needed":52000,"used":1073700000},"reason":"quota"}
    """#
  static let refusalText = #"{"item":"cell progress/level","message":"Too large.","reason":"tooLarge"}"#

  static let refund = BankOrder(
    id: OperationID(high: 0, low: 1), kind: .refund, currency: "gems", amount: 5, reason: "by mistake", goods: ["hat"],
    purchase: OperationID(high: 0, low: 2), madeAtMilliseconds: 7)
  static let refundText =
    #"""
    {"amount":5,"currency":"gems","goods":["hat"],"id":"\#(one)","kind":"refund","madeAtMilliseconds":7,\#
    "purchase":"\#(two)","reason":"by mistake"}
    """#
  static let receipt = BankOrder(
    id: OperationID(high: 0, low: 1), kind: .grant, currency: "gems", amount: 5, reason: "", receipt: hash)
  static let receiptText =
    #"{"amount":5,"currency":"gems","id":"\#(one)","kind":"grant","reason":"","receipt":"\#(abc)"}"#

  static func totals() -> WalletTotals {
    var totals = WalletTotals()
    (totals.granted, totals.earned, totals.spent, totals.returned) = (4, 3, 2, 1)
    return totals
  }

  static func operation(_ kind: WalletOperation.Kind) -> WalletOperation {
    WalletOperation(id: claim.id, kind: kind, currency: "gems", amount: 5, reason: "")
  }

  static func operationText(_ kind: String) -> String {
    #"{"amount":5,"currency":"gems","id":"\#(three)","kind":"\#(kind)","reason":""}"#
  }

  static var conversion: WalletOperation {
    var operation = operation(.convert(to: "crowns", received: 2))
    operation.group = OperationID(high: 0, low: 2)
    return operation
  }

  static var endedReply: WalletReply {
    var proof = WalletStatement(
      epoch: 2, number: 8, head: head, totals: [:], code: Data([0xAB, 0xCD, 0xEF, 0x12]))
    proof.isOfHead = true
    return WalletReply(chain: ChainID(high: 0, low: 1), state: .closed(common: head), epoch: 2, proof: proof)
  }
  static let reply = WalletReply(
    chain: ChainID(high: 0, low: 1), state: .from(head: head, common: head), statement: 9, epoch: 2,
    code: Data([0xAB, 0xCD, 0xEF, 0x12]), totals: ["gems": totals()], balances: ["gems": 9], recalled: ["gems": 1],
    decisions: [WalletDecision(id: claim.id, verdict: .declined)],
    held: ["gems": [WalletHolding(device: DeviceID(high: 0, low: 2), amount: 5, seenMilliseconds: 3_600_000)]],
    goods: WalletGoods(after: 6, number: 7, counts: ["hat": 2]),
    orders: [NumberedOrder(number: 3, order: refund)], owed: ["gems": 8], authoritative: ["rubies"])
  static let replyText =
    #"""
    {"authoritative":["rubies"],"balances":{"gems":9},"chain":"\#(one)","code":"q83vEg==",\#
    "decisions":[{"id":"\#(three)","verdict":"declined"}],"epoch":2,"goods":{"after":6,"counts":{"hat":2},"number":7},\#
    "held":{"gems":[{"amount":5,"device":"\#(two)","seenMilliseconds":3600000}]},\#
    "orders":[{"number":3,"order":\#(refundText)}],"owed":{"gems":8},\#
    "recalled":{"gems":1},"state":{"from":{"common":\#(headText),"head":\#(headText)}},"statement":9,\#
    "totals":{"gems":{"earned":3,"granted":4,"returned":1,"spent":2}}}
    """#

  static let request = ExchangeRequest(
    cursor: cursor, cells: [cell], versions: [version], contents: [content], wallet: offer, limit: 500, damaged: [hash])
  static let requestText =
    #"{"cells":[\#(cellText)],"contents":[\#(contentText)],"cursor":\#(cursorText),"damaged":["\#(abc)"],"limit":500,"#
    + #""protocolVersion":1,"versions":[\#(versionText)],"wallet":\#(offerText)}"#
  static let response = ExchangeResponse(
    outcome: .accepted(seq: 41), restart: true,
    changes: [CloudChange(seq: 40, item: .cell(cell)), CloudChange(seq: 41, item: .version(version))],
    contents: [content],
    wallet: reply, cursor: cursor, more: true, serverTimeMilliseconds: 1_767_225_600_000, wanted: [hash],
    quota: QuotaUse(limit: 1_073_741_824, used: 1_073_700_000))
  static let event = CloudEvent(
    seq: 41,
    step: CloudEvent.Step(
      after: Cursor(epoch: 0, seq: 40, mark: 5), cursor: cursor, changes: [CloudChange(seq: 41, item: .cell(cell))],
      contents: [content]))
  static let eventText =
    #"""
    {"after":{"epoch":0,"mark":5,"seq":40},"changes":[{"cell":\#(cellText),"seq":41}],"contents":[\#(contentText)],\#
    "cursor":\#(cursorText),"seq":41}
    """#
  static let responseText =
    #"""
    {"changes":[{"cell":\#(cellText),"seq":40},{"seq":41,"version":\#(versionText)}],"contents":[\#(contentText)],\#
    "cursor":\#(cursorText),"more":true,"outcome":{"accepted":{"seq":41}},"quota":{"limit":1073741824,\#
    "used":1073700000},"restart":true,"serverTimeMilliseconds":1767225600000,"wallet":\#(replyText),\#
    "wanted":["\#(abc)"]}
    """#

  static func device(_ number: UInt64, has: [VersionID]?) -> AccountDevice {
    AccountDevice(
      device: DeviceID(high: 0, low: number), name: "iPad", createdMilliseconds: 5, seenMilliseconds: 7, isThis: false,
      has: has)
  }
  static func deviceText(_ id: String, _ has: String = "") -> String {
    #"{"createdMilliseconds":5,"device":"\#(id)",\#(has)"isThis":false,"name":"iPad","seenMilliseconds":7}"#
  }

  static let forms: [Form] = [
    Form("a request", request, requestText),
    Form("a response", response, responseText),
    Form("the payment of a receipt", receipt, receiptText),
    Form("a cell", cell, cellText),
    Form("a cell with a set", setCell, setCellText),
    Form("a cell with a dictionary", dictionaryCell, dictionaryCellText),
    Form("a cell of a later rule", laterCell, laterCellText),
    Form("a version", version, versionText),
    Form("a content", content, contentText),
    Form("what a wallet offers", offer, offerText),
    Form("what the bank replies", reply, replyText),
    Form("a claim", claim, claimText),
    Form("earned", operation(.earn), operationText("earn")),
    Form("spent", operation(.spend), operationText("spend")),
    Form("given back", operation(.giveBack), operationText("giveBack")),
    Form(
      "a request that confirms a set-back store",
      ExchangeRequest(cursor: .start, limit: 100, setBack: SetBack(from: 41, to: 7)),
      #"""
      {"cursor":{"epoch":0,"mark":0,"seq":0},"limit":100,"protocolVersion":1,"setBack":{"from":41,"to":7}}
      """#),
    Form(
      "a response to a set-back store",
      ExchangeResponse(
        outcome: nil, changes: [], contents: [], wallet: nil, cursor: cursor, more: false, serverTimeMilliseconds: 5,
        setBack: SetBack(from: 41, to: 7), setBackMark: SetBackMark(atMilliseconds: 9, isRefused: true)),
      #"""
      {"cursor":\#(cursorText),"serverTimeMilliseconds":5,"setBack":{"from":41,"to":7},\#
      "setBackMark":{"atMilliseconds":9,"refused":true}}
      """#),
    Form(
      "a response to a device that may only read",
      ExchangeResponse(
        outcome: .refused([Refusal(item: "all", reason: .readOnly, message: "read only")]), changes: [], contents: [],
        wallet: nil, cursor: cursor, more: false, serverTimeMilliseconds: 5, isReadOnly: true),
      #"""
      {"cursor":\#(cursorText),\#
      "outcome":{"refused":[{"item":"all","message":"read only","reason":"readOnly"}]},\#
      "readOnly":true,"serverTimeMilliseconds":5}
      """#),
    Form("the mark of a set-back store", SetBackMark(atMilliseconds: 9, isRefused: false), #"{"atMilliseconds":9}"#),
    Form("a refusal", refusal, refusalText),
    Form("a refusal for want of room", ExchangeOutcome.refused([full]), #"{"refused":[\#(fullText)]}"#),
    Form("accepted", ExchangeOutcome.accepted(seq: 4), #"{"accepted":{"seq":4}}"#),
    Form("missing", ExchangeOutcome.missing([hash]), #"{"missing":["\#(abc)"]}"#),
    Form("held", ExchangeOutcome.held(parts: 2), #"{"held":{"parts":2}}"#),
    Form(
      "a part of an offer", OfferPart(offer: OfferID(high: 0, low: 3), number: 0, isLast: false),
      #"{"number":0,"offer":"\#(three)"}"#),
    Form(
      "a request with a last part",
      ExchangeRequest(
        cursor: .start, limit: 100, part: OfferPart(offer: OfferID(high: 0, low: 3), number: 2, isLast: true)),
      #"""
      {"cursor":{"epoch":0,"mark":0,"seq":0},"limit":100,"part":{"last":true,"number":2,"offer":"\#(three)"},\#
      "protocolVersion":1}
      """#),
    Form(
      "a request of a device that stages", ExchangeRequest(cursor: cursor, limit: 100, hasStaged: true),
      #"{"cursor":\#(cursorText),"limit":100,"protocolVersion":1,"staged":true}"#),
    Form("a list of devices", DeviceList(devices: [device(1, has: nil)]), #"{"devices":[\#(deviceText(one))]}"#),
    Form(
      "a list of devices with what they have", DeviceList(devices: [device(1, has: [version.id]), device(2, has: [])]),
      #"{"devices":[\#(deviceText(one, #""has":["\#(two)"],"#)),\#(deviceText(two, #""has":[],"#))]}"#),
    Form("an event of a restored cloud", CloudEvent(seq: 12, unknown: cursor), #"{"seq":12,"unknown":\#(cursorText)}"#),
    Form("refused", ExchangeOutcome.refused([refusal]), #"{"refused":[\#(refusalText)]}"#),
    Form("a chain that stands", WalletReply.State.accepted(head), #"{"accepted":\#(headText)}"#),
    Form("a bank that was set back", WalletReply.State.restored, #"{"restored":true}"#),
    Form("a closed chain", WalletReply.State.closed(common: head), #"{"closed":\#(headText)}"#),
    Form(
      "a reply about a chain that ended", endedReply,
      #"""
      {"chain":"\#(one)","epoch":2,\#
      "proof":{"code":"q83vEg==","epoch":2,"head":\#(headText),"isOfHead":true,"number":8,"totals":{}},\#
      "state":{"closed":\#(headText)}}
      """#),
    Form(
      "a voucher",
      WalletVoucher(
        bank: ContainerID(high: 0, low: 1), chain: ChainID(high: 0, low: 2), receiver: ContainerID(high: 0, low: 3),
        amounts: ["gems": 100],
        claims: [WalletVoucher.Claim(key: "daily-2026-11-20", currency: "gems", amount: 30)],
        code: Data([0xAB, 0xCD, 0xEF, 0x12, 0x34, 0x56, 0x78, 0x90])),
      #"""
      {"amounts":{"gems":100},"bank":"00000000000000000000000000000001",\#
      "chain":"00000000000000000000000000000002",\#
      "claims":[{"amount":30,"currency":"gems","key":"daily-2026-11-20"}],"code":"q83vEjRWeJA=",\#
      "receiver":"00000000000000000000000000000003"}
      """#),
    Form(
      "a chain too far ahead", WalletReply.State.from(head: head, common: nil), #"{"from":{"head":\#(headText)}}"#),
    Form(
      "a conversion in a group", conversion,
      #"""
      {"amount":5,"currency":"gems","group":"\#(two)","id":"\#(three)","kind":"convert","reason":"",\#
      "received":2,"to":"crowns"}
      """#),
    Form("an event", CloudEvent(seq: 41), #"{"seq":41}"#),
    Form("an event with what changed", event, eventText),
    // With only the required fields.
    Form("a bare request", ExchangeRequest(cursor: .start, limit: 100), bareRequest),
    Form(
      "a bare response",
      ExchangeResponse(
        outcome: nil, changes: [], contents: [], wallet: nil, cursor: cursor, more: false, serverTimeMilliseconds: 5),
      #"{"cursor":\#(cursorText),"serverTimeMilliseconds":5}"#),
    Form(
      "a cell's first generation", CellUpdate(key: cell.key, state: CellState(value: .max(.int(6)))),
      #"{"collection":"progress","key":"level","value":{"max":{"int":6}}}"#),
    Form(
      "a full content", EncodedContent(hash: hash, length: 0, base: nil, bytes: Data()),
      #"{"bytes":"","hash":"\#(abc)","length":0}"#),
    Form(
      "a delete",
      VersionRecord(
        id: VersionID(high: 0, low: 2), slot: "main", covers: [], contents: [], length: 0, savedAtMilliseconds: 5,
        writer: WriterID(1),
        provisional: false, tombstone: true),
      #"{"id":"\#(two)","savedAtMilliseconds":5,"slot":"main","tombstone":true,"writer":"0000000000000001"}"#),
    Form(
      "a bare offer",
      WalletOffer(chain: ChainID(high: 0, low: 1), version: 1, base: head),
      #"{"base":\#(headText),"chain":"\#(one)"}"#),
    Form(
      "a bare reply", WalletReply(chain: ChainID(high: 0, low: 1), state: .accepted(head)),
      #"{"chain":"\#(one)","state":{"accepted":\#(headText)}}"#),
  ]
  static let bareRequest = #"{"cursor":{"epoch":0,"mark":0,"seq":0},"limit":100,"protocolVersion":1}"#

  @Test("each message is encoded as its fixed text, and decoded from it", arguments: forms)
  func formsAreFixed(form: Form) throws {
    #expect(try form.isWritten(), "\(form.text)")
    #expect(try form.isRead(form.text))
  }

  @Test("the fields of a later release, which this one doesn't know, are ignored in every message", arguments: forms)
  func unknownFields(form: Form) throws {
    let later = #""a later field":[{"of":null},1e9,"any kind"],"#
    var text = form.text.replacingOccurrences(of: "{", with: "{" + later)
    // Dictionaries have no fields: every name in them is one of the game's.
    for table in ["needs", "totals", "balances", "recalled", "held", "counts", "owed", "custom", "amounts"] {
      text = text.replacingOccurrences(of: "\"\(table)\":{" + later, with: "\"\(table)\":{")
    }
    #expect(text != form.text)
    #expect(try form.isRead(text), "\(text)")
  }

  @Test("lists and flags that are sent although they are empty, false or null are read as if they were left out")
  func emptyAndNull() throws {
    let bare = ExchangeRequest(cursor: .start, limit: 100)
    for empty in ["[]", "null"] {
      let text =
        Self.bareRequest.dropLast() + #","cells":\#(empty),"versions":\#(empty),"contents":\#(empty),"wallet":null}"#
      let isSame = try JSONDecoder().decode(ExchangeRequest.self, from: Data(text.utf8)) == bare
      #expect(isSame, "\(text)")
    }
    let answer =
      #"""
      {"changes":[],"contents":null,"cursor":\#(Self.cursorText),"more":false,"outcome":null,"restart":null,\#
      "serverTimeMilliseconds":5}
      """#
    let response = try JSONDecoder().decode(ExchangeResponse.self, from: Data(answer.utf8))
    #expect(
      response.outcome == nil && !response.more && !response.restart && response.changes.isEmpty
        && response.contents.isEmpty)
  }

  @Test("the examples in docs/PROTOCOL.md are messages exactly as they are sent, and none is missing")
  func documentedForms() throws {
    let document = try String(contentsOf: Repository.root.appending(path: "docs/PROTOCOL.md"), encoding: .utf8)
    func plain(_ text: String) throws -> String {
      let value = try JSONSerialization.jsonObject(with: Data(text.utf8))
      return String(decoding: try JSONSerialization.data(withJSONObject: value, options: .sortedKeys), as: UTF8.self)
    }
    var names: [String: String] = [:]
    for form in Self.forms { names[try plain(form.text)] = form.name }
    var shown: Set<String> = []
    for block in document.components(separatedBy: "```json\n").dropFirst() {
      let example = try #require(block.components(separatedBy: "```").first)
      shown.insert(try #require(names[try plain(example)], "no message looks like this: \(example)"))
    }
    let expected: Set = [
      "a request", "a bare request", "a response", "a bare response", "a delete", "missing", "refused",
      "a refusal for want of room",
      "a chain that stands", "a conversion in a group",
      "a closed chain", "a bank that was set back", "a voucher", "a reply about a chain that ended",
      "a chain too far ahead", "held", "a request with a last part", "an event", "an event of a restored cloud",
      "an event with what changed", "a cell with a set", "a cell with a dictionary", "a cell of a later rule",
      "a request that confirms a set-back store", "a response to a set-back store", "the mark of a set-back store",
      "a request of a device that stages", "a list of devices with what they have",
      "a response to a device that may only read",
    ]
    #expect(shown == expected)
  }

  private func isRefused<Message: Decodable>(_ type: Message.Type, _ text: String) -> Bool {
    do {
      _ = try JSONDecoder().decode(type, from: Data(text.utf8))
      return false
    } catch {
      return error is DecodingError
    }
  }

  @Test("an event with an unknown kind of change is decoded with its seq alone; an event without a seq is an error")
  func laterEvents() throws {
    let text = Self.eventText.replacingOccurrences(of: #""cell":"#, with: #""picture":"#)
    #expect(try JSONDecoder().decode(CloudEvent.self, from: Data(text.utf8)) == CloudEvent(seq: 41))
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(CloudEvent.self, from: Data(#"{"after":{}}"#.utf8)) }
  }

  @Test("an unknown case of a later release is a decoding error, and is never mistaken for a known one")
  func unknownCases() {
    #expect(isRefused(ExchangeOutcome.self, #"{"stale":[]}"#))
    #expect(isRefused(ExchangeOutcome.self, #"{"accepted":{"seq":4},"missing":[]}"#))
    #expect(isRefused(ExchangeOutcome.self, "{}"))
    #expect(isRefused(ExchangeOutcome.self, #""accepted""#))
    #expect(isRefused(CloudChange.self, #"{"seq":1,"picture":{}}"#))
    #expect(isRefused(CloudChange.self, #"{"seq":1,"cell":\#(Self.cellText),"version":\#(Self.versionText)}"#))
    #expect(isRefused(CellValue.self, #"{"median":{"int":6}}"#))
    #expect(isRefused(WalletReply.State.self, #"{"paused":\#(Self.headText)}"#))
    #expect(isRefused(WalletOperation.self, Self.operationText("gift")))
    // A claim without its key would be paid again and again.
    #expect(isRefused(WalletOperation.self, Self.operationText("claim")))
    #expect(isRefused(WalletDecision.self, #"{"id":"\#(Self.one)","verdict":"late"}"#))
    // An unknown outcome must not look like the response to a request that sent nothing.
    #expect(
      isRefused(
        ExchangeResponse.self, #"{"cursor":\#(Self.cursorText),"outcome":{"stale":[]},"serverTimeMilliseconds":5}"#))
  }

  @Test("an unknown reason for a refusal is passed on unchanged, together with its message")
  func unknownReasons() throws {
    let text = #"{"item":"version \#(Self.two)","message":"This game has no cloud saves.","reason":"entitlement"}"#
    let refusal = try JSONDecoder().decode(Refusal.self, from: Data(text.utf8))
    #expect(refusal.reason.rawValue == "entitlement" && refusal.message == "This game has no cloud saves.")
    #expect(try Form.text(refusal) == text)
  }

  @Test("a request of another protocol version throws an error that says so, whatever else it contains")
  func otherProtocol() {
    for text in [#"{"protocolVersion":2}"#, #"{"protocolVersion":2,"cells":"of another kind","cursor":7}"#] {
      #expect(throws: ExchangeError.unsupportedProtocol(2)) {
        try JSONDecoder().decode(ExchangeRequest.self, from: Data(text.utf8))
      }
    }
  }

  /// The values that replace those of an altered message.
  private static func strangeValues() -> [Any] {
    [
      NSNull(), true, -1, 0, Int64.max, Int64.min, UInt64.max, 1e300, -0.5, "", "text", "\u{0}",
      String(repeating: "9", count: 5_000),
      [Any](), [String: Any](), [[Any]()], ["max": ["int": 6]], ["accepted": ["seq": 4]], ["__proto__": 1],
    ]
  }

  @Test(
    "a message with any one value altered is an error, or a message that the cloud accepts or refuses",
    arguments: [41] as [UInt64])
  func alteredMessages(seed: UInt64) async throws {
    let (read, refused) = try await withCheckedThrowingContinuation { continuation in
      // This takes long enough to make other tests wait, so it has a thread of its own.
      Thread { continuation.resume(with: Result { try Self.readAltered(seed: seed) }) }.start()
    }
    #expect(read > 100 && refused > 1_000, "seed \(seed): \(read) read, \(refused) refused")
  }

  private static func readAltered(seed: UInt64) throws -> (read: Int, refused: Int) {
    var random = SeededGenerator(seed: seed)
    let strange = strangeValues()
    var read = 0
    var refused = 0
    for form in forms {
      let whole = try JSONSerialization.jsonObject(with: Data(form.text.utf8))
      for number in 0..<places(in: whole) {
        for value in strange {
          var left = number
          let altered = try JSONSerialization.data(withJSONObject: ["it": replaced(whole, at: &left, by: value)])
          // Without the enclosing object, which is there because a string alone isn't a JSON document everywhere.
          let data = Data(altered.dropFirst(#"{"it":"#.utf8.count).dropLast())
          do {
            _ = try form.again(data)
            read += 1
            if form.name == "a request" {
              try exchange(JSONDecoder().decode(ExchangeRequest.self, from: data), using: &random)
            }
            if form.name.hasPrefix("a cell") {
              // In the cloud it is joined with the original cells.
              let cells = [try JSONDecoder().decode(CellUpdate.self, from: data), setCell, dictionaryCell]
              try exchange(ExchangeRequest(cursor: .start, cells: cells, limit: 100), using: &random)
            }
          } catch is DecodingError {
            refused += 1
          } catch is ExchangeError {
            refused += 1
          }
        }
      }
    }
    return (read, refused)
  }

  /// Sends a request that could be decoded to an empty cloud.
  private static func exchange(_ request: ExchangeRequest, using random: inout SeededGenerator) throws {
    var request = request
    request.cursor = .start
    var cloud = MemoryContainer(epoch: 0)
    _ = try CloudAcceptance.exchange(request, now: 0, in: &cloud, using: &random)
  }

  /// Counts the values in a value, including itself.
  private static func places(in value: Any) -> Int {
    switch value {
    case let list as [Any]: 1 + list.reduce(0) { $0 + places(in: $1) }
    case let object as [String: Any]: 1 + object.values.reduce(0) { $0 + places(in: $1) }
    default: 1
    }
  }

  /// Replaces the value with this number, counted from the outside in.
  private static func replaced(_ value: Any, at number: inout Int, by other: Any) -> Any {
    if number == 0 {
      number = -1
      return other
    }
    number -= 1
    switch value {
    case let list as [Any]: return list.map { number < 0 ? $0 : replaced($0, at: &number, by: other) }
    case let object as [String: Any]:
      var result = object
      for key in object.keys.sorted() where number >= 0 {
        if let inner = object[key] { result[key] = replaced(inner, at: &number, by: other) }
      }
      return result
    default: return value
    }
  }
}
