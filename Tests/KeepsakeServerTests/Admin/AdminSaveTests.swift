#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeServer

/// What the studio sees of saves, and how it restores one.
@Suite("Saves in the studio's hand", .hangLimit) struct AdminSaveTests {
  private static let slot = "main"

  private func restore(_ version: VersionID, of device: Device, _ client: Client) async throws -> Client.Answer {
    try await client.call(
      "POST", AdminStage.path(device, "/versions/\(version)/restore"), json: #"{"reason": "ticket 17"}"#)
  }

  /// Saves each text, and sends it.
  private func play(_ texts: [String], on device: Device) async throws -> [VersionID] {
    var ids: [VersionID] = []
    for text in texts {
      ids.append(try device.save(Data(text.utf8), to: Self.slot))
      try await device.sync.sync()
    }
    return ids
  }

  @Test("slots, history, bytes, contents and differences are shown")
  func looking() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      let client = try stage.client([.read])
      let large = saveBytes(40_000, seed: 1)
      let changed = large.dropLast(5) + Data("end".utf8)
      let ids = try await play(["level 6"], on: device)
      _ = try device.save(large, to: "other slot")
      let delta = try device.save(Data(changed), to: "other slot")
      try await device.sync.sync()

      let slots = try await client.call("GET", AdminStage.path(device, "/slots"))
      let list = try #require(slots.json["slots"] as? [[String: Any]])
      #expect(list.compactMap { $0["slot"] as? String } == ["main", "other slot"])
      #expect(list.allSatisfy { $0["heads"] as? Int == 1 })
      let history = try await stage.versions(of: device, client)
      #expect(history.map(\.version) == ids && history[0].head && history[0].available && history[0].bytes == 7)

      let shown = try await client.call("GET", AdminStage.path(device, "/versions/\(ids[0])"))
      #expect((shown.json["content"] as? [String: String]) == ["text": "level 6"])
      #expect((shown.json["version"] as? [String: Any])?["slot"] as? String == Self.slot)
      let bytes = try await client.call("GET", AdminStage.path(device, "/versions/\(delta)/bytes"))
      #expect(bytes.status == 200 && bytes.body == Data(changed))
      let diff = try await client.call("GET", AdminStage.path(device, "/diff?from=\(ids[0])&to=\(delta)"))
      #expect((diff.json["old"] as? [String: String]) == ["text": "level 6"])

      let other = try await stage.device()
      let foreign = try await client.call("GET", AdminStage.path(other, "/versions/\(ids[0])/bytes"))
      #expect(foreign.status == 404 && foreign.code == "version_unknown", "of another player")
      let binary = try device.save(Data([0xFF, 0xFE, 0x00]), to: Self.slot)
      try await device.sync.sync()
      let unreadable = try await client.call("GET", AdminStage.path(device, "/versions/\(binary)"))
      #expect(unreadable.status == 422 && unreadable.code == "not_readable")
      for device in [device, other] { try await device.close() }
    }
  }

  @Test("an earlier version is restored as a new one that replaces the current, and a device gets it")
  func restoring() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      let second = try await stage.device(with: device)
      let client = try stage.client([.read, .saves])
      let ids = try await play(["level 6", "level 2"], on: device)
      try await second.sync.sync()

      let answer = try await restore(ids[0], of: device, client)
      #expect(answer.status == 200 && answer.json["changed"] as? Bool == true)
      let new = try #require(VersionID(answer.json["version"] as? String ?? ""))
      for device in [device, second] {
        try await device.sync.sync()
        #expect(try device.heads(of: Self.slot) == [Data("level 6".utf8)])
        #expect(try device.headIDs(of: Self.slot) == [new])
      }
      let history = try await stage.versions(of: device, client)
      #expect(history.map(\.version) == [new, ids[1], ids[0]])
      #expect(history[0].covers == [ids[1]] && history[0].deviceName == "studio" && history[0].head)

      // As when the response was lost.
      let again = try await restore(ids[0], of: device, client)
      #expect(again.json["version"] as? String == "\(new)" && again.json["changed"] as? Bool == false)
      // It is a version like any other: the player goes on from it, and it can be undone.
      try device.save(Data("level 7".utf8), to: Self.slot)
      try await device.sync.sync()
      #expect(try await restore(ids[1], of: device, client).status == 200)
      for device in [device, second] {
        try await device.sync.sync()
        #expect(try device.heads(of: Self.slot) == [Data("level 2".utf8)])
        try await device.close()
      }
      let rows = try stage.audit().filter { $0.act == "save.restore" }
      #expect(rows.count == 3 && rows.allSatisfy { $0.result == "done" && $0.details == ["reason": "ticket 17"] })
      #expect(rows[0].subject == AuditEntry.hash(ids[0]))
    }
  }

  @Test(
    "what a device saved meanwhile isn't lost: both are current, as after any two saves that didn't know each other")
  func meanwhile() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      let client = try stage.client([.read, .saves])
      let ids = try await play(["level 6", "level 2"], on: device)
      try await device.close()
      // It isn't started yet: offline.
      let again = try Device(device.credentials, in: stage.folder)
      try again.save(Data("level 3".utf8), to: Self.slot)
      #expect(try await restore(ids[0], of: device, client).status == 200)
      try await again.sync.start()
      try await again.sync.sync()
      #expect(try Set(again.heads(of: Self.slot)) == [Data("level 6".utf8), Data("level 3".utf8)])
      // Restoring ends a conflict, too: the new version replaces both.
      #expect(try await restore(ids[1], of: device, client).status == 200)
      try await again.sync.sync()
      #expect(try again.heads(of: Self.slot) == [Data("level 2".utf8)])
      try await again.close()
    }
  }

  @Test("a restore that is repeated with the id of its version replaces nothing that a device has saved since")
  func repeating() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      let client = try stage.client([.read, .saves])
      let ids = try await play(["level 6", "level 2"], on: device)
      let new = VersionID(high: 5, low: 5)
      func restore(_ version: VersionID, as id: VersionID = new) async throws -> Client.Answer {
        try await client.call(
          "POST", AdminStage.path(device, "/versions/\(version)/restore"), json: #"{"reason": "x", "id": "\#(id)"}"#)
      }
      let first = try await restore(ids[0])
      #expect(first.json["version"] as? String == "\(new)" && first.json["changed"] as? Bool == true)
      try await device.sync.sync()
      let later = try device.save(Data("level 7".utf8), to: Self.slot)
      try await device.sync.sync()
      let again = try await restore(ids[0])
      #expect(again.json["version"] as? String == "\(new)" && again.json["changed"] as? Bool == false)
      try await device.sync.sync()
      #expect(try device.headIDs(of: Self.slot) == [later])
      // The id isn't for something else.
      for (version, id) in [(ids[1], new), (ids[0], ids[0]), (ids[0], ids[1])] {
        #expect(try await restore(version, as: id).status == 409)
      }
      #expect(try await stage.versions(of: device, client).map(\.version) == [later, new, ids[1], ids[0]])
      try await device.close()
    }
  }

  @Test("frames that a device has made up are no failure of the server")
  func forged() async throws {
    try await AdminStage.with { stage in
      let (device, account) = try await stage.server.client.register()
      let client = try stage.client([.read, .export])
      let player = "/admin/v1/players/\(account.player)"
      // Not a frame; and a frame of other bytes than its name says.
      let other = try Zstd.compress(Data("other".utf8))
      for (number, frame) in [Data("no frame".utf8), other].enumerated() {
        let hash = ContentHash(of: Data("forged \(number)".utf8))
        let put = try await device.call(
          "PUT", "/v1/contents/\(hash)", headers: ["Keepsake-Length": number == 0 ? "8" : "5"], body: frame)
        #expect(put.status == 201)
        let id = VersionID(high: 3, low: UInt64(number))
        let sent = try await device.call(
          "POST", "/v1/exchange",
          json: """
            {"protocolVersion": 1, "cursor": {"epoch": 0, "seq": 0, "mark": 0}, "limit": 100, "versions": [{
            "id": "\(id)", "slot": "slot \(number)", "contents": ["\(hash)"], "length": 8,
            "savedAtMilliseconds": 1, "writer": "0000000000000001"}]}
            """)
        #expect(sent.status == 200)
        for path in ["/versions/\(id)", "/versions/\(id)/bytes", "/diff?from=\(id)&to=\(id)"] {
          let answer = try await client.call("GET", player + path)
          #expect(answer.status == 409 && answer.code == "content_missing", "\(path)")
        }
      }
      let export = try await client.call("GET", "\(player)/export")
      #expect(export.status == 200 && export.body.range(of: Data(#""unreadable":[""#.utf8)) != nil)
    }
  }

  @Test("a version whose bytes are gone can't be restored, nor one that isn't the player's; nothing changes then")
  func refused() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      let client = try stage.client([.read, .saves])
      let ids = try await play(["level 6", "level 2"], on: device)
      let other = try await stage.device()
      #expect(try await restore(ids[0], of: other, client).code == "version_unknown")
      let absent = try await restore(VersionID(high: 1, low: 2), of: device, client)
      #expect(absent.status == 404 && absent.code == "version_unknown")
      try await AdminDatabase.removeContent(ContentHash(of: Data("level 6".utf8)), of: stage.data)
      let gone = try await restore(ids[0], of: device, client)
      #expect(gone.status == 409 && gone.code == "content_missing")
      let bytes = try await client.call("GET", AdminStage.path(device, "/versions/\(ids[0])/bytes"))
      #expect(bytes.status == 409 && bytes.code == "content_missing")
      #expect(try await stage.versions(of: device, client).map(\.version) == ids.reversed())
      #expect(try stage.audit().filter { $0.act == "save.restore" }.map(\.result).last == "content_missing")
      for device in [device, other] { try await device.close() }
    }
  }
}
#endif
