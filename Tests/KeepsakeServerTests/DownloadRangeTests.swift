#if Cloud
import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeServer

@Suite("Downloads by range")
struct DownloadRangeTests {
  @Test(
    "any byte range of a content can be downloaded, and is never combined with another encoding of it",
    arguments: [5_000, 2_000_000])
  func ranges(count: Int) async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let upload = PartedUpload(client, "a", frameBytes(count, seed: 1))
      #expect(try await upload.sendRest()?.status == 201)
      let whole = try await client.call("GET", upload.path)
      let tag = try #require(whole.headers["etag"])
      #expect(whole.status == 200 && whole.headers["accept-ranges"] == "bytes" && tag.hasPrefix("\""))
      for (text, range) in [
        ("bytes=0-", 0..<count), ("bytes=1000-", 1000..<count), ("bytes=1000-1999", 1000..<2000),
        ("bytes=0-0", 0..<1), ("bytes=\(count - 1)-", count - 1..<count), ("bytes=4000-99999999", 4000..<count),
      ] {
        for condition in [nil, tag] {
          var headers = ["Range": text]
          headers["If-Range"] = condition
          let part = try await client.call("GET", upload.path, headers: headers)
          #expect(part.status == 206, "\(text)")
          let isRight = part.body == upload.bytes[range]
          #expect(isRight, "\(text)")
          #expect(part.headers["content-range"] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(count)")
          #expect(part.headers["etag"] == tag && part.headers["keepsake-length"] == "5")
        }
      }
      let beyond = try await client.call("GET", upload.path, headers: ["Range": "bytes=\(count)-"])
      #expect(beyond.status == 416 && beyond.code == "bad_range")
      // Ranges that aren't supported return the whole content, and so do ranges of another encoding.
      for headers in [
        ["Range": "bytes=-5"], ["Range": "bytes=5-2"], ["Range": "bytes=0-1,3-4"], ["Range": "items=0-1"],
        ["Range": "bytes=x-"],
        ["Range": "bytes=0-99999999999999999999"], ["Range": "bytes=1000-", "If-Range": "\"other\""],
        ["Range": "bytes=1000-", "If-Range": "W/\(tag)"],
      ] {
        let answer = try await client.call("GET", upload.path, headers: headers)
        let isWhole = answer.body == upload.bytes
        #expect(answer.status == 200 && isWhole, "\(headers)")
      }
      // The other encoding has another tag.
      let (other, _) = try await server.client.register()
      let encoding = PartedUpload(other, "a", frameBytes(count, seed: 2))
      _ = try await encoding.sendRest()
      #expect(try await other.call("GET", encoding.path).headers["etag"] != tag)
    }
  }
}
#endif
