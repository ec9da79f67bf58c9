#if Cloud
import Foundation
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

@Suite("Interrupted transfers", .hangLimit)
struct ResumeTests {
  private static let part = SyncLimits.uploadPartBytes

  private func transport(_ credentials: CloudCredentials, via url: URL) -> HTTPTransport {
    var credentials = credentials
    credentials.url = url
    return HTTPTransport(credentials)
  }

  private func content(_ name: String, _ count: Int, seed: UInt64) -> EncodedContent {
    EncodedContent(hash: ContentHash(of: Data(name.utf8)), length: 5, base: nil, bytes: frameBytes(count, seed: seed))
  }

  @Test("an upload that is cut at any point resumes there, and at most one part is sent twice")
  func cutUploads() async throws {
    try await LiveServer.with { server in
      let credentials = try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: "A")
      let total = 3_300_000
      for step in 1..<16 {
        let content = content("\(step)", total, seed: UInt64(step))
        let proxy = try CuttingProxy(to: server.running.port, cuttingOnceAfterUp: total * step / 16)
        defer { proxy.stop() }
        let transport = transport(credentials, via: proxy.url)
        try await retry { try await transport.putContent(content) { _ in } }
        #expect(proxy.count == 1, "cut at \(step)/16")
        let twice = transport.traffic.bytesSent - Int64(total)
        #expect((0...Int64(Self.part)).contains(twice), "cut at \(step)/16: \(twice) bytes too many")
        let isWhole = try await HTTPTransport(credentials).getContent(content.hash) { _ in } == content
        #expect(isWhole, "cut at \(step)/16")
      }
    }
  }

  @Test("a download that is cut at any point resumes there, and no byte is received twice")
  func cutDownloads() async throws {
    try await LiveServer.with { server in
      let credentials = try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: "A")
      let total = 3_300_000
      let content = content("a", total, seed: 1)
      try await HTTPTransport(credentials).putContent(content) { _ in }
      for step in 1..<16 {
        let proxy = try CuttingProxy(to: server.running.port, cuttingOnceAfterUp: .max, down: total * step / 16)
        defer { proxy.stop() }
        let transport = transport(credentials, via: proxy.url)
        let steps = Steps()
        let got = try await retry { try await transport.getContent(content.hash) { steps.add($0) } }
        let isSame = got == content
        #expect(isSame, "cut at \(step)/16")
        #expect(proxy.count == 1, "cut at \(step)/16")
        #expect(transport.traffic.bytesReceived == Int64(total), "cut at \(step)/16")
        #expect(steps.last == TransferProgress(bytesDone: Int64(total), bytesInAll: Int64(total)), "cut at \(step)/16")
        #expect(steps.isMonotonic, "cut at \(step)/16")
      }
    }
  }

  @Test("a partly downloaded content is never combined with different bytes that were uploaded meanwhile")
  func changedMeanwhile() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let credentials = try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: "A")
      // As large as before, and smaller than the part that was kept.
      for count in [2_000_000, 30_000] {
        let old = content("a\(count)", 2_000_000, seed: 1)
        let new = content("a\(count)", count, seed: 2)
        let direct = HTTPTransport(credentials)
        try await direct.putContent(old) { _ in }
        let proxy = try CuttingProxy(to: server.running.port, cuttingOnceAfterUp: .max, down: 50_000)
        defer { proxy.stop() }
        let transport = transport(credentials, via: proxy.url)
        proxy.cut { transport.traffic.bytesReceived > 40_000 }
        await #expect(throws: TransportFailure.self) { try await transport.getContent(old.hash) { _ in } }
        let contents = folder.appendingPathComponent("contents")
        for file in try FileManager.default.contentsOfDirectory(at: contents, includingPropertiesForKeys: nil) {
          try FileManager.default.removeItem(at: file)
        }
        try await direct.putContent(new) { _ in }
        let isNew = try await transport.getContent(new.hash) { _ in } == new
        #expect(isNew, "\(count)")
      }
      try await server.stop()
    }
  }

  @Test("several concurrent transfers all complete over a network that cuts connections")
  func parallel() async throws {
    try await LiveServer.with { server in
      let credentials = try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: "A")
      let proxy = try CuttingProxy(to: server.running.port, cuttingOnceAfterUp: 5_000_000, down: 6_000_000)
      defer { proxy.stop() }
      let transport = transport(credentials, via: proxy.url)
      let contents = (0..<4).map { content("\($0)", 2_500_000, seed: UInt64($0)) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for content in contents {
          group.addTask { try await retry { try await transport.putContent(content) { _ in } } }
        }
        try await group.waitForAll()
      }
      let got = try await withThrowingTaskGroup(of: EncodedContent?.self) { group in
        for content in contents {
          group.addTask { try await retry { try await transport.getContent(content.hash) { _ in } } }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(proxy.count == 2)
      let areSame = Set(got) == Set(contents)
      #expect(areSame)
    }
  }

  #if os(Linux)
  @Test("a server that is killed between two parts or within one keeps what it received, and the upload resumes there")
  func killedServer() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      var server = try await ServerProcess.start(data: data)
      let port = server.port
      let credentials = try await HTTPAccount(url: server.url, appKey: ServerProcess.appKey).register(name: "A")
      let client = Client(url: server.url, appKey: ServerProcess.appKey, token: credentials.token)
      let total = 3_300_000
      // Between parts.
      let between = PartedUpload(client, "between", frameBytes(total, seed: 1))
      #expect(try await between.send(0..<Self.part).status == 202)
      await server.kill()
      server = try await ServerProcess.start(data: data, port: port)
      #expect(try await between.received() == Self.part)
      // Within a part.
      let middle = PartedUpload(client, "middle", frameBytes(total, seed: 2))
      #expect(try await middle.send(0..<Self.part).status == 202)
      let raw = try RawConnection(port: port)
      let head =
        "PUT \(middle.path) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(credentials.token)\r\nKeepsake-Length: 5\r\n"
        + "Keepsake-Frame: \(middle.headers["Keepsake-Frame"] ?? "")\r\n"
        + "Content-Range: bytes \(Self.part)-\(2 * Self.part - 1)/\(total)\r\nContent-Length: \(Self.part)\r\n\r\n"
      let half = Self.part + 400_000
      await raw.send(Data(head.utf8) + middle.bytes[Self.part..<half])
      try await until("half of it") { try await middle.received() == half }
      await server.kill()
      server = try await ServerProcess.start(data: data, port: port)
      #expect(try await middle.received() == half)
      // A restarted device knows of neither upload: it learns from the first response how far each one got.
      for (upload, come) in [(between, Self.part), (middle, half)] {
        let transport = HTTPTransport(credentials)
        let content = EncodedContent(hash: upload.hash, length: 5, base: nil, bytes: upload.bytes)
        try await transport.putContent(content) { _ in }
        #expect(transport.traffic.bytesSent == Int64(Self.part + total - max(come, Self.part)))
        let isWhole = try await transport.getContent(content.hash) { _ in } == content
        #expect(isWhole)
      }
      await server.end(by: SIGTERM)
    }
  }

  @Test("a content of 100 MiB is uploaded and downloaded without being held in the server's memory as a whole")
  func memory() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await ServerProcess.start(data: folder.appendingPathComponent("server"))
      let (client, account) = try await Client(url: server.url, appKey: ServerProcess.appKey).register()
      let warm = PartedUpload(client, "warm", frameBytes(3_000_000, seed: 1))
      _ = try await warm.sendRest()
      #expect(try await warm.isStoredWhole())
      let before = try server.peakMemory()
      let large = PartedUpload(client, "large", frameBytes(100 << 20, seed: 2))
      #expect(try await large.sendRest()?.status == 201)
      #expect(try await large.isStoredWhole())
      let extra = try server.peakMemory() - before
      if !Sanitizer.isAddress { #expect(extra < 48 << 20, "\(extra) bytes more for \(account.device)") }
      await server.end(by: SIGTERM)
    }
  }

  @Test(
    "while the server's disk is full, uploads are delayed by a minute and not refused, and resume when there is room",
    .needsPrivateMounts)
  func fullDisk() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await ServerProcess.start(data: folder.appendingPathComponent("server"), diskMebibytes: 8)
      let credentials = try await HTTPAccount(url: server.url, appKey: ServerProcess.appKey).register(name: "A")
      let client = Client(url: server.url, appKey: ServerProcess.appKey, token: credentials.token)
      let ballast = server.file("ballast", on: folder.appendingPathComponent("server"))
      try Data(count: 4_000_000).write(to: ballast)
      let transport = HTTPTransport(credentials)
      let content = content("a", 4_900_000, seed: 2)
      let failure = await #expect(throws: TransportFailure.self) { try await transport.putContent(content) { _ in } }
      #expect(failure?.kind == .server(retryAfterMilliseconds: 60_000), "\(String(describing: failure))")
      #expect(failure?.message.contains("storage_full") == true && failure?.quota == nil)
      // An upload in one piece, too.
      let whole = try await client.call(
        "PUT", "/v1/contents/\(ContentHash(of: Data("b".utf8)))", headers: ["Keepsake-Length": "5"],
        body: frameBytes(5_000_000, seed: 3))
      #expect(whole.status == 507 && whole.code == "storage_full", "\(whole.json)")
      #expect(try await client.call("GET", "/health").status == 200)
      let sent = transport.traffic.bytesSent
      try FileManager.default.removeItem(at: ballast)
      try await transport.putContent(content) { _ in }
      #expect(transport.traffic.bytesSent - sent < 3_500_000)
      let isWhole = try await transport.getContent(content.hash) { _ in } == content
      #expect(isWhole)
      await server.end(by: SIGTERM)
    }
  }
  #endif

  /// Repeats what is interrupted, as often as it takes.
  private func retry<Result>(_ work: () async throws -> Result) async throws -> Result {
    while true {
      do { return try await work() } catch let failure as TransportFailure where failure.kind == .interrupted {
        continue
      }
    }
  }

  private final class Steps: Sendable {
    private let steps = Mutex<[TransferProgress]>([])
    var last: TransferProgress? { steps.withLock { $0.last } }
    var isMonotonic: Bool { steps.withLock { $0.map(\.bytesDone) == $0.map(\.bytesDone).sorted() } }
    func add(_ step: TransferProgress) { steps.withLock { $0.append(step) } }
  }
}
#endif
