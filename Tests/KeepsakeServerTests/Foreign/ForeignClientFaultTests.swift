#if Cloud && os(Linux)
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

/// What a client in another language has to get right from the document alone: being killed at any point, being copied,
/// and a server that is restored from a backup.
@Suite(
  "A client in another language, when things go wrong",
  .enabled(if: PythonDevice.obstacle == nil, PythonDevice.obstacle),
  .hangLimit)
struct ForeignClientFaultTests {
  private static let points: [(String, WatchingProxy.Point)] = [
    ("POST /v1/exchange", .insideRequest), ("POST /v1/exchange", .beforeAnswer),
    ("POST /v1/exchange", .insideAnswer(after: 20)),
    ("PUT /v1/contents", .insideRequest), ("PUT /v1/contents", .beforeAnswer),
  ]

  @Test(
    "a client that is killed in the middle of a request or response and restarted counts once and saves once",
    arguments: points.indices)
  func killed(at index: Int) async throws {
    let (request, point) = Self.points[index]
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let device = try await Device.register(with: server, in: folder)
      let proxy = try WatchingProxy(to: server.running.port)
      let python = try await PythonDevice.joining(device, of: server, in: folder, via: proxy.url)
      try await device.sync.start()
      try device.change(["coins": .add(plus: 1, minus: 0), "bag": .insertElements([.string("rose")])])
      try device.save(saveBytes(300_000, seed: 1), to: "main")
      try await device.sync.sync()
      try await python.sync()
      _ = try await python.load("main")

      let bytes = frameBytes(900_000, seed: 2)
      let save = try python.file(bytes)
      try await python.together([
        ["counter", "coins", "5"], ["set", "bag", "put", "lily"], ["set", "bag", "take", "rose"],
        ["save", "main", save.path],
      ])
      // Meanwhile the other device continues, so that there are changes to fetch, too.
      try device.change(["coins": .add(plus: 10, minus: 0), "level": .max(.int(3))])
      try await device.sync.sync()
      let trap = proxy.hold(request, at: point)
      let syncing = try python.start(["sync"])
      _ = try await trap.reached()
      await syncing.kill()
      trap.decide(.cut)

      let shown = try await python.sync()
      #expect(shown.waiting == 0 && shown.restarts == 0)
      try await device.sync.sync()
      #expect(try device.count("coins") == 16)
      #expect(try device.heads(of: "main").map { ContentHash(of: $0) } == [ContentHash(of: bytes)])
      #expect(shown.hashes(of: "main") == [ContentHash(of: bytes)])
      guard case .set(let bag)? = try device.cell("bag") else {
        Issue.record("the set is gone")
        return
      }
      #expect(bag.elements == [.string("lily")])
      #expect(try python.cells() == device.cells())
      proxy.stop()
      try await device.close()
      try await server.stop()
    }
  }

  @Test(
    "changes received in pages are shown only when all have arrived, also if the client is killed between two pages")
  func staged() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let device = try await Device.register(with: server, in: folder)
      let proxy = try WatchingProxy(to: server.running.port)
      let python = try await PythonDevice.joining(device, of: server, in: folder, via: proxy.url)
      try await device.sync.start()
      try device.change(["coins": .add(plus: 1, minus: 0), "level": .max(.int(1)), "name": .set(.string("Ada"))])
      try device.save(saveBytes(300_000, seed: 1), to: "main")
      try await device.sync.sync()
      let trap = proxy.hold("POST /v1/exchange", at: .insideRequest, skipping: 2)
      let syncing = try python.start(["sync", "--limit", "1"])
      _ = try await trap.reached()
      #expect(try python.cells().isEmpty)
      await syncing.kill()
      trap.decide(.cut)
      let halves = try await python.shown()
      #expect(halves.slots.isEmpty && halves.cursor.seq == 2)
      // Two more exchanges, and not all of them from the beginning.
      #expect(try await python.sync(limit: 1).exchanges == 2)
      #expect(try python.cells() == device.cells())
      #expect(try await python.load("main") == [ContentHash(of: saveBytes(300_000, seed: 1))])
      proxy.stop()
      try await device.close()
      try await server.stop()
    }
  }

  @Test("a copied client counts and inserts beside the original, and neither loses anything of the other")
  func copied() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let device = try await Device.register(with: server, in: folder)
      let python = try await PythonDevice.joining(device, of: server, in: folder)
      try await python.together([["counter", "coins", "1"], ["set", "bag", "put", "rose"]])
      try await python.sync()
      let copy = PythonDevice(at: folder.appendingPathComponent("copy"))
      try FileManager.default.copyItem(at: python.home, to: copy.home)
      for (one, flower) in [(python, "lily"), (copy, "tulip")] {
        try await one.together([
          ["counter", "coins", "10"], ["set", "bag", "put", flower], ["set", "bag", "take", "rose"],
        ])
      }
      for one in [python, copy, python] { try await one.sync() }
      try await device.sync.start()
      try await device.sync.sync()
      #expect(try device.count("coins") == 21)
      guard case .set(let bag)? = try device.cell("bag") else {
        Issue.record("the set is gone")
        return
      }
      #expect(bag.elements == [.string("lily"), .string("tulip")])
      for one in [python, copy] { #expect(try one.cells() == device.cells()) }
      try await device.close()
      try await server.stop()
    }
  }

  @Test(
    "after the server is restored from yesterday's backup, a client offers everything in parts, and nothing is lost")
  func restored() async throws {
    try await TemporaryFolder.with { folder in
      let (data, backup) = (folder.appendingPathComponent("server"), folder.appendingPathComponent("backup"))
      var server = try await LiveServer.start(data: data)
      let (port, keys) = (server.running.port, server.running.appKeys)
      let device = try await Device.register(with: server, in: folder)
      let python = try await PythonDevice.joining(device, of: server, in: folder)
      let observer = try await PythonDevice.joining(device, of: server, in: folder, name: "observer")
      try await device.sync.start()
      // Yesterday.
      try device.save(saveBytes(50_000, seed: 1), to: "main")
      try device.change(["coins": .add(plus: 1, minus: 0), "level": .max(.int(1))])
      try await device.sync.sync()
      try await python.sync()
      try await observer.sync()
      await device.sync.pause()
      try await server.stop()
      try FileManager.default.copyItem(at: data, to: backup)
      server = try await LiveServer.start(data: data, port: port, appKeys: keys)

      // Today: more than fits into one request, and a checkpoint with a large save that is made from the loaded one.
      // The other device doesn't learn of it.
      _ = try await python.load("main")
      let large = frameBytes(700_000, seed: 5)
      let save = try python.file(large)
      try await python.together([
        ["counter", "coins", "5"], ["max", "level", "2"], ["save", "main", save.path, "Today"],
      ])
      for number in 0..<12 {
        try await python.run("latest", "page \(number)", String(repeating: "\(number % 10) ", count: 50_000))
      }
      let before = try await python.sync()
      #expect(before.waiting == 0 && before.restarts == 0)
      // Changes made after the last exchange, which wait with everything else.
      try await python.together([["counter", "coins", "7"], ["set", "bag", "put", "rose"]])

      try await server.stop()
      try FileManager.default.moveItem(at: data, to: folder.appendingPathComponent("lost"))
      try FileManager.default.moveItem(at: backup, to: data)
      server = try await LiveServer.start(data: data, port: port, appKeys: keys)
      let after = try await python.sync()
      #expect(after.restarts == 1 && after.waiting == 0)
      // One exchange to learn of it, the parts, and the last part again with what the cloud lacked.
      #expect((4...6).contains(after.exchanges), "\(after.exchanges)")
      #expect(after.cursor.seq > 0)

      try await device.sync.start()
      try await device.sync.sync()
      let fresh = try await PythonDevice.joining(device, of: server, in: folder, name: "fresh")
      for other in [fresh, observer] {
        try await other.sync()
        #expect(try await other.load("main") == [ContentHash(of: large)])
        #expect(try other.cells() == python.cells())
      }
      #expect(try device.heads(of: "main").map { ContentHash(of: $0) } == [ContentHash(of: large)])
      #expect(try device.count("coins") == 13)
      #expect(try device.cell("level") == .max(.int(2)))
      #expect(try device.cells() == python.cells())
      // Then the client is quiet: nothing is offered a second time.
      let seq = try await python.sync().cursor.seq
      #expect(try await python.sync().cursor.seq == seq)
      try await device.close()
      try await server.stop()
    }
  }
}
#endif
