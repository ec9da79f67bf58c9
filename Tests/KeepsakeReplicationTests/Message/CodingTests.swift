import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite struct CodingTests {
  static func encoder() -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }

  func text(_ value: some Encodable) throws -> String {
    String(decoding: try Self.encoder().encode(value), as: UTF8.self)
  }

  func again<Value: Codable>(_ value: Value) throws -> Value {
    try JSONDecoder().decode(Value.self, from: try Self.encoder().encode(value))
  }

  @Test("Values of cells are encoded in a fixed JSON form, which later versions can read")
  func formsAreFixed() throws {
    #expect(try text(CellValue.max(.int(6))) == #"{"max":{"int":6}}"#)
    #expect(try text(CellValue.min(.double(-0.5))) == #"{"min":{"double":-0.5}}"#)
    #expect(try text(CellValue.max(.double(.infinity))) == #"{"max":{"double":"inf"}}"#)
    #expect(
      try text(CellValue.union([.string("b"), .int(3), .data(Data([1, 2]))]))
        == #"{"union":[{"int":3},{"string":"b"},{"data":"AQI="}]}"#)
    let counter = CellValue.counter([
      WriterID(2): CounterEntry(plus: .max, minus: 1), WriterID(1): CounterEntry(plus: 3),
    ])
    #expect(
      try text(counter)
        == #"""
        {"counter":[{"minus":0,"plus":3,"writer":"0000000000000001"},{"minus":1,"plus":18446744073709551615,\#
        "writer":"0000000000000002"}]}
        """#)
    let best = BestScore(
      order: .descending, entry: .init(score: .int(1_000), dateMilliseconds: 7, payload: Data([1, 2])))
    #expect(
      try text(CellValue.best(best))
        == #"{"best":{"entry":{"dateMilliseconds":7,"payload":"AQI=","score":{"int":1000}},"order":"descending"}}"#)
    #expect(try text(CellValue.best(BestScore(order: .ascending, entry: nil))) == #"{"best":{"order":"ascending"}}"#)
    let withdrawn = BestScore(
      order: .ascending, entry: nil, withdrawn: [BestScore.Withdrawal(generation: 3, id: ScoreID(high: 0, low: 10))],
      isCleared: true)
    let json =
      #"""
      {"best":{"cleared":true,"order":"ascending","withdrawn":[{"generation":3,\#
      "id":"0000000000000000000000000000000a"}]}}
      """#
    #expect(try text(CellValue.best(withdrawn)) == json)
    #expect(try JSONDecoder().decode(CellValue.self, from: Data(json.utf8)) == .best(withdrawn))
    let latest = CellValue.latest(Stamp(caughtUp: true, milliseconds: 5, writer: WriterID(1)), .string("x"))
    #expect(
      try text(latest)
        == #"""
        {"latest":{"stamp":{"caughtUp":true,"milliseconds":5,"writer":"0000000000000001"},"value":{"string":"x"}}}
        """#)
  }

  @Test("Sets, dictionaries and optionals are encoded in a fixed JSON form, and decoded from it")
  func formsOfManyParts() throws {
    let set = CellValue.set(
      ObservedSet([
        WriterID(2): ObservedSet.Additions(
          seen: NumberRanges([1...1, 4...5]), present: [5: .int(7), 4: .string("rose")]),
        WriterID(1): ObservedSet.Additions(seen: NumberRanges([1...3])),
      ]))
    let forms: [(CellValue, String)] = [
      (.set(ObservedSet()), #"{"set":[]}"#),
      (
        set,
        #"""
        {"set":[{"seen":[[1,3]],"writer":"0000000000000001"},{"seen":[[1,1],[4,5]],\#
        "standing":[{"element":{"string":"rose"},"number":4},{"element":{"int":7},"number":5}],\#
        "writer":"0000000000000002"}]}
        """#
      ),
      (.dictionary([:]), #"{"dictionary":[]}"#),
      (
        .dictionary([.string("cave"): .min(.int(61)), .int(3): .min(.double(0.5))]),
        #"""
        {"dictionary":[{"key":{"int":3},"value":{"min":{"double":0.5}}},{"key":{"string":"cave"},\#
        "value":{"min":{"int":61}}}]}
        """#
      ),
      (
        .dictionary([.int(1): .optional(.max(.int(2)))]),
        #"{"dictionary":[{"key":{"int":1},"value":{"optional":{"max":{"int":2}}}}]}"#
      ),
      (.optional(nil), #"{"optional":null}"#), (.optional(.max(.int(6))), #"{"optional":{"max":{"int":6}}}"#),
    ]
    for (value, json) in forms {
      #expect(try text(value) == json)
      #expect(try JSONDecoder().decode(CellValue.self, from: Data(json.utf8)) == value, "\(json)")
    }
  }

  @Test("One more element in a set of 1,000 sends less than 200 bytes, and the whole set some 50 KiB, as documented")
  func bytesOfLargeSets() throws {
    let names = (0..<1_000).map { Scalar.string("flower \(10_000 + $0)") }
    let key = CellKey(collection: "progress", key: "favourites")
    let context = CellDraft.Context(writer: WriterID(7), caughtUp: true, nowMilliseconds: 0)
    let all = try #require(try CellDraft(key, .insertElements(Set(names))).applied(to: nil, context)).state
    let more = try #require(try CellDraft(key, .insertElements([.string("a rose")])).applied(to: all, context))
    #expect(try text(CellUpdate(key: key, state: more.delta)).utf8.count < 200)
    let whole = try text(CellUpdate(key: key, state: more.state)).utf8.count
    #expect(whole > 45 * 1024 && whole < 60 * 1024 && whole < 3 * more.state.value.size, "\(whole)")
  }

  @Test("Unusual encodings of sets and dictionaries are normalized; invalid or too deep ones are decoding errors")
  func strangeSets() throws {
    func read(_ json: String) throws -> CellValue { try JSONDecoder().decode(CellValue.self, from: Data(json.utf8)) }
    let one = #""writer":"0000000000000001""#
    // A writer that is listed twice has seen both lists; what is present counts as seen; ranges may overlap.
    let twice = try read(
      #"""
      {"set":[{\#(one),"seen":[[2,5],[1,3]]},{\#(one),"seen":[],"standing":[{"number":9,"element":{"int":1}},\#
      {"number":2,"element":{"int":2}}]}]}
      """#)
    #expect(
      twice
        == .set(
          ObservedSet([WriterID(1): ObservedSet.Additions(seen: NumberRanges([1...5, 9...9]), present: [9: .int(1)])])))
    #expect(try read(#"{"set":[{\#(one),"seen":[]}]}"#) == .set(ObservedSet()))
    #expect(
      try read(
        #"{"dictionary":[{"key":{"int":1},"value":{"max":{"int":1}}},{"key":{"int":1},"value":{"max":{"int":2}}}]}"#)
        == .dictionary([.int(1): .max(.int(2))]))
    for range in ["[1]", "[1,2,3]", "[3,1]", "[-1,2]", "[1,18446744073709551616]", "7", "[]"] {
      #expect(throws: DecodingError.self, "\(range)") { try read(#"{"set":[{\#(one),"seen":[\#(range)]}]}"#) }
    }
    // Too deep a value is refused before it overflows the stack.
    var deep = #"{"max":{"int":1}}"#
    for _ in 0..<CellValue.maximumDepth { deep = #"{"optional":\#(deep)}"# }
    #expect(try read(deep).objection() == nil)
    for _ in 0..<3 {
      deep = #"{"dictionary":[{"key":{"int":1},"value":\#(deep)}]}"#
      #expect(throws: DecodingError.self) { try read(deep) }
    }
  }

  @Test("Large numbers keep all their digits")
  func numbersKeepTheirDigits() throws {
    for scalar in [
      Scalar.int(.max), .int(.min), .int(9_007_199_254_740_993), .double(0.1), .double(.greatestFiniteMagnitude),
      .double(-.infinity),
      .double(.leastNonzeroMagnitude),
    ] {
      #expect(try again(scalar) == scalar)
    }
    let cursor = Cursor(epoch: 1, seq: 1 << 62, mark: .max)
    #expect(try again(cursor) == cursor)
    let entry = CellValue.counter([WriterID(.max): CounterEntry(plus: .max, minus: .max - 1)])
    #expect(try again(entry) == entry)
  }

  @Test("Any state of a cell is decoded as it was encoded", arguments: [11, 12, 13] as [UInt64])
  func statesSurvive(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<100 {
      let state = CellLawTests.state(using: &random)
      #expect(try again(state) == state, "seed \(seed)")
    }
  }

  @Test("Equal states of the bank are encoded as equal bytes", arguments: [21] as [UInt64])
  func bytesDontDependOnHashing(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var bank = BankState()
    for number in 0..<20 {
      let chain = ChainID(using: &random)
      bank.chains[chain] = BankState.Chain(head: ChainHead(emptyChain: chain), follows: nil)
      bank.pool["currency \(number)"] = 5
    }
    var other = BankState()
    for chain in bank.chains.keys.sorted().reversed() { other.chains[chain] = bank.chains[chain] }
    for currency in bank.pool.keys.sorted().reversed() { other.pool[currency] = 5 }
    #expect(try text(bank) == text(other))
    #expect(try again(bank) == bank)
  }

  @Test(
    "A damaged or hostile value is a decoding error",
    arguments: [
      #"{"max":{"int":6},"min":{"int":5}}"#, "{}", #"{"max":{}}"#, #"{"max":{"int":6.5}}"#,
      #"{"max":{"int":99999999999999999999}}"#,
      #"{"max":{"double":"nan"}}"#, #"{"counter":[{"writer":"zz","plus":1,"minus":0}]}"#,
      #"{"counter":[{"writer":"0000000000000001","plus":-1,"minus":0}]}"#, #"{"best":{"int":6}}"#,
      #"{"union":{"int":6}}"#,
      #"{"max":{"data":"!"}}"#, #"[1]"#, "",
    ])
  func badValuesAreErrors(text: String) {
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(CellValue.self, from: Data(text.utf8)) }
  }

  @Test("A request and a response with all their parts are decoded as they were encoded")
  func messagesSurvive() throws {
    var random = SeededGenerator(seed: 31)
    let chain = ChainID(using: &random)
    let operation = WalletOperation(
      id: OperationID(using: &random), kind: .claim(key: "daily"), currency: "gems", amount: 5, reason: "day 1",
      goods: ["hat"],
      madeAtMilliseconds: 5)
    let record = VersionRecord(
      id: VersionID(using: &random), slot: "main", covers: [VersionID(using: &random)],
      contents: [ContentHash(of: Data([1]))], length: 1,
      metadata: SaveMetadata(title: "A", playtime: 1.5, progress: 2, thumbnail: Data([9]), custom: ["k": "v"]),
      savedAtMilliseconds: 1, writer: WriterID(1), provisional: true)
    let content = EncodedContent(
      hash: ContentHash(of: Data([1])), length: 1, base: ContentHash(of: Data()), bytes: Data([1]))
    var offer = WalletOffer(
      chain: chain, follows: ChainID(using: &random), base: ChainHead(emptyChain: chain), operations: [operation],
      late: [operation], needs: ["gems": 4])
    offer.needs["keys"] = 0
    let request = ExchangeRequest(
      cursor: Cursor(epoch: 1, seq: 2, mark: 3),
      cells: [CellUpdate(key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.int(1))))],
      versions: [record], contents: [content], wallet: offer, limit: 10)
    #expect(try again(request) == request)
    var reply = WalletReply(chain: chain, state: .from(head: offer.base, common: offer.base))
    reply.totals["gems"] = WalletTotals()
    reply.decisions = [WalletDecision(id: operation.id, verdict: .declined)]
    for outcome in [
      nil, ExchangeOutcome.accepted(seq: 4), .missing([content.hash]),
      .refused([Refusal(item: "x", reason: .quota, message: "full")]),
    ] {
      let response = ExchangeResponse(
        outcome: outcome, restart: true, changes: [CloudChange(seq: 1, item: .version(record))], contents: [content],
        wallet: reply,
        cursor: request.cursor, more: true, serverTimeMilliseconds: 5)
      #expect(try again(response) == response)
    }
  }

  @Test("Identifiers and hashes are parsed only if they have the exact number of hexadecimal digits")
  func identifiersAreStrict() {
    #expect(
      VersionID("0123456789abcdef0123456789ABCDEF")
        == VersionID(high: 0x0123_4567_89AB_CDEF, low: 0x0123_4567_89AB_CDEF))
    for text in [
      "", "0123", "+123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdeg",
      " 123456789abcdef0123456789abcdef",
    ] {
      #expect(VersionID(text) == nil, "\(text)")
    }
    #expect(ContentHash("+" + String(repeating: "0", count: 63)) == nil)
    #expect(
      ContentHash(of: Data("abc".utf8)).description
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  }
}
