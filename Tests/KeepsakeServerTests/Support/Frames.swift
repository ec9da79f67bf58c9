#if Cloud
import Foundation
import KeepsakeReplication

/// Incompressible bytes from a seed. Beyond a MiB that MiB is repeated, each time with another beginning.
func frameBytes(_ count: Int, seed: UInt64) -> Data {
  var state = seed
  var block = Data(capacity: 1 << 20)
  while block.count < min(count, 1 << 20) {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    withUnsafeBytes(of: state) { block.append(contentsOf: $0) }
  }
  var bytes = Data(capacity: count)
  var number: UInt64 = 0
  while bytes.count < count {
    number += 1
    withUnsafeBytes(of: number) { bytes.append(contentsOf: $0) }
    bytes.append(block.prefix(max(0, count - bytes.count)))
  }
  return Data(bytes.prefix(count))
}

/// An upload in parts whose requests the test makes itself.
struct PartedUpload: Sendable {
  static let partBytes = 1 << 20

  var client: Client
  var hash: ContentHash
  var bytes: Data
  var headers: [String: String]

  init(_ client: Client, _ name: String, _ bytes: Data, base: ContentHash? = nil) {
    self.client = client
    hash = ContentHash(of: Data(name.utf8))
    self.bytes = bytes
    headers = ["Keepsake-Length": "5", "Keepsake-Frame": ContentHash(of: bytes).description]
    headers["Keepsake-Base"] = base?.description
  }

  var path: String { "/v1/contents/\(hash)" }

  /// Sends `range`. A test of wrong parts passes another `body`, or another range in `says`.
  func send(_ range: Range<Int>, body: Data? = nil, says: String? = nil) async throws -> Client.Answer {
    var headers = headers
    headers["Content-Range"] = says ?? "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(bytes.count)"
    return try await client.call("PUT", path, headers: headers, body: body ?? Data(bytes[range]))
  }

  /// Sends everything from `start` on, and returns the last response.
  func sendRest(from start: Int = 0) async throws -> Client.Answer? {
    var last: Client.Answer?
    for first in stride(from: start, to: bytes.count, by: Self.partBytes) {
      last = try await send(first..<min(first + Self.partBytes, bytes.count))
    }
    return last
  }

  /// How many bytes the server reports as received; nil if it has the content.
  func received() async throws -> Int? {
    try await client.call("GET", path + "/upload", headers: headers).json["received"] as? Int
  }

  func isStoredWhole() async throws -> Bool { try await client.call("GET", path).body == bytes }
}
#endif
