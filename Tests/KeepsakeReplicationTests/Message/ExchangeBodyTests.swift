import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite("Binary bodies of exchanges")
struct ExchangeBodyTests {
  private static let request: ExchangeRequest = {
    let contents = [3, 0, 500].map { count in
      EncodedContent(
        hash: ContentHash(of: Data("\(count)".utf8)), length: count,
        base: count == 3 ? nil : ContentHash(of: Data("b".utf8)),
        bytes: Data((0..<count).map { UInt8($0 % 251) }))
    }
    let cell = CellUpdate(key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.int(6))))
    return ExchangeRequest(cursor: Cursor(epoch: 1, seq: 2, mark: 3), cells: [cell], contents: contents, limit: 10)
  }()

  @Test("A binary message is decoded as it was encoded")
  func roundTrip() throws {
    let body = try ExchangeBody.encode(Self.request)
    #expect(try ExchangeBody.decode(ExchangeRequest.self, from: body) == Self.request)
    // Also from a slice whose indices don't begin at 0.
    let slice = (Data("before".utf8) + body).dropFirst(6)
    #expect(try ExchangeBody.decode(ExchangeRequest.self, from: slice) == Self.request)
    let length = body.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    let json = try #require(try JSONSerialization.jsonObject(with: body.dropFirst(4).prefix(length)) as? [String: Any])
    let contents = try #require(json["contents"] as? [[String: Any]])
    #expect(contents.map { $0["size"] as? Int } == [3, 0, 500] && contents.allSatisfy { $0["bytes"] == nil })
    #expect(body.count == 4 + length + 503)
    let response = ExchangeResponse(
      outcome: .accepted(seq: 4), changes: [], contents: Self.request.contents, wallet: nil, cursor: .start,
      more: false,
      serverTimeMilliseconds: 5)
    #expect(try ExchangeBody.decode(ExchangeResponse.self, from: ExchangeBody.encode(response)) == response)
  }

  @Test("A truncated message is a decoding error; an altered one is a decoding error or another message")
  func damage() throws {
    let body = try ExchangeBody.encode(Self.request)
    for count in 0..<body.count {
      #expect(throws: DecodingError.self, "\(count) bytes") {
        try ExchangeBody.decode(ExchangeRequest.self, from: body.prefix(count))
      }
    }
    var random = SeededGenerator(seed: 7)
    for round in 0..<2_000 {
      var altered = body
      for _ in 0...(round % 4) {
        altered[Int(random.next() % UInt64(body.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      // Either is fine: messages have no checksum, and contents are verified by their hash.
      do { _ = try ExchangeBody.decode(ExchangeRequest.self, from: altered) } catch is DecodingError {}
    }
  }

  @Test("A save that the cloud has no room for is uploaded once and reported as refused, and everything else is sent")
  func quota() throws {
    var options = DeviceEngine.Options()
    options.inlineBytes = 0
    var lab = try Lab(options: options)
    try lab.settle(0)
    let first = try lab.save(0, String(repeating: "a", count: 3_000), over: .everyHead)
    try lab.settle(0)
    #expect(lab.cloud.heads(of: "main") == [first.id])
    // Sent as a delta of what the cloud has: after a refusal for lack of room it isn't sent again in full.
    let second = try lab.save(0, String(repeating: "a", count: 3_000) + "b", over: .everyHead)
    try lab.commit(0, Lab.level(3))
    let quota = QuotaShortage(limit: 100, used: 90, needed: 11)
    var uploads = 0
    try lab.step(0, .committed)
    for _ in 0..<20 {
      guard let effect = lab.takeRequest(0) else { break }
      if case .upload(let number, _) = effect {
        uploads += 1
        try lab.step(0, .failed(request: number, TransportFailure(.rejected, "No room.", quota: quota)))
      } else if let event = try lab.answer(to: effect, cloud: &lab.cloud, using: &lab.random) {
        try lab.step(0, event)
      }
    }
    #expect(uploads == 1)
    var refusals: [Refusal] = []
    for case .refused(let some) in lab.devices[0].notifications { refusals += some }
    #expect(refusals.map(\.reason) == [.quota] && refusals.first?.message == "No room.")
    #expect(refusals.first?.item == "version \(second.id)")
    // Nothing else is held up by it.
    #expect(lab.cloud.cell(CellKey(collection: "progress", key: "level"))?.update.state.value == .max(.int(3)))
  }
}
