#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

/// A client in another language that was written from docs/PROTOCOL.md loses nothing and duplicates nothing.
@Suite(
  "A client in another language beside Keepsake's own",
  .enabled(if: PythonDevice.obstacle == nil, PythonDevice.obstacle),
  .hangLimit)
struct ForeignClientTests {
  /// Runs `body` with a server, one of Keepsake's own devices, and the client in the other language, both of one
  /// player.
  private func with(
    quota: Int64? = nil,
    _ body: (_ server: LiveServer, _ device: Device, _ python: PythonDevice, _ folder: URL) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(
        data: folder.appendingPathComponent("server"), change: { $0.quota = quota })
      let device = try await Device.register(with: server, in: folder)
      do {
        try await device.sync.start()
        let python = try await PythonDevice.joining(device, of: server, in: folder)
        try await body(server, device, python, folder)
      } catch {
        try await device.close()
        try await server.stop()
        throw error
      }
      try await device.close()
      try await server.stop()
    }
  }

  private func hashes(_ device: Device, of slot: String) throws -> Set<ContentHash> {
    Set(try device.heads(of: slot).map { ContentHash(of: $0) })
  }

  @Test("saves of either client reach the other byte for byte: small, large, in segments, as deltas, and empty")
  func saves() async throws {
    try await with { server, device, python, folder in
      var saves = [
        "small": saveBytes(100, seed: 1), "middle": saveBytes(200_000, seed: 1), "large": saveBytes(6_000_000, seed: 1),
      ]
      for (slot, bytes) in saves { try device.save(bytes, to: slot) }
      try await device.sync.sync()
      let first = try await python.sync()
      #expect(first.slots.keys.sorted() == ["large", "middle", "small"])
      for (slot, bytes) in saves {
        #expect(try await python.load(slot) == [ContentHash(of: bytes)], "\(slot)")
      }
      let pieces = try device.store.read { try $0.version(try $0.heads(of: "large")[0])?.record.contents.count }
      #expect(pieces ?? 0 > 1)

      // A small change is sent as a delta, to a client that has its base and to one that hasn't.
      for slot in saves.keys {
        let head = try device.headIDs(of: slot)
        saves[slot, default: Data()].insert(contentsOf: Data("a new room\n".utf8), at: 50)
        try device.save(saves[slot] ?? Data(), to: slot, parents: .versions(head))
      }
      try await device.sync.sync()
      let content = ContentHash(of: saves["middle"] ?? Data())
      let client = Client(server: server, token: device.credentials.token)
      #expect(try await client.call("GET", "/v1/contents/\(content)").headers["keepsake-base"]?.count == 64)
      let fresh = try await PythonDevice.joining(device, of: server, in: folder, name: "fresh")
      for other in [python, fresh] {
        try await other.sync()
        for (slot, bytes) in saves { #expect(try await other.load(slot) == [ContentHash(of: bytes)], "\(slot)") }
      }

      // And in the other direction: replacing what was loaded, and in a new slot.
      saves = ["small": saveBytes(70, seed: 2), "large": saveBytes(2_500_000, seed: 2), "empty": Data()]
      // Two saves of a slot in one commit: the first is never sent, and the second still replaces what was loaded.
      try await python.together([
        ["save", "small", try python.file(saveBytes(60, seed: 3)).path], ["max", "rooms", "1"],
      ])
      for (slot, bytes) in saves {
        let (draft, save) = (try python.file(bytes + Data("draft".utf8)).path, try python.file(bytes).path)
        try await python.together([["save", slot, draft], ["save", slot, save, "Cave"]])
      }
      let told = try await python.sync()
      #expect(told.waiting == 0 && told.refused.isEmpty)
      try await device.sync.sync()
      for (slot, bytes) in saves { #expect(try hashes(device, of: slot) == [ContentHash(of: bytes)], "\(slot)") }
      let title = try device.store.read { try $0.version(try $0.heads(of: "small")[0])?.record.metadata.title }
      #expect(title == "Cave")
      // A delete by one applies to both; no older version becomes a head again.
      try await python.run("delete", "small")
      try await python.sync()
      try await device.sync.sync()
      let isDeleted = try device.store.read { store in
        try store.heads(of: "small").allSatisfy { try store.version($0)?.record.tombstone == true }
      }
      #expect(isDeleted)
      #expect(try await python.shown().slots["small"] == nil)
    }
  }

  @Test(
    "concurrent saves are kept by both clients, and resolving the conflict in either one applies to both",
    arguments: [true, false])
  func conflict(choosesHere: Bool) async throws {
    try await with { _, device, python, _ in
      try device.save(Data("common".utf8), to: "quest")
      try await device.sync.sync()
      try await python.sync()
      _ = try await python.load("quest")
      let parents = SaveParents.versions(try device.headIDs(of: "quest"))
      await device.sync.pause()
      try device.save(Data("mine".utf8), to: "quest", parents: parents)
      // Two saves one after the other, the first of them never sent: one version, which replaces what was loaded.
      try await python.save(Data("not sent".utf8), to: "quest")
      try await python.save(Data("yours".utf8), to: "quest")
      try await python.sync()
      try await device.sync.start()
      try await device.sync.sync()
      let both = Set(["mine", "yours"].map { ContentHash(of: Data($0.utf8)) })
      #expect(try await python.sync().hashes(of: "quest") == both)
      #expect(try hashes(device, of: "quest") == both)

      if choosesHere {
        try device.save(Data("chosen".utf8), to: "quest", parents: .versions(try device.headIDs(of: "quest")))
        try await device.sync.sync()
      } else {
        #expect(try await python.load("quest") == both)
        try await python.save(Data("chosen".utf8), to: "quest")
      }
      let chosen: Set = [ContentHash(of: Data("chosen".utf8))]
      #expect(try await python.sync().hashes(of: "quest") == chosen)
      try await device.sync.sync()
      #expect(try hashes(device, of: "quest") == chosen)
    }
  }

  @Test("values of every rule that both clients change concurrently end equal in both, and no change is lost")
  func values() async throws {
    try await with { server, device, python, _ in
      try device.change([
        "level": .max(.int(3)), "fastest": .min(.int(50)), "coins": .add(plus: 5, minus: 0),
        "name": .set(.string("Ada")),
        "seen": .insert([.string("a"), .string("b")]), "bag": .insertElements([.string("rose"), .string("tulip")]),
        "rooms": .entries([.string("cave"): .max(.int(1))]), "pet": .optional(.max(.int(2))),
        "lives": .add(plus: 9, minus: 0),
      ])
      try await device.sync.sync()
      try await python.sync()
      await device.sync.pause()
      try await python.together([
        ["max", "level", "7"], ["min", "fastest", "40"], ["counter", "coins", "-5"], ["counter", "coins", "1"],
        ["counter", "coins", "2"],
        ["latest", "name", "Grace"], ["union", "seen", "c"],
        ["set", "bag", "take", "rose"], ["set", "bag", "put", "lily"], ["dictionary", "rooms", "hill", "max", "9"],
        ["dictionary", "rooms", "cave", "max", "4"], ["optional", "pet", "max", "5"],
        ["reset", "lives", "counter", "3"],
      ])
      try await python.sync()
      try device.change([
        "level": .max(.int(5)), "coins": .add(plus: 10, minus: 1), "seen": .insert([.string("d")]),
        "bag": .insertElements([.string("violet")]),
        "rooms": .entries([.string("cave"): .max(.int(3)), .string("sea"): .max(.int(8))]),
        "lives": .add(plus: 1, minus: 0),
      ])
      try device.change(["bag": .removeElements([.string("tulip")])])
      try await device.sync.start()
      try await device.sync.sync()
      try await python.sync()

      #expect(try python.cells() == device.cells())
      #expect(try device.cell("level") == .max(.int(7)))
      #expect(try device.cell("fastest") == .min(.int(40)))
      guard case .counter(let coins)? = try device.cell("coins"), case .counter(let lives)? = try device.cell("lives"),
        case .set(let bag)? = try device.cell("bag"), case .latest(_, let name)? = try device.cell("name")
      else {
        Issue.record("a rule has changed")
        return
      }
      #expect(CellValue.total(of: coins) == 12)
      #expect(CellValue.total(of: lives) == 3)
      #expect(bag.elements == [.string("lily"), .string("violet")])
      #expect(name == .string("Grace"))
      #expect(try device.cell("seen") == .union(Set(["a", "b", "c", "d"].map { Scalar.string($0) })))
      let rooms = ["cave": 4, "hill": 9, "sea": 8].map { (Scalar.string($0), CellValue.max(.int($1))) }
      #expect(try device.cell("rooms") == .dictionary(Dictionary(uniqueKeysWithValues: rooms)))
      #expect(try device.cell("pet") == .optional(.max(.int(5))))

      // What neither client writes: values of a later rule, and a best with withdrawn scores.
      let client = Client(server: server, token: device.credentials.token)
      let (one, two, three) = (
        String(repeating: "1", count: 32), String(repeating: "2", count: 32), String(repeating: "3", count: 32)
      )
      let cells = [
        #"""
        {"collection": "progress", "key": "vote", "value": {"later": [{"id": "\#(one)", "rule": "quorum", "content": \#
        "AQI="}]}}
        """#,
        #"""
        {"collection": "progress", "key": "vote", "value": {"later": [{"id": "\#(two)", "rule": "quorum", "content": \#
        "Aw=="}]}}
        """#,
        #"""
        {"collection": "progress", "key": "vote", "value": {"later": [{"id": "\#(three)", "rule": "quorum", \#
        "content": "", "over": ["\#(one)"]}]}}
        """#,
        #"""
        {"collection": "scores", "key": "1/a/b", "generation": 1, "value": {"best": {"order": "descending",
         "cleared": true, "entry": {"score": {"int": 3}, "dateMilliseconds": 5, "payload": "AQI="},
         "withdrawn": [{"generation": 0, "id": "\#(one)"}]}}}
        """#,
      ]
      for cell in cells {
        let request =
          #"{"protocolVersion": 1, "cursor": {"epoch": 0, "seq": 0, "mark": 0}, "limit": 1, "cells": [\#(cell)]}"#
        #expect(try await client.call("POST", "/v1/exchange", json: request).status == 200)
        try await python.sync()
      }
      try await device.sync.sync()
      #expect(try python.cells() == device.cells())
      guard case .later(let vote)? = try device.cell("vote") else {
        Issue.record("the value of the later rule is gone")
        return
      }
      #expect(vote.entries.count == 2)
      for rule in ["max", "reset"] {
        await #expect(throws: PythonDevice.Failed.self) {
          try await python.run(rule, "vote", rule == "max" ? "3" : "max", "3")
        }
      }
      #expect(try await python.sync().waiting == 0)
    }
  }

  @Test("a thousand changes are fetched in pages, and a thousand are sent in one exchange")
  func pages() async throws {
    try await with { _, device, python, _ in
      for hundred in 0..<10 {
        try device.change(
          Dictionary(
            uniqueKeysWithValues: (0..<100).map {
              ("flower \(hundred * 100 + $0)", CellDraft.Change.max(.int(Int64($0))))
            }))
      }
      try await device.sync.sync()
      let shown = try await python.sync(limit: 60)
      #expect(shown.exchanges == 17)
      #expect(try python.cells().count == 1_000)
      #expect(try python.cells() == device.cells())
      try await python.together((0..<1_000).map { ["counter", "tree \($0)", "\($0 + 1)"] })
      #expect(try await python.sync(limit: 60).exchanges == 1)
      try await device.sync.sync()
      #expect(try device.count("tree 999") == 1_000)
      #expect(try python.cells() == device.cells())
    }
  }

  @Test(
    "a device's changes reach a listening client automatically, by event stream and by long poll",
    arguments: ["stream", "poll"])
  func listening(kind: String) async throws {
    try await with { _, device, python, _ in
      try device.raise("level", to: 1)
      try await device.sync.sync()
      try await python.sync()
      let listener = try python.start(["listen", kind, "1000"])
      if kind == "stream" {
        // The first event contains the container's position, which is this client's too: from here on it gets every
        // event.
        #expect(try await listener.lines(1)[0].contains(#""enough": true"#))
      }
      try device.raise("level", to: 2)
      try await device.sync.sync()
      let lines = try await listener.lines(kind == "stream" ? 2 : 1)
      if kind == "stream" {
        // The event contained the value itself: no request was sent.
        #expect(lines[1].contains(#""enough": true"#), "\(lines)")
      }
      try device.save(saveBytes(200_000, seed: 3), to: "main")
      try await device.sync.sync()
      try await python.until(shows: ContentHash(of: saveBytes(200_000, seed: 3)))
      await listener.kill()
      #expect(try await python.load("main") == [ContentHash(of: saveBytes(200_000, seed: 3))])
      #expect(try python.cells() == device.cells())
    }
  }

  @Test(
    "a save refused for its quota stays queued with reason and numbers until there is room, and everything else syncs")
  func refusals() async throws {
    try await with(quota: 2_500_000) { _, device, python, _ in
      let (old, new) = (frameBytes(1_000_000, seed: 1), frameBytes(1_000_000, seed: 3) + frameBytes(900_000, seed: 4))
      try device.save(old, to: "old")
      try await device.sync.sync()
      try await python.sync()
      try await python.together([["save", "new", try python.file(new).path], ["max", "level", "4"]])
      let full = try await python.sync()
      #expect(full.refused.map(\.reason) == [.quota])
      #expect(
        full.refused.first?.quota.map { $0.limit == 2_500_000 && $0.used > 900_000 && $0.needed > 1_800_000 } == true)
      try await device.sync.sync()
      #expect(try device.cell("level") == .max(.int(4)))
      #expect(try device.heads(of: "new").isEmpty)
      try await python.run("delete", "old")
      try await python.sync()
      let after = try await python.sync()
      #expect(after.refused.isEmpty && after.waiting == 0)
      try await device.sync.sync()
      #expect(try hashes(device, of: "new") == [ContentHash(of: new)])
    }
  }
}
#endif
