#if Cloud && PostgreSQL && os(Linux)
import Foundation
import Glibc
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

/// `keepsake migrate`, killed at random moments; and the two servers of a cloud that moves.
@Suite(
  "Moving a cloud under SIGKILL", .serialized, .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct CloudMoveKillTests {
  /// Runs the command, and kills it after some time.
  ///
  /// - Returns: Its exit status; nil if it was killed.
  private static func migrate(
    _ lab: MoveLab, _ options: [String] = [], killAfter delay: Double? = nil
  ) async throws -> Int32? {
    let process = Process()
    process.executableURL = try #require(Bundle.main.executableURL).deletingLastPathComponent()
      .appendingPathComponent("keepsake")
    process.arguments = ["migrate", "--from", lab.data.path, "--to", lab.address] + options
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    let (stream, continuation) = AsyncStream<Int32?>.makeStream()
    process.terminationHandler = { ended in
      continuation.yield(ended.terminationReason == .exit ? ended.terminationStatus : nil)
      continuation.finish()
    }
    try process.run()
    if let delay {
      try await Task.sleep(for: .seconds(delay))
      Glibc.kill(process.processIdentifier, SIGKILL)
    }
    for await status in stream { return status }
    return nil
  }

  @Test("however often the command is killed, one that ends has moved everything acknowledged, once")
  func kills() async throws {
    try await MoveLab.with { lab in
      let storage = try lab.storage()
      let writers = MoveWriters(storage, containers: 150)
      try await writers.fill()
      var random = SystemRandomNumberGenerator()
      let began = ContinuousClock.now
      // How long a run takes that isn't killed.
      try #require(try await Self.migrate(lab, ["--only-copy"]) == 0)
      let whole = (ContinuousClock.now - began) / .seconds(1)
      try #require(try await Self.migrate(lab, ["--abandon"]) == 0)
      try await writers.playing {
        for round in 0..<8 {
          // The first ones early, when nothing is there yet.
          let moment = Double.random(in: 0...(round < 3 ? 0.3 : 1.2) * whole, using: &random)
          if try await Self.migrate(lab, killAfter: moment) == 0 { break }
        }
        #expect(try await Self.migrate(lab) == 0)
      }
      try await storage.close()
      try await writers.check(lab)
    }
  }

  @Test(
    "devices go on with the new server, which was started before and takes the old one's place and port",
    .enabled(if: !TestDatabase.isUsedByServers, "all servers use PostgreSQL"))
  func succession() async throws {
    try await MoveLab.with { lab in
      let old = try await ServerProcess.start(data: lab.data)
      let account = HTTPAccount(url: old.url, appKey: ServerProcess.appKey)
      let first = try Device(try await account.register(name: "First"), in: lab.folder)
      let code = try await HTTPAccount.pairingCode(for: first.credentials).code
      let second = try Device(try await account.join(code: code, name: "Second"), in: lab.folder)
      for device in [first, second] { try await device.sync.start() }
      try first.add("coins", 1)
      try first.save(saveBytes(1_500_000, seed: 3), to: "big", parents: .everyHead)
      try await second.until("what the first one made") {
        try second.count("coins") == 1 && second.heads(of: "big") == [saveBytes(1_500_000, seed: 3)]
      }
      #expect(try await Self.migrate(lab, ["--only-copy"]) == 0)
      // It waits, since the cloud is being copied.
      async let starting = ServerProcess.start(data: lab.data, port: old.port, database: lab.address)
      try first.add("coins", 2)
      try second.add("coins", 4)
      #expect(try await Self.migrate(lab) == 0)
      let new = try await starting
      await old.hasEnded()
      #expect(try await Self.migrate(lab) == 0)
      try second.add("coins", 8)
      for device in [first, second, first, second] {
        try await device.until("sending") { device.sync.status.phase != .stopped }
        await device.retrySend()
      }
      let third = try Device(
        try await account.join(code: HTTPAccount.pairingCode(for: first.credentials).code, name: "Third"),
        in: lab.folder)
      try await third.sync.start()
      try await third.until("what all have made") {
        try third.count("coins") == 15 && third.heads(of: "big") == [saveBytes(1_500_000, seed: 3)]
      }
      for device in [first, second, third] { try await device.close() }
      await new.end(by: SIGTERM)
    }
  }
}
#endif
