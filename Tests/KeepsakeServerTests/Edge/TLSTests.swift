#if Cloud
import Foundation
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("TLS in the server's process")
struct TLSTests {
  /// A server with a certificate of `authority`.
  private func start(
    in folder: URL, _ authority: TestAuthority, change: (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> (LiveServer, TLSFiles) {
    let files = TLSFiles(
      certificate: folder.appendingPathComponent("tls.pem"), key: folder.appendingPathComponent("tls.key"))
    try await authority.issue(certificate: files.certificate, key: files.key)
    let server = try await LiveServer.start(
      data: folder.appendingPathComponent("data"),
      change: {
        $0.tls = files
        change(&$0)
      })
    return (server, files)
  }

  @Test("devices reach a server with a certificate by HTTP/2 and HTTP/1.1, and not without TLS", .needsTestAuthority)
  func versions() async throws {
    try await TemporaryFolder.with { folder in
      let authority = try await TestAuthority(in: folder.appendingPathComponent("authority"))
      let (server, _) = try await start(in: folder, authority)
      #expect(server.url.scheme == "https")
      let registration = [
        "-H", "Keepsake-App-Key: \(server.appKey)", "-d", #"{"name": "First"}"#, "--http2",
      ]
      let account = try #require(try await authority.ask(server.url, "v1/devices", registration))
      #expect(account.status == 201 && account.version == "2")
      let token = try JSONDecoder().decode(Client.Account.self, from: Data(account.body.utf8)).token
      for version in ["--http1.1", "--http2"] {
        let exchange = [
          version, "-H", "Authorization: Bearer \(token)", "-H", "Content-Type: application/json", "-d",
          #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":0,"mark":0},"limit":100}"#,
        ]
        let answer = try #require(try await authority.ask(server.url, "v1/exchange", exchange))
        #expect(answer.status == 200 && answer.version == (version == "--http2" ? "2" : "1.1"), "\(answer)")
      }
      // A large body over HTTP/2 ends with the response, as over HTTP/1.1.
      let large = folder.appendingPathComponent("large")
      try Data(repeating: 32, count: (16 << 20) + 1).write(to: large)
      let upload = ["--http2", "-H", "Authorization: Bearer \(token)", "--data-binary", "@\(large.path)"]
      let refused = try #require(try await authority.ask(server.url, "v1/exchange", upload))
      #expect(refused.status == 413, "\(refused)")
      let plain = try RawConnection(port: server.running.port)
      await plain.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(await !plain.read(until: "ok").contains("HTTP/1.1 200"))
      try await server.stop()
    }
  }

  @Test("an event stream over HTTP/2 and HTTP/1.1 tells of changes, and ends", .needsTestAuthority)
  func streams() async throws {
    try await TemporaryFolder.with { folder in
      let authority = try await TestAuthority(in: folder.appendingPathComponent("authority"))
      let (server, _) = try await start(in: folder, authority) { $0.metricsPort = 0 }
      let port = try #require(server.running.metricsPort)
      let monitor = try #require(URL(string: "http://127.0.0.1:\(port)"))
      for version in ["--http1.1", "--http2"] {
        let registration = ["-H", "Keepsake-App-Key: \(server.appKey)", "-d", #"{"name": "First"}"#]
        let account = try #require(try await authority.ask(server.url, "v1/devices", registration))
        let device = try JSONDecoder().decode(Client.Account.self, from: Data(account.body.utf8))
        let token = ["-H", "Authorization: Bearer \(device.token)"]
        async let stream = authority.ask(server.url, "v1/events", [version, "-N"] + token)
        try await until("an open stream") {
          let metrics = try await Client(url: monitor, appKey: "").call("GET", "/metrics")
          return String(decoding: metrics.body, as: UTF8.self).contains("keepsake_event_streams 1\n")
        }
        let cell = #"{"collection":"progress","key":"level","value":{"max":{"int":1}}}"#
        let exchange =
          token + [
            "-H", "Content-Type: application/json", "-d",
            #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":0,"mark":0},"limit":100,"cells":[\#(cell)]}"#,
          ]
        let answer = try #require(try await authority.ask(server.url, "v1/exchange", exchange))
        #expect(answer.status == 200, "\(answer)")
        let removed = try #require(
          try await authority.ask(server.url, "v1/devices/\(device.device)", ["-X", "DELETE"] + token))
        #expect(removed.status == 204, "\(removed)")
        let events = try #require(try await stream)
        #expect(events.status == 200 && events.version == (version == "--http2" ? "2" : "1.1"), "\(events)")
        for seq in 0...1 { #expect(events.body.contains("\"seq\":\(seq)"), "\(events)") }
      }
      try await server.stop()
    }
  }

  @Test("a certificate that is replaced is shown to new connections; one without its key is not", .needsTestAuthority)
  func replaced() async throws {
    try await TemporaryFolder.with { folder in
      let first = try await TestAuthority(in: folder.appendingPathComponent("first"))
      let second = try await TestAuthority(in: folder.appendingPathComponent("second"))
      let (server, files) = try await start(in: folder, first)
      #expect(try await first.ask(server.url, "health")?.status == 200)
      #expect(try await second.ask(server.url, "health") == nil)
      // As between the renaming of the two files.
      let key = try Data(contentsOf: files.key)
      try await second.issue(certificate: files.certificate, key: files.key)
      let newKey = try Data(contentsOf: files.key)
      try key.write(to: files.key, options: .atomic)
      #expect(try await first.ask(server.url, "health")?.status == 200, "the certificate from before stays in use")
      try newKey.write(to: files.key, options: .atomic)
      #expect(try await second.ask(server.url, "health")?.status == 200)
      #expect(try await first.ask(server.url, "health") == nil)
      try Data("nothing".utf8).write(to: files.certificate, options: .atomic)
      #expect(try await second.ask(server.url, "health")?.status == 200)
      try await server.stop()
    }
  }

  @Test("files that are missing, damaged or don't belong together are refused at the start", .needsTestAuthority)
  func wrongFiles() async throws {
    try await TemporaryFolder.with { folder in
      let authority = try await TestAuthority(in: folder)
      func file(_ name: String) -> URL { folder.appendingPathComponent(name) }
      try await authority.issue(certificate: file("a.pem"), key: file("a.key"))
      try await authority.issue(certificate: file("b.pem"), key: file("b.key"))
      try Data("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8).write(to: file("damaged"))
      let cases: [(String, String, ServerError.Code)] = [
        ("a.pem", "b.key", .configuration), ("a.pem", "none", .missing), ("none", "a.key", .missing),
        ("a.key", "a.key", .unusableFile), ("a.pem", "a.pem", .unusableFile), ("damaged", "a.key", .unusableFile),
      ]
      for (certificate, key, code) in cases {
        await #expect("\(certificate) \(key)") {
          try await LiveServer.start(
            data: folder.appendingPathComponent("data"),
            change: {
              $0.tls = TLSFiles(certificate: file(certificate), key: file(key))
            })
        } throws: { ($0 as? ServerError)?.code == code }
      }
    }
  }

  @Test("a connection that never begins its handshake is closed", .needsTestAuthority)
  func silentHandshake() async throws {
    try await TemporaryFolder.with { folder in
      let authority = try await TestAuthority(in: folder.appendingPathComponent("authority"))
      let (server, _) = try await start(in: folder, authority) { $0.handshakeSeconds = 1 }
      #expect(await (try RawConnection(port: server.running.port)).read(until: "x").isEmpty)
      try await server.stop()
    }
  }

  @Test("without a certificate, a server listens on loopback only, unless it stands behind a proxy")
  func unencrypted() async throws {
    try await TemporaryFolder.with { folder in
      for host in ["0.0.0.0", "::", "192.168.0.1", "example.com", "127.0.0.1.example.com", "128.0.0.1", ""] {
        await #expect("\(host)") {
          try await LiveServer.start(data: folder, change: { $0.host = host })
        } throws: { ($0 as? ServerError)?.code == .configuration }
      }
      for host in ["127.0.0.1", "localhost", "127.1.2.3"] {
        let server = try await LiveServer.start(data: folder, change: { $0.host = host })
        try await server.stop()
      }
      let server = try await LiveServer.start(
        data: folder,
        change: {
          ($0.host, $0.isBehindProxy) = ("0.0.0.0", true)
        })
      #expect(try await server.client.call("GET", "/health").status == 200)
      try await server.stop()
    }
  }
}
#endif
