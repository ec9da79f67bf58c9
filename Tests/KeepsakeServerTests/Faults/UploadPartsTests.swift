#if Cloud
import Foundation
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Uploads in parts", .hangLimit)
struct UploadPartsTests {
  private static let mebibyte = 1 << 20

  private func incoming(_ data: URL) throws -> [URL] {
    try FileManager.default.contentsOfDirectory(
      at: data.appendingPathComponent("incoming"), includingPropertiesForKeys: nil)
  }

  @Test(
    "a content of any size can be uploaded in parts, also if the server restarts between them",
    arguments: [2, 1 << 20, 3_333_333])
  func parts(count: Int) async throws {
    try await TemporaryFolder.with { folder in
      var server = try await LiveServer.start(data: folder)
      let (client, account) = try await server.client.register()
      var upload = PartedUpload(client, "a", frameBytes(count, seed: 1))
      let middle = count / 2
      #expect(try await upload.received() == 0)
      let first = try await upload.send(0..<middle)
      #expect(first.status == 202 && first.json["received"] as? Int == middle, "\(first.json)")
      #expect(try await client.call("GET", upload.path).status == 404)
      try await server.stop()
      server = try await LiveServer.start(data: folder)
      upload.client = Client(server: server, token: account.token)
      #expect(try await upload.received() == middle)
      let second = try await upload.send(middle..<count)
      #expect(second.status == 201 && second.json["stored"] as? String == upload.hash.description, "\(second.json)")
      #expect(try await upload.isStoredWhole())
      #expect(try await upload.received() == nil)
      #expect(try incoming(folder).isEmpty)
      // The same part once more, as after a lost response.
      #expect(try await upload.send(middle..<count).status == 200)
      try await server.stop()
    }
  }

  @Test(
    "bytes received already are skipped; a part that would leave a gap gets status 409 with the offset to continue at")
  func offsets() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let upload = PartedUpload(client, "a", frameBytes(5_000, seed: 2))
      let early = try await upload.send(1_000..<2_000)
      #expect(early.status == 409 && early.code == "wrong_offset", "\(early.json)")
      #expect((early.json["error"] as? [String: Any])?["received"] as? Int == 0)
      #expect(try await upload.send(0..<1_000).status == 202)
      #expect(try await upload.send(0..<1_000).json["received"] as? Int == 1_000)
      #expect(try await upload.send(500..<2_000).json["received"] as? Int == 2_000)
      // Skipped bytes aren't read, so wrong ones do no harm.
      #expect(
        try await upload.send(0..<2_000, body: Data(repeating: 0, count: 2_000)).json["received"] as? Int == 2_000)
      let hole = try await upload.send(2_001..<3_000)
      #expect(
        hole.status == 409 && (hole.json["error"] as? [String: Any])?["received"] as? Int == 2_000, "\(hole.json)")
      #expect(try await upload.send(2_000..<5_000).status == 201)
      #expect(try await upload.isStoredWhole())
    }
  }

  @Test("parts with a wrong range, size or frame are refused with a reason, and the upload can continue")
  func wrongParts() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let upload = PartedUpload(client, "a", frameBytes(5_000, seed: 3))
      #expect(try await upload.send(0..<1_000).status == 202)
      for (says, status) in [
        ("bytes 1000-999/5000", 416), ("bytes 1000-5000/5000", 416), ("bytes 1000-1999/1500", 416),
        ("bytes 1000-1999/0", 416),
        ("bytes 1000-1999/5001", 400), ("bytes 1000-1999/300000000", 413), ("bytes 1000-1999/*", 400),
        ("bytes */5000", 400),
        ("bytes 1000-/5000", 400), ("bytes -1000-1999/5000", 400), ("bytes +1000-1999/5000", 400),
        ("1000-1999/5000", 400),
        ("", 400), ("bytes", 400), ("bytes 99999999999999999999-1/5000", 400), ("items 1000-1999/5000", 400),
        ("bytes 1000-1998/5000", 400), ("bytes 1000-2000/5000", 400),
      ] {
        let answer = try await upload.send(1_000..<2_000, says: says)
        #expect(answer.status == status, "\(says): \(answer.status) \(answer.json)")
        #expect(["bad_range", "too_large"].contains(answer.code), "\(says): \(answer.json)")
      }
      for frame in ["", "abc", String(repeating: "g", count: 64)] {
        var other = upload
        other.headers["Keepsake-Frame"] = frame
        #expect(try await other.send(1_000..<2_000).status == 400)
      }
      var nameless = upload
      nameless.headers["Keepsake-Frame"] = nil
      #expect(try await nameless.send(0..<5_000).status == 400)
      #expect(try await client.call("GET", upload.path + "/upload").status == 400)
      // Another encoding of the same content is another upload.
      let other = PartedUpload(client, "a", frameBytes(5_000, seed: 4))
      #expect(try await other.received() == 0)
      #expect(try await other.send(1_000..<2_000).code == "wrong_offset")
      // A body without a length, which is longer than its range.
      let raw = try RawConnection(port: server.running.port)
      let head =
        """
        PUT \(upload.path) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(client.token ?? "")\r\nKeepsake-Length: \
        5\r\nKeepsake-Frame: \(upload.headers["Keepsake-Frame"] ?? "")\r\nContent-Range: bytes 1000-1003/5000\r\n
        """
      await raw.send(head + "Transfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n")
      #expect(await raw.read(until: "bad_request").hasPrefix("HTTP/1.1 400"))
      #expect(try await upload.received() == 1_000)
      #expect(try await upload.send(1_000..<5_000).status == 201)
      #expect(try await upload.isStoredWhole())
    }
  }

  @Test("a frame that was assembled with wrong bytes is refused and discarded, and can then be uploaded again")
  func mismatch() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let (client, _) = try await server.client.register()
      let upload = PartedUpload(client, "a", frameBytes(3_000_000, seed: 5))
      #expect(try await upload.send(0..<2_000_000).status == 202)
      // As a power cut may leave the file: its length is right, its bytes are not.
      let file = try #require(try incoming(folder).first)
      var bytes = try Data(contentsOf: file)
      bytes[1_234_567] ^= 1
      try bytes.write(to: file)
      let wrong = try await upload.send(2_000_000..<3_000_000)
      #expect(wrong.status == 422 && wrong.code == "frame_mismatch", "\(wrong.json)")
      #expect(try await client.call("GET", upload.path).status == 404)
      #expect(try await upload.received() == 0)
      #expect(try incoming(folder).isEmpty)
      #expect(try await upload.sendRest()?.status == 201)
      #expect(try await upload.isStoredWhole())
      try await server.stop()
    }
  }

  @Test("two devices that upload the same content at once don't mix their parts, and one complete upload suffices")
  func twoDevices() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let (first, _) = try await server.client.register()
      let code = try #require(try await first.call("POST", "/v1/pairing").json["code"] as? String)
      let joined = try await server.client.call(
        "POST", "/v1/pairing/join", headers: ["Keepsake-App-Key": server.appKey], json: #"{"code": "\#(code)"}"#)
      let second = Client(server: server, token: joined.json["token"] as? String)
      let mine = PartedUpload(first, "a", frameBytes(3_000_000, seed: 6))
      // The same content in another device's encoding, and in the same encoding.
      let yours = [PartedUpload(second, "a", frameBytes(2_500_000, seed: 7)), PartedUpload(second, "a", mine.bytes)]
      #expect(try await mine.send(0..<1_000_000).status == 202)
      for upload in yours {
        #expect(try await upload.received() == 0)
        #expect(try await upload.send(0..<1_500_000).json["received"] as? Int == 1_500_000)
      }
      #expect(try await mine.received() == 1_000_000)
      #expect(try await mine.send(1_000_000..<3_000_000).status == 201)
      for upload in yours {
        let rest = try await upload.send(1_500_000..<upload.bytes.count)
        #expect(
          rest.status == 200 && (rest.json["stored"] as? String).map { upload.path.hasSuffix("/" + $0) } == true,
          "\(rest.json)")
      }
      #expect(try await yours[0].client.call("GET", mine.path).body == mine.bytes)
      #expect(try incoming(folder).isEmpty)
      try await server.stop()
    }
  }

  @Test("a player can't learn of another player's contents, nor continue another player's upload")
  func playersApart() async throws {
    try await LiveServer.with { server in
      let (first, _) = try await server.client.register()
      let (second, _) = try await server.client.register()
      let upload = PartedUpload(first, "a", frameBytes(5_000, seed: 8))
      #expect(try await upload.send(0..<4_000).status == 202)
      let stranger = PartedUpload(second, "a", upload.bytes)
      #expect(try await stranger.received() == 0)
      #expect(try await stranger.send(4_000..<5_000).code == "wrong_offset")
      #expect(try await upload.send(4_000..<5_000).status == 201)
      #expect(try await stranger.received() == 0)
      let nobody = PartedUpload(Client(server: server), "a", upload.bytes)
      #expect(try await nobody.send(0..<5_000).status == 401)
      #expect(try await server.client.call("GET", upload.path + "/upload", headers: upload.headers).status == 401)
    }
  }

  @Test("an upload whose base the cloud lacks is refused with the first part, not after the last")
  func baseMissing() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let upload = PartedUpload(client, "a", frameBytes(5_000, seed: 9), base: ContentHash(of: Data("gone".utf8)))
      let answer = try await upload.send(0..<1_000)
      #expect(answer.status == 409 && answer.code == "base_missing", "\(answer.json)")
      #expect(try await upload.received() == 0)
    }
  }

  @Test("a later request continues an upload whose earlier request hangs, as over a connection that died unnoticed")
  func hangingRequest() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let upload = PartedUpload(client, "a", frameBytes(200_000, seed: 10))
      let raw = try RawConnection(port: server.running.port)
      let head =
        """
        PUT \(upload.path) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(client.token ?? "")\r\nKeepsake-Length: \
        5\r\nKeepsake-Frame: \(upload.headers["Keepsake-Frame"] ?? "")\r\nContent-Range: bytes \
        0-199999/200000\r\nContent-Length: 200000\r\n\r\n
        """
      await raw.send(Data(head.utf8) + upload.bytes.prefix(70_000))
      try await until("the first part") { try await upload.received() == 70_000 }
      #expect(try await upload.send(70_000..<150_000).json["received"] as? Int == 150_000)
      // The earlier request continues after all: it is refused.
      await raw.send(upload.bytes[70_000..<200_000])
      #expect(await raw.read(until: "superseded").hasPrefix("HTTP/1.1 409"))
      #expect(try await upload.received() == 150_000)
      #expect(try await upload.send(150_000..<200_000).status == 201)
      #expect(try await upload.isStoredWhole())
    }
  }

  @Test("unfinished uploads are deleted after a day, not before, both while the server runs and when it starts")
  func oldUploads() async throws {
    try await TemporaryFolder.with { folder in
      let hours = Mutex<Double>(0)
      let clock: @Sendable () -> Int64 = { Int64((Date().timeIntervalSince1970 + hours.withLock { $0 } * 3600) * 1000) }
      var server = try await LiveServer.start(data: folder, clock: clock)
      let (client, account) = try await server.client.register()
      let upload = PartedUpload(client, "a", frameBytes(5_000, seed: 11))
      let other = PartedUpload(client, "b", frameBytes(5_000, seed: 12))
      #expect(try await upload.send(0..<1_000).status == 202)
      hours.withLock { $0 = 23 }
      #expect(try await other.send(0..<1_000).status == 202)
      #expect(try await upload.received() == 1_000)
      hours.withLock { $0 = 25 }
      // The server looks for old uploads whenever a part arrives.
      #expect(try await other.send(1_000..<2_000).status == 202)
      #expect(try await upload.received() == 0)
      #expect(try incoming(folder).count == 1)
      try await server.stop()
      // Files that belong to no upload: they are deleted, and do no harm.
      let place = folder.appendingPathComponent("incoming")
      try Data("x".utf8).write(to: place.appendingPathComponent("1f2e3d"))
      try FileManager.default.createDirectory(
        at: place.appendingPathComponent("a-b-c-d-5"), withIntermediateDirectories: true)
      server = try await LiveServer.start(data: folder, clock: { Int64(Date().timeIntervalSince1970 * 1000) })
      var again = other
      again.client = Client(server: server, token: account.token)
      #expect(try await again.received() == 2_000)
      #expect(try incoming(folder).count == 1)
      try await server.stop()
      // A server that was off for a long time.
      server = try await LiveServer.start(data: folder, clock: clock)
      again.client = Client(server: server, token: account.token)
      #expect(try await again.received() == 0)
      #expect(try incoming(folder).isEmpty)
      try await server.stop()
    }
  }

  @Test(
    """
    a player's unfinished uploads are limited in number and bytes, and the one idle for longest gives way after a while
    """)
  func limits() async throws {
    try await TemporaryFolder.with { folder in
      let minutes = Mutex<Double>(0)
      let clock: @Sendable () -> Int64 = { Int64((Date().timeIntervalSince1970 + minutes.withLock { $0 } * 60) * 1000) }
      let server = try await LiveServer.start(data: folder, clock: clock)
      let (client, _) = try await server.client.register()
      // Limited in number.
      for number in 0..<ServerLimits.uploadsPerPlayer {
        #expect(
          try await PartedUpload(client, "\(number)", frameBytes(10, seed: UInt64(number))).send(0..<1).status == 202)
      }
      let next = PartedUpload(client, "next", frameBytes(10, seed: 1_000))
      let refused = try await next.send(0..<1)
      #expect(
        refused.status == 429 && refused.code == "too_many_uploads" && refused.headers["retry-after"] == "60",
        "\(refused.json)")
      #expect(try incoming(folder).count == ServerLimits.uploadsPerPlayer)
      // Uploads that have begun continue, and another player isn't affected.
      #expect(try await PartedUpload(client, "0", frameBytes(10, seed: 0)).send(1..<9).status == 202)
      let (other, _) = try await server.client.register()
      #expect(try await PartedUpload(other, "0", frameBytes(10, seed: 0)).send(0..<1).status == 202)
      // After a while the upload that was idle for longest gives way.
      minutes.withLock { $0 = 11 }
      #expect(try await next.send(0..<1).status == 202)
      #expect(try await PartedUpload(client, "0", frameBytes(10, seed: 0)).received() == 9)
      #expect(try await PartedUpload(client, "1", frameBytes(10, seed: 1)).received() == 0)
      #expect(try incoming(folder).count == ServerLimits.uploadsPerPlayer + 1)
      // Limited by the bytes that they declare: two of the largest size, and not a byte more.
      let (third, _) = try await server.client.register()
      for number in 0..<3 {
        let answer = try await PartedUpload(third, "\(number)", frameBytes(10, seed: 7)).send(
          0..<1, says: "bytes 0-0/268435456")
        #expect(answer.status == (number < 2 ? 202 : 429), "\(number): \(answer.json)")
      }
      #expect(try await PartedUpload(third, "small", frameBytes(10, seed: 8)).send(0..<1).status == 429)
      try await server.stop()
    }
  }
}
#endif
