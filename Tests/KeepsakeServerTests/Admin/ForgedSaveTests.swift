#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeServer

/// What a player's device makes up, so that looking at it harms the studio or the server.
@Suite("Saves made to harm whoever looks", .hangLimit) struct ForgedSaveTests {
  @Test("a save is shown up to a limit of decoded bytes, whatever length its device says")
  func decodedBytes() async throws {
    try await AdminStage.with { stage in
      let forger = try await Forger(stage)
      let client = try stage.client([.read])
      // Each takes a few hundred bytes as a frame.
      let large = Data(repeating: UInt8(ascii: "0"), count: AdminRoutes.shownBytes + 1)
      let half = Data(repeating: UInt8(ascii: "1"), count: AdminRoutes.shownBytes / 2 + 1)
      let (whole, part) = (try await forger.put(large), try await forger.put(half))
      let delta = try await forger.put(Data("x".utf8), base: large)
      for (number, contents) in [[whole], [part, part], [delta]].enumerated() {
        let id = try await forger.send(UInt64(number), contents, length: 1, slot: "slot \(number)")
        for path in ["/versions/\(id)", "/diff?from=\(id)&to=\(id)"] {
          let answer = try await client.call("GET", forger.path + path)
          #expect(answer.status == 422 && answer.code == "not_readable", "\(number) \(path)")
        }
      }
      // The other way round, what is small is shown.
      let small = try await forger.send(9, [part], length: 1 << 40, slot: "slot 9")
      #expect(try await client.call("GET", "\(forger.path)/versions/\(small)").status == 200)
    }
  }

  @Test("a page of the history ends after a number of bytes, and the next one goes on from there")
  func history() async throws {
    let clock = IdentityClock()
    try await AdminStage.with(clock: clock.read) { stage in
      let forger = try await Forger(stage)
      let client = try stage.client([.read])
      let covered = (0..<UInt64(AdminRoutes.pageBytes / 36)).map { VersionID(high: 7, low: $0) }
      var ids: [VersionID] = []
      for number in 0..<2 {
        ids.insert(try await forger.send(UInt64(number), [], length: 0, covers: covered), at: 0)
        // So much work has to wait for its turn.
        clock.pass(seconds: 60)
      }
      var (found, next): ([VersionID], Int?) = ([], nil)
      for _ in ids {
        let answer = try await client.call(
          "GET", "\(forger.path)/versions?slot=main" + (next.map { "&before=\($0)" } ?? ""))
        try #require(answer.status == 200)
        let page = try JSONDecoder().decode(AdminStage.Versions.self, from: answer.body).versions
        #expect(page.count == 1)
        found += page.map(\.version)
        next = answer.json["next"] as? Int
      }
      #expect(found == ids && next == nil)
    }
  }

  @Test("the bytes of a save are all sent, and nothing else, whatever length its device says")
  func sentBytes() async throws {
    try await AdminStage.with { stage in
      let forger = try await Forger(stage)
      let client = try stage.client([.read])
      // What would be the next response on the connection, if this one had the length that the device says.
      let bytes = Data("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".utf8)
      let hash = try await forger.put(bytes)
      for (number, length) in [0, 1, 1_000_000].enumerated() {
        let id = try await forger.send(UInt64(number), [hash, hash], length: length, slot: "slot \(number)")
        let answer = try await client.call("GET", "\(forger.path)/versions/\(id)/bytes")
        #expect(answer.status == 200 && answer.body == bytes + bytes, "\(length)")
      }
    }
  }
}
#endif
