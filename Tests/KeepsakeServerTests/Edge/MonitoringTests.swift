#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Health and metrics of a running server, on a port of their own")
struct MonitoringTests {
  private func monitor(_ running: RunningServer) throws -> Client {
    try monitor(port: try #require(running.metricsPort))
  }

  private func monitor(port: Int) throws -> Client {
    Client(url: try #require(URL(string: "http://127.0.0.1:\(port)")), appKey: "")
  }

  private func withServer(
    probeSeconds: Int? = nil, _ body: (LiveServer, Client, URL) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(
        data: folder,
        change: {
          $0.metricsPort = 0
          if let probeSeconds { $0.probeSeconds = probeSeconds }
        })
      do {
        try await body(server, monitor(server.running), folder)
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
    }
  }

  @Test("a healthy server is live and ready; devices find neither health nor metrics at its own port")
  func healthy() async throws {
    try await withServer { server, monitor, _ in
      #expect(try await monitor.call("GET", "/health/live").status == 200)
      let ready = try await monitor.call("GET", "/health/ready")
      #expect(ready.status == 200 && ready.json["status"] as? String == "ready", "\(ready.json)")
      for path in ["/metrics", "/health/live", "/health/ready"] {
        #expect(try await server.client.call("GET", path).status == 404, "\(path)")
      }
      #expect(try await monitor.call("POST", "/v1/devices").status == 404)
    }
  }

  @Test("metrics count requests by route template, refusals, bytes, streams and commits, and name nothing of a client")
  func metrics() async throws {
    try await withServer { server, monitor, _ in
      let (client, account) = try await server.client.register()
      let hash = String(repeating: "ab", count: 32)
      for path in ["/v1/contents/\(hash)", "/v1/contents/\(hash)", "/nowhere/\(hash)"] {
        #expect(try await client.call("GET", path).status == 404)
      }
      _ = try await client.call("PROPFIND", "/nowhere")
      let stream = try RawConnection(port: server.running.port)
      await stream.send("GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(account.token)\r\n\r\n")
      _ = await stream.read(until: "data: ")
      let answer = try await monitor.call("GET", "/metrics")
      #expect(answer.headers["content-type"]?.hasPrefix("text/plain; version=0.0.4") == true)
      let text = String(decoding: answer.body, as: UTF8.self)
      for line in [
        #"keepsake_requests_total{method="GET",route="/v1/contents/{hash}",status="404"} 2"#,
        #"keepsake_requests_total{method="GET",route="none",status="404"} 1"#,
        #"keepsake_requests_total{method="other",route="none",status="404"} 1"#,
        #"keepsake_requests_total{method="POST",route="/v1/devices",status="201"} 1"#,
        #"keepsake_refusals_total{code="content_missing"} 2"#, "keepsake_event_streams 1", "keepsake_ready 1",
        "keepsake_commit_queue 0", "keepsake_requests_active 0",
      ] { #expect(text.contains("\n" + line + "\n"), "\(line)\n\(text)") }
      for pattern in [
        #"keepsake_request_seconds_count\{route="/v1/devices"\} 1"#, "keepsake_commit_group_size_count [1-9]",
        "keepsake_received_bytes_total [1-9]", "keepsake_sent_bytes_total [1-9]",
        #"keepsake_storage_bytes\{kind="database"\} [1-9]"#, #"keepsake_storage_bytes\{kind="free"\} [1-9]"#,
      ] { #expect(try text.contains(Regex(pattern)), "\(pattern)\n\(text)") }
      for line in text.split(separator: "\n") where !line.hasPrefix("#") {
        #expect(line.wholeMatch(of: /[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.eE+-]+/) != nil, "\(line)")
      }
      for secret in [hash, "\(account.device)", "\(account.container)", account.token, "127.0.0.1"] {
        #expect(!text.contains(secret), "\(secret)")
      }
    }
  }

  @Test("each metric is described, and docs/COMMAND.md lists the same names")
  func documented() async throws {
    try await withServer { server, monitor, _ in
      _ = try await server.client.register()
      _ = try await server.client.call("GET", "/nowhere")
      let text = String(decoding: try await monitor.call("GET", "/metrics").body, as: UTF8.self)
      let named = Set(text.matches(of: #/# TYPE ([a-z_]+) /#).map { String($0.1) })
        .subtracting(["keepsake_series_refused"])
      #expect(named.isSubset(of: ServerMetrics.descriptions.keys), "\(named)")
      let page = try String(contentsOf: Repository.root.appending(path: "docs/COMMAND.md"), encoding: .utf8)
      let listed = Set(page.matches(of: /\n\| `((?:keepsake|process)_[a-z_]+)`/).map { String($0.1) })
      #expect(listed == Set(ServerMetrics.descriptions.keys))
    }
  }

  @Test("while a server stops it is live and not ready, and says that it is draining")
  func draining() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder, change: { $0.metricsPort = 0 })
      let monitor = try monitor(server.running)
      let (client, _) = try await server.client.register()
      // A request whose body isn't complete holds the stop.
      var slow: RawConnection? = try RawConnection(port: server.running.port)
      await slow?.send(
        """
        POST /v1/exchange HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(client.token ?? "")\r\n\
        Expect: 100-continue\r\nContent-Length: 9\r\n\r\n
        """)
      _ = await slow?.read(until: "100")
      server.running.stop()
      try await until("the server is draining") {
        let ready = try await monitor.call("GET", "/health/ready")
        return ready.status == 503 && (ready.json["problems"] as? [String])?.contains("draining") == true
      }
      #expect(try await monitor.call("GET", "/health/live").status == 200)
      slow = nil
      try await server.task.value
      await #expect(throws: (any Error).self) { try await monitor.call("GET", "/health/live") }
    }
  }

  @Test("a database that doesn't answer makes the server not ready, until it answers again")
  func stuckDatabase() async throws {
    try await withServer(probeSeconds: 1) { _, monitor, folder in
      var configuration = Configuration()
      // One that stays open.
      configuration.allowsUnsafeTransactions = true
      configuration.busyMode = .timeout(TimeInterval(Patience.limit.components.seconds))
      let path = folder.appendingPathComponent("cloud.sqlite").path
      let other = try DatabaseQueue(path: path, configuration: configuration)
      try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
      try await until("the server isn't ready") {
        let ready = try await monitor.call("GET", "/health/ready")
        return ready.status == 503 && ready.json["problems"] as? [String] == ["database"]
      }
      let text = String(decoding: try await monitor.call("GET", "/metrics").body, as: UTF8.self)
      #expect(text.contains("keepsake_ready 0\n"))
      #expect(try await monitor.call("GET", "/health/live").status == 200)
      try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
      try await until("the server is ready") { try await monitor.call("GET", "/health/ready").status == 200 }
    }
  }

  #if os(Linux)
  @Test("a full disk makes the server not ready, until there is room again", .needsPrivateMounts)
  func fullDisk() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      let server = try await ServerProcess.start(data: data, diskMebibytes: 8)
      let monitor = try monitor(port: server.metricsPort)
      #expect(try await monitor.call("GET", "/health/ready").status == 200)
      let filler = server.file("filler", on: data)
      #expect(throws: (any Error).self) { try Data(repeating: 1, count: 16 << 20).write(to: filler) }
      // What is left after the failed write is filled by small steps.
      let handle = try FileHandle(forWritingTo: filler.creatingFile())
      while (try? handle.write(contentsOf: Data(repeating: 1, count: 4_096))) != nil {}
      try await until("the server isn't ready") {
        let ready = try await monitor.call("GET", "/health/ready")
        return ready.status == 503 && (ready.json["problems"] as? [String])?.contains("disk") == true
      }
      try handle.close()
      try FileManager.default.removeItem(at: filler)
      try await until("the server is ready") { try await monitor.call("GET", "/health/ready").status == 200 }
      await server.kill()
    }
  }
  #endif
}

extension URL {
  /// Creates an empty file here unless there is one.
  fileprivate func creatingFile() -> URL {
    if !FileManager.default.fileExists(atPath: path) { _ = FileManager.default.createFile(atPath: path, contents: nil) }
    return self
  }
}
#endif
