#if Cloud && os(Linux)
import Foundation
import Glibc
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

@Suite("A server in a separate process", .hangLimit)
struct ServerProcessesTests {
  @Test("nothing is lost or counted twice when the server is killed and restarted several times during syncs")
  func restarts() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      var server = try await ServerProcess.start(data: data)
      let port = server.port
      let account = HTTPAccount(url: server.url, appKey: ServerProcess.appKey)
      let first = try Device(try await account.register(name: "First"), in: folder)
      let code = try await HTTPAccount.pairingCode(for: first.credentials).code
      let second = try Device(try await account.join(code: code, name: "Second"), in: folder)
      let devices = [first, second]
      for device in devices { try await device.sync.start() }
      for round in 0..<6 as Range<UInt64> {
        for (index, device) in devices.enumerated() {
          for step in 0..<5 as Range<UInt64> {
            try device.add("coins", 1)
            try device.save(saveBytes(60_000, seed: round * 10 + step), to: "own-\(index)", parents: .everyHead)
          }
          try device.save(saveBytes(1_500_000, seed: round), to: "big-\(index)", parents: .everyHead)
        }
        try await Task.sleep(for: .milliseconds(Int(round) * 7))
        await server.kill()
        for device in devices { try device.add("coins", 1) }
        server = try await ServerProcess.start(data: data, port: port)
      }
      for device in [first, second, first, second] {
        try await device.until("sending") { device.sync.status.phase != .stopped }
        await device.retrySend()
      }
      for device in devices {
        #expect(try device.count("coins") == 6 * (5 + 1) * 2)
        for index in 0..<2 {
          #expect(try device.heads(of: "own-\(index)") == [saveBytes(60_000, seed: 54)])
          #expect(try device.heads(of: "big-\(index)") == [saveBytes(1_500_000, seed: 5)])
        }
        try await device.close()
      }
      await server.end(by: SIGTERM)
    }
  }

  @Test("the server of a test ends when the process that started it is killed")
  func endsWithParent() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await ServerProcess.start(data: folder.appendingPathComponent("server"), isGrandchild: true)
      #expect(TestPort.isOpen(server.port))
      await server.kill()
      try await until("nothing listens any more") { !TestPort.isOpen(server.port) }
    }
  }

  @Test("a server stops on SIGTERM though a device listens, and the device reconnects to the next server automatically")
  func stopWhileListening() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      let server = try await ServerProcess.start(data: data)
      let account = HTTPAccount(url: server.url, appKey: ServerProcess.appKey)
      let device = try Device(try await account.register(name: "First"), in: folder)
      try await device.sync.start()
      try await device.until("listening") { device.sync.status.isListening }
      // Waits until the process has ended, which must be with success.
      await server.end(by: SIGTERM)
      try await device.until("noticing") { !device.sync.status.isListening }
      let next = try await ServerProcess.start(data: data, port: server.port)
      try await device.until("listening again") { device.sync.status.isListening }
      try await device.close()
      await next.end(by: SIGINT)
    }
  }
}
#endif
