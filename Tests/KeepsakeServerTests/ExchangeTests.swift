#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

@Suite("Exchanges")
struct ExchangeTests {
  private func exchange(_ client: Client, _ request: ExchangeRequest) async throws -> (ExchangeResponse, bytes: Int) {
    let answer = try await client.call("POST", "/v1/exchange", body: JSONEncoder().encode(request))
    try #require(answer.status == 200, "\(answer.json)")
    return (try JSONDecoder().decode(ExchangeResponse.self, from: answer.body), answer.body.count)
  }

  private func cell(_ key: String, _ value: Scalar) -> CellUpdate {
    CellUpdate(key: CellKey(collection: "progress", key: key), state: CellState(value: .max(value)))
  }

  @Test("a player with much progress fetches all of it in several responses of bounded size")
  func pages() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let value = Scalar.string(String(repeating: "v", count: 250_000))
      var sent: Set<String> = []
      for batch in 0..<4 {
        let cells = (0..<10).map { cell("\(batch)-\($0)", value) }
        sent.formUnion(cells.map(\.key.key))
        let (response, _) = try await exchange(client, ExchangeRequest(cursor: .start, cells: cells, limit: 1))
        guard case .accepted = response.outcome else {
          Issue.record("\(String(describing: response.outcome))")
          return
        }
      }
      var cursor = Cursor.start
      var received: Set<String> = []
      var pages = 0
      while true {
        let (page, bytes) = try await exchange(client, ExchangeRequest(cursor: cursor, limit: 1000))
        #expect(bytes < CloudAcceptance.catchUpBytes + 400_000)
        for case .cell(let update) in page.changes.map(\.item) { received.insert(update.key.key) }
        cursor = page.cursor
        pages += 1
        try #require(pages < 10)
        if !page.more { break }
      }
      #expect(received == sent)
      #expect(pages > 1)
    }
  }

  @Test("concurrent exchanges are all accepted, and every change has a seq of its own")
  func concurrency() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let seqs = try await withThrowingTaskGroup(of: [UInt64].self) { group in
        for writer in 0..<8 {
          group.addTask {
            var seqs: [UInt64] = []
            for number in 0..<25 {
              let request = ExchangeRequest(
                cursor: .start,
                cells: [cell("\(writer)-\(number)", .int(1)), cell("shared", .int(Int64(writer * 25 + number)))],
                limit: 1)
              let (response, _) = try await exchange(client, request)
              guard case .accepted(let seq) = response.outcome else { continue }
              seqs.append(seq)
            }
            return seqs
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      #expect(seqs.count == 200)
      let (all, _) = try await exchange(client, ExchangeRequest(cursor: .start, limit: 1000))
      #expect(all.changes.count == 201)
      #expect(Set(all.changes.map(\.seq)).count == 201)
      #expect(all.changes.map(\.item).contains(.cell(cell("shared", .int(199)))))
      #expect(!all.more)
    }
  }

  @Test("a listening device gets an event for a change of its own player, and none for another player's", .hangLimit)
  func events() async throws {
    try await LiveServer.with { server in
      let account = HTTPAccount(url: server.url, appKey: server.appKey)
      let credentials = try await account.register(name: "Listener")
      let (stranger, _) = try await server.client.register()
      let client = Client(server: server, token: credentials.token)
      var seqs: [UInt64] = []
      for try await event in HTTPTransport(credentials).events() {
        seqs.append(event.seq)
        if event.seq == 1 { break }
        _ = try await exchange(
          stranger, ExchangeRequest(cursor: .start, cells: [cell("a", .int(1)), cell("b", .int(1))], limit: 1))
        _ = try await exchange(client, ExchangeRequest(cursor: .start, cells: [cell("a", .int(1))], limit: 1))
      }
      #expect(seqs == [0, 1])
    }
  }

  @Test(
    "a listener's unknown cursor is reported by the stream's first event and by a long poll; a malformed one is refused"
  )
  func unknownCursor() async throws {
    try await LiveServer.with { server in
      let account = HTTPAccount(url: server.url, appKey: server.appKey)
      let credentials = try await account.register(name: "Listener")
      let client = Client(server: server, token: credentials.token)
      let (answer, _) = try await exchange(
        client, ExchangeRequest(cursor: .start, cells: [cell("a", .int(1))], limit: 1))
      var strange = answer.cursor
      strange.mark ^= 1
      var firsts: [CloudEvent] = []
      for cursor in [answer.cursor, strange, .start] {
        for try await event in HTTPTransport(credentials).events(since: { cursor }) {
          firsts.append(event)
          break
        }
      }
      #expect(firsts == [CloudEvent(seq: 1), CloudEvent(seq: 1, unknown: strange), CloudEvent(seq: 1)])
      let query = "after=1&cursor=\(strange.epoch).\(strange.seq).\(strange.mark)"
      let asked = try await client.call("GET", "/v1/events/next?\(query)")
      #expect(try JSONDecoder().decode(CloudEvent.self, from: asked.body) == CloudEvent(seq: 1, unknown: strange))
      for text in ["1.2", "1.2.x", "-1.2.3", "\(UInt64.max).0.0"] {
        #expect(try await client.call("GET", "/v1/events?cursor=\(text)").status == 400, "\(text)")
      }
    }
  }

  @Test("a player never receives another player's changes, even with that player's cursor")
  func playersApart() async throws {
    try await LiveServer.with { server in
      let (first, _) = try await server.client.register()
      let (second, _) = try await server.client.register()
      let (mine, _) = try await exchange(
        first, ExchangeRequest(cursor: .start, cells: [cell("gold", .int(5))], limit: 10))
      let (theirs, _) = try await exchange(second, ExchangeRequest(cursor: .start, limit: 10))
      #expect(theirs.changes.isEmpty)
      #expect(theirs.cursor.seq == 0)
      let (foreign, _) = try await exchange(second, ExchangeRequest(cursor: mine.cursor, limit: 10))
      #expect(foreign.restart)
      #expect(foreign.changes.isEmpty)
    }
  }
}
#endif
