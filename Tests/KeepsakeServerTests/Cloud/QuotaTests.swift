#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

@Suite("A quota per player, over real HTTP", .hangLimit)
struct QuotaTests {
  private func with(quota: Int64, _ body: (LiveServer, URL) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(
        data: folder.appendingPathComponent("server"), change: { $0.quota = quota })
      do {
        try await body(server, folder)
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
    }
  }

  /// Bytes without repetitions, so that they can't be compressed.
  private func bulk(_ count: Int, seed: UInt64) -> Data {
    frameBytes(1 << 20, seed: seed) + frameBytes(count - (1 << 20), seed: seed + 1)
  }

  private func contentFiles(_ folder: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("server/contents").path)
  }

  @Test("an upload beyond the quota, whole, in parts or queried, is refused with limit, usage and need, and not stored")
  func refusedBefore() async throws {
    try await with(quota: 3_000_000) { server, folder in
      let (client, _) = try await server.client.register()
      func numbers(_ answer: Client.Answer) -> [Int]? {
        guard answer.status == 413, answer.code == "quota", let error = answer.json["error"] as? [String: Any] else {
          return nil
        }
        return ["limit", "used", "needed"].compactMap { error[$0] as? Int }
      }
      let kept = PartedUpload(client, "kept", frameBytes(2_000_000, seed: 1))
      #expect(try await kept.sendRest()?.status == 201)
      let upload = PartedUpload(client, "too much", frameBytes(2_500_000, seed: 2))
      let asked = try await client.call(
        "GET", upload.path + "/upload", headers: upload.headers.merging(["Keepsake-Total": "2500000"]) { $1 })
      #expect(numbers(asked) == [3_000_000, 2_000_000, 2_500_000])
      #expect(numbers(try await upload.send(0..<1_000)) == [3_000_000, 2_000_000, 2_500_000])
      let whole = try await client.call(
        "PUT", upload.path, headers: ["Keepsake-Length": "5"], body: frameBytes(1_000_001, seed: 3))
      #expect(numbers(whole) == [3_000_000, 2_000_000, 1_000_001])
      let incoming = try FileManager.default.contentsOfDirectory(
        atPath: folder.appendingPathComponent("server/incoming").path)
      #expect(try incoming.isEmpty && contentFiles(folder).count == 1)
      for total in ["0", "-1", "many", "99999999999999999999"] {
        let answer = try await client.call(
          "GET", upload.path + "/upload", headers: upload.headers.merging(["Keepsake-Total": total]) { $1 })
        #expect(answer.status == 400, "\(total)")
      }
      // What exactly fills the quota is accepted, and another player has a quota of their own.
      let exact = try await client.call(
        "PUT", upload.path, headers: ["Keepsake-Length": "5"], body: frameBytes(1_000_000, seed: 3))
      #expect(exact.status == 201)
      let (other, _) = try await server.client.register("B")
      #expect(try await PartedUpload(other, "theirs", frameBytes(2_500_000, seed: 2)).sendRest()?.status == 201)
    }
  }

  @Test(
    "a save refused for lack of room syncs automatically after another save is deleted, on this or the other device",
    arguments: [true, false])
  func deleteMakesRoom(onThisDevice: Bool) async throws {
    try await with(quota: 2_500_000) { server, folder in
      let first = try await Device.register(with: server, in: folder)
      let second = try await first.pair(with: server, in: folder)
      try await first.sync.start()
      try await second.sync.start()
      // Hardly compressible, and large enough to be stored in a file of its own on the server.
      try first.save(bulk(1_900_000, seed: 1), to: "old")
      try await first.sync.sync()
      try await second.sync.sync()
      #expect(try contentFiles(folder).count == 1)
      let wanted = bulk(1_900_000, seed: 3)
      try first.save(wanted, to: "new")
      try first.raise("level", to: 4)
      try await first.until("the refusal") { !first.sync.status.refusals.isEmpty && first.sync.status.phase == .idle }
      let refused = try #require(first.sync.status.refusals.first)
      #expect(refused.slot == "new" && refused.refusal.reason == .quota)
      let quota = try #require(refused.refusal.quota)
      #expect(quota.limit == 2_500_000 && quota.used > 1_300_000 && quota.used + quota.needed > 2_500_000)
      try await second.until("the value") { try second.cell("level") == .max(.int(4)) }

      try (onThisDevice ? first : second).delete("old")
      try await second.until("the save") { try second.heads(of: "new") == [wanted] }
      try await first.until("the end") { first.sync.status.refusals.isEmpty && first.sync.status.waitingCommits == 0 }
      #expect(try contentFiles(folder).count == 1, "the file of the deleted save is still there")
      try await first.close()
      try await second.close()
    }
  }

  @Test(
    "a save damaged on the server, small or in a file of its own, is uploaded again and reaches a new device",
    arguments: [5_000, 1_800_000])
  func heals(count: Int) async throws {
    try await with(quota: 2_000_000) { server, folder in
      let first = try await Device.register(with: server, in: folder)
      try await first.sync.start()
      let bytes = frameBytes(count, seed: 5)
      try first.save(bytes, to: "main")
      try await first.sync.sync()
      try Self.damage(folder.appendingPathComponent("server"))
      let second = try await first.pair(with: server, in: folder)
      try await second.sync.start()
      // The first device gets no event about it: it learns of it with its poll each minute.
      try await second.until("finding out") {
        second.sync.status.phase == .idle && second.sync.status.lastFetchedMilliseconds != nil
      }
      try await until("the save; \(second.sync.status)") {
        try await first.sync.sync()
        return (try? second.heads(of: "main")) == [bytes]
      }
      try await first.close()
      try await second.close()
    }
  }

  /// Alters the middle byte of the only content.
  private static func damage(_ data: URL) throws {
    let contents = data.appendingPathComponent("contents")
    if let name = try FileManager.default.contentsOfDirectory(atPath: contents.path).first {
      let url = contents.appendingPathComponent(name)
      var bytes = try Data(contentsOf: url)
      bytes[bytes.count / 2] ^= 0xFF
      try bytes.write(to: url)
    } else {
      try RoomStorageTests.damage(data.appendingPathComponent("cloud.sqlite"))
    }
  }
}

extension Device {
  func delete(_ slot: String) throws {
    var random = SystemRandomNumberGenerator()
    let draft = SaveDraft(
      id: VersionID(using: &random), slot: slot, parents: .everyHead, contents: [], length: 0,
      savedAtMilliseconds: 1_000, tombstone: true)
    _ = try store.write { transaction in
      try DeviceCommit.apply(
        CommitDraft(saves: [draft]), now: 1_000, writer: store.writer, in: &transaction, using: &random)
    }
    sync.committed()
  }
}
#endif
