#if Cloud
import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

@Suite("Binary exchanges, with the frames behind the JSON")
struct BinaryExchangeTests {
  private let type = ExchangeBody.contentType

  private func request(_ seed: UInt64, _ count: Int) -> ExchangeRequest {
    let contents = (0..<2 as Range<UInt64>).map { number in
      EncodedContent(
        hash: ContentHash(of: Data("\(seed) \(number)".utf8)), length: count, base: nil,
        bytes: frameBytes(count, seed: seed + number))
    }
    let record = VersionRecord(
      id: VersionID(high: seed, low: 1), slot: "main", covers: [], contents: contents.map(\.hash), length: 2 * count,
      metadata: SaveMetadata(), savedAtMilliseconds: 5, writer: WriterID(1), provisional: false, tombstone: false)
    return ExchangeRequest(cursor: .start, versions: [record], contents: contents, limit: 100)
  }

  @Test(
    """
    values of a rule that the server doesn't know are accepted and passed on unchanged, and concurrent ones are all kept
    """)
  func laterRules() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let key = CellKey(collection: "progress", key: "vote")
      func update(_ entries: [(number: UInt64, over: [UInt64])]) -> CellUpdate {
        var all: [LaterValueID: LaterValue.Entry] = [:]
        for (number, over) in entries {
          all[LaterValueID(high: 0, low: number)] = LaterValue.Entry(
            rule: "quorum", content: Data([UInt8(number), 0, 0xFF]),
            over: Set(over.map { LaterValueID(high: 0, low: $0) }))
        }
        return CellUpdate(key: key, state: CellState(value: .later(LaterValue(all))))
      }
      func exchange(_ request: ExchangeRequest, binary: Bool) async throws -> ExchangeResponse {
        let format = binary ? type : "application/json"
        let answer = try await client.call(
          "POST", "/v1/exchange", headers: ["Content-Type": format, "Accept": format],
          body: binary ? ExchangeBody.encode(request) : JSONEncoder().encode(request))
        try #require(answer.status == 200, "\(answer.json)")
        return try binary
          ? ExchangeBody.decode(ExchangeResponse.self, from: answer.body)
          : JSONDecoder().decode(ExchangeResponse.self, from: answer.body)
      }
      let (first, second, both) = (update([(1, [])]), update([(2, [])]), update([(3, [1, 2])]))
      for (sent, expected, binary) in [
        (first, first, false), (second, update([(1, []), (2, [])]), true), (first, update([(1, []), (2, [])]), true),
        (both, both, false),
      ] {
        let answer = try await exchange(ExchangeRequest(cursor: .start, cells: [sent], limit: 100), binary: binary)
        guard case .accepted = answer.outcome else {
          Issue.record("\(String(describing: answer.outcome))")
          return
        }
        for binary in [false, true] {
          let heard = try await exchange(ExchangeRequest(cursor: .start, limit: 100), binary: binary)
          #expect(heard.changes.map(\.item) == [.cell(expected)])
        }
      }
    }
  }

  @Test("JSON and binary exchanges have the same meaning in both directions, and binary ones are a quarter smaller")
  func same() async throws {
    try await LiveServer.with { server in
      var answers: [ExchangeResponse] = []
      for (sends, wants) in [
        ("application/json", "*/*"), (type, "*/*"), (type, "\(type), application/json"),
        ("text/plain", " \(type.uppercased()) ;q=1"),
      ] {
        let (client, _) = try await server.client.register()
        let request = request(1, 50_000)
        let isBinary = sends == type
        let body = isBinary ? try ExchangeBody.encode(request) : try JSONEncoder().encode(request)
        #expect(isBinary == (body.count < 110_000))
        let answer = try await client.call("POST", "/v1/exchange", headers: ["Content-Type": sends], body: body)
        #expect(answer.status == 200 && answer.headers["content-type"] == "application/json", "\(answer.json)")
        // A device that starts from nothing gets what was sent.
        let hears = try await client.call(
          "POST", "/v1/exchange", headers: ["Content-Type": sends, "Accept": wants],
          body: try isBinary
            ? ExchangeBody.encode(ExchangeRequest(cursor: .start, limit: 100))
            : JSONEncoder().encode(ExchangeRequest(cursor: .start, limit: 100)))
        let wantsBinary = wants != "*/*"
        #expect(hears.headers["content-type"] == (wantsBinary ? type : "application/json"))
        #expect(wantsBinary == (hears.body.count < 110_000))
        var response =
          wantsBinary
          ? try ExchangeBody.decode(ExchangeResponse.self, from: hears.body)
          : try JSONDecoder().decode(ExchangeResponse.self, from: hears.body)
        let isWhole = response.contents == request.contents
        #expect(isWhole)
        response.cursor = .start
        response.serverTimeMilliseconds = 0
        answers.append(response)
      }
      let areSame = answers.allSatisfy { $0 == answers[0] }
      #expect(areSame)
    }
  }

  @Test("malformed binary bodies are refused with status 400, never as a server error")
  func badBodies() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let good = try ExchangeBody.encode(request(1, 100))
      func body(_ json: String, _ rest: String = "") -> Data {
        withUnsafeBytes(of: UInt32(json.utf8.count).bigEndian) { Data($0) } + Data((json + rest).utf8)
      }
      let hash = ContentHash(of: Data("a".utf8))
      func content(_ size: String) -> String {
        #"""
        {"protocolVersion":1,"cursor":{"epoch":0,"seq":0,"mark":0},"limit":1,"contents":[{"hash":"\#(hash)",\#
        "length":1,\#(size)}]}
        """#
      }
      let bad: [Data] = [
        Data(), Data([0, 0, 0]), Data([0, 0, 0, 0]), Data([255, 255, 255, 255, 123]), Data(good.dropLast()),
        good + Data([0]),
        body("[]"), body("{"), body(content(#""size":-1"#)), body(content(#""size":2"#), "x"),
        body(content(#""size":1"#)),
        body(content(#""size":0"#), "x"), body(content(#""size":9223372036854775807"#), "x"),
        body(content(#""size":"1""#), "x"),
        body(content(#""bytes":"eA==""#), "x"), body(content(#""size":1.5"#), "x"),
      ]
      for (index, bytes) in bad.enumerated() {
        let answer = try await client.call(
          "POST", "/v1/exchange", headers: ["Content-Type": type, "Accept": type], body: bytes)
        #expect(answer.status == 400 && answer.code == "bad_json", "\(index): \(answer.json)")
      }
      let later = body(#"{"protocolVersion":2,"cells":"of another kind"}"#)
      let answer = try await client.call("POST", "/v1/exchange", headers: ["Content-Type": type], body: later)
      #expect(answer.code == "unsupported_protocol")
      #expect(try await client.call("POST", "/v1/exchange", headers: ["Content-Type": type], body: good).status == 200)
    }
  }

  @Test("a device sends and receives small saves in binary, without a third more for base64")
  func onTheWire() async throws {
    try await LiveServer.with { server in
      let credentials = try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: "A")
      let (first, second) = (HTTPTransport(credentials), HTTPTransport(credentials))
      let request = request(1, 60_000)
      _ = try await first.exchange(request)
      #expect(first.traffic.bytesSent < 121_500)
      let isThere = try await second.exchange(ExchangeRequest(cursor: .start, limit: 10)).contents == request.contents
      #expect(isThere)
      #expect(second.traffic.bytesReceived < 121_500)
    }
  }
}
#endif
