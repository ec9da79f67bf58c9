#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import Testing

@testable import KeepsakeServer

/// A device that sends what no device of ours does.
struct Forger {
  let device: Client
  /// The path of its player on the studio's port.
  let path: String

  init(_ stage: AdminStage) async throws {
    let (device, account) = try await stage.server.client.register()
    (self.device, path) = (device, "/admin/v1/players/\(account.player)")
  }

  /// Puts a content, as a delta against another one if `base` is given.
  func put(_ plain: Data, base: Data? = nil) async throws -> ContentHash {
    let hash = ContentHash(of: plain)
    var headers = ["Keepsake-Length": "\(plain.count)"]
    if let base { headers["Keepsake-Base"] = "\(ContentHash(of: base))" }
    let put = try await device.call(
      "PUT", "/v1/contents/\(hash)", headers: headers, body: try Zstd.compress(plain, prefix: base))
    try #require(put.status == 201, "\(put.json)")
    return hash
  }

  /// Sends a version with these contents, and returns its id.
  ///
  /// - Parameter length: What the device says, whatever the contents have.
  func send(
    _ number: UInt64, _ contents: [ContentHash], length: Int, slot: String = "main", covers: [VersionID] = []
  ) async throws -> VersionID {
    let id = VersionID(high: 3, low: number)
    let names = contents.map { "\"\($0)\"" }.joined(separator: ",")
    let covered = covers.map { "\"\($0)\"" }.joined(separator: ",")
    let sent = try await device.call(
      "POST", "/v1/exchange",
      json: """
        {"protocolVersion": 1, "cursor": {"epoch": 0, "seq": 0, "mark": 0}, "limit": 100, "versions": [{
        "id": "\(id)", "slot": "\(slot)", "contents": [\(names)], "length": \(length), "covers": [\(covered)],
        "savedAtMilliseconds": 1, "writer": "0000000000000001"}]}
        """)
    try #require(sent.status == 200, "\(sent.json)")
    let outcome = try #require(sent.json["outcome"] as? [String: Any])
    try #require(outcome["accepted"] != nil, "\(sent.json)")
    return id
  }
}
#endif
