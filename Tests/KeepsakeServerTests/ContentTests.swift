#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Contents")
struct ContentTests {
  /// Incompressible bytes from a seed.
  private func bytes(_ count: Int, seed: UInt64) -> Data {
    var state = seed
    return Data(
      (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 33)
      })
  }

  @Test(
    """
    a content of any size is returned byte for byte, also after a restart, and can be uploaded again if its file is lost
    """,
    arguments: [1, 1000, 1 << 20, (1 << 20) + 1, 9_000_000])
  func roundTrip(count: Int) async throws {
    try await TemporaryFolder.with { folder in
      var server = try await LiveServer.start(data: folder)
      let (client, account) = try await server.client.register()
      let frame = bytes(count, seed: 1)
      let hash = ContentHash(of: Data("a".utf8))
      let base = ContentHash(of: Data("b".utf8))
      let path = "/v1/contents/\(hash)"
      let first = try await client.call(
        "PUT", "/v1/contents/\(base)", headers: ["Keepsake-Length": "1"], body: bytes(1, seed: 3))
      #expect(first.status == 201)
      let put = try await client.call(
        "PUT", path, headers: ["Keepsake-Length": "12345", "Keepsake-Base": base.description], body: frame)
      #expect(put.status == 201, "\(put.json)")
      // A second upload under the same name changes nothing.
      let second = try await client.call("PUT", path, headers: ["Keepsake-Length": "1"], body: bytes(count, seed: 2))
      #expect(second.status == 200)
      for _ in 0..<2 {
        let got = try await Client(server: server, token: account.token).call("GET", path)
        #expect(got.status == 200)
        let isSame = got.body == frame
        #expect(isSame)
        #expect(got.headers["keepsake-length"] == "12345")
        #expect(got.headers["keepsake-base"] == base.description)
        try await server.stop()
        server = try await LiveServer.start(data: folder)
      }
      let contents = folder.appendingPathComponent("contents")
      let files = try FileManager.default.contentsOfDirectory(atPath: contents.path)
      #expect(files.count == (count > 1 << 20 ? 1 : 0))
      // A content whose file is lost (the database was restored without it) can be uploaded again: it causes neither
      // wrong bytes nor a failure.
      for file in files {
        try FileManager.default.removeItem(at: contents.appendingPathComponent(file))
        let client = Client(server: server, token: account.token)
        #expect(try await client.call("GET", path).status == 404)
        let again = try await client.call("PUT", path, headers: ["Keepsake-Length": "12345"], body: frame)
        #expect(again.status == 201)
        let isBack = try await client.call("GET", path).body == frame
        #expect(isBack)
      }
      let incoming = try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("incoming").path)
      #expect(incoming.isEmpty)
      try await server.stop()
    }
  }

  @Test("a player can't read another player's content, even by its hash")
  func containersApart() async throws {
    try await LiveServer.with { server in
      let (first, _) = try await server.client.register()
      let (second, _) = try await server.client.register()
      let path = "/v1/contents/\(ContentHash(of: Data("secret".utf8)))"
      _ = try await first.call("PUT", path, headers: ["Keepsake-Length": "6"], body: Data("secret".utf8))
      #expect(try await first.call("GET", path).status == 200)
      let stranger = try await second.call("GET", path)
      #expect(stranger.status == 404)
      #expect(stranger.code == "content_missing")
    }
  }

  @Test("contents with invalid hashes, lengths or bases are refused with a reason")
  func badRequests() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let hash = ContentHash(of: Data("a".utf8)).description
      let body = Data("x".utf8)
      for name in [
        String(hash.dropLast()), hash + "0", "g" + hash.dropFirst(), "%00" + hash.dropFirst(3), "..%2F..%2Fsecret",
      ] {
        #expect(
          try await client.call("PUT", "/v1/contents/\(name)", headers: ["Keepsake-Length": "1"], body: body).status
            == 400)
        #expect(try await client.call("GET", "/v1/contents/\(name)").status == 400)
      }
      for length in ["-1", "", "x", "268435457", "99999999999999999999999", "1.5", "0x10"] {
        let answer = try await client.call(
          "PUT", "/v1/contents/\(hash)", headers: ["Keepsake-Length": length], body: body)
        #expect(answer.status == 400, "\(length)")
        #expect(answer.code == "bad_request")
      }
      #expect(try await client.call("PUT", "/v1/contents/\(hash)", body: body).status == 400)
      let ownBase = ["Keepsake-Length": "1", "Keepsake-Base": hash]
      #expect(try await client.call("PUT", "/v1/contents/\(hash)", headers: ownBase, body: body).status == 400)
      let shortBase = ["Keepsake-Length": "1", "Keepsake-Base": "abc"]
      #expect(try await client.call("PUT", "/v1/contents/\(hash)", headers: shortBase, body: body).status == 400)
      let unknownBase = ["Keepsake-Length": "1", "Keepsake-Base": ContentHash(of: body).description]
      let baseless = try await client.call("PUT", "/v1/contents/\(hash)", headers: unknownBase, body: body)
      #expect(baseless.status == 409)
      #expect(baseless.code == "base_missing")
      let empty = try await client.call("PUT", "/v1/contents/\(hash)", headers: ["Keepsake-Length": "0"], body: Data())
      #expect(empty.status == 400)
      #expect(try await client.call("GET", "/v1/contents/\(hash)").status == 404)
      #expect(try await server.client.call("GET", "/v1/contents/\(hash)").status == 401)
    }
  }

  @Test("a content whose Content-Length exceeds the limit is refused before its body is sent")
  func declaredTooLarge() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let hash = ContentHash(of: Data("a".utf8)).description
      let raw = try RawConnection(port: server.running.port)
      await raw.send(
        "PUT /v1/contents/\(hash) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(client.token ?? "")\r\n"
          + "Keepsake-Length: 1\r\nContent-Length: 300000000\r\nExpect: 100-continue\r\n\r\n")
      let answer = await raw.read(until: "too_large")
      #expect(answer.hasPrefix("HTTP/1.1 413"), "\(answer)")
    }
  }

  @Test("a client that sends `Expect: 100-continue` gets status 100 before it sends the body")
  func expectContinue() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let hash = ContentHash(of: Data("a".utf8)).description
      let raw = try RawConnection(port: server.running.port)
      await raw.send(
        "PUT /v1/contents/\(hash) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(client.token ?? "")\r\n"
          + "Keepsake-Length: 1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
      #expect(await raw.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 100"))
      await raw.send("abc")
      #expect(await raw.read(until: "stored").hasPrefix("HTTP/1.1 201"))
    }
  }

  @Test("an upload that is interrupted leaves nothing behind", arguments: [10, 2_000_000])
  func brokenUpload(declared: Int) async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let (client, _) = try await server.client.register()
      let hash = ContentHash(of: Data("a".utf8)).description
      do {
        let raw = try RawConnection(port: server.running.port)
        await raw.send(
          "PUT /v1/contents/\(hash) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(client.token ?? "")\r\n"
            + "Keepsake-Length: 1\r\nContent-Length: \(declared)\r\n\r\nabc")
        // This response comes on another connection: by then the server has read the head of the first request.
        _ = try await client.call("GET", "/v1/contents/\(hash)")
      }
      try await server.stop()
      let again = try await LiveServer.start(data: folder)
      #expect(try await Client(server: again, token: client.token).call("GET", "/v1/contents/\(hash)").status == 404)
      let files = try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("contents").path)
      #expect(files.isEmpty)
      try await again.stop()
    }
  }
}
#endif
