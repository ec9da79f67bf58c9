#if Cloud
import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeServer

@Suite("The lines for curl in docs/PROTOCOL.md")
struct ProtocolLinesTests {
  private static let hasTools = ["curl", "zstd", "bash"].allSatisfy { tool in
    ["/usr/bin", "/bin", "/usr/local/bin"].contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(tool)") }
  }

  @Test("who follows the document by hand puts a save into the cloud, whole and in parts, and gets it back", .enabled(if: hasTools))
  func lines() async throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let document = try String(contentsOf: root.appending(path: "docs/PROTOCOL.md"), encoding: .utf8)
    let blocks = document.components(separatedBy: "```sh\n").dropFirst().compactMap { $0.components(separatedBy: "```").first }
    try #require(blocks.count == 5)
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let place = folder.appendingPathComponent("place")
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      let save = frameBytes(3_000_000, seed: 1)
      try save.write(to: place.appendingPathComponent("save"))
      // One player for what goes whole, another for what goes in parts and comes from the middle on.
      for (index, blocks) in [[blocks[0]], Array(blocks[1...])].enumerated() {
        let (client, _) = try await server.client.register()
        let script = (index == 0 ? blocks : ["HASH=$(sha256sum < save | cut -d' ' -f1); LENGTH=$(stat -c %s save)\n"] + blocks)
          .joined().replacingOccurrences(of: "curl ", with: "curl -sSf --noproxy '*' ")
        let output = try await run(script, in: place, ["TOKEN": client.token ?? "", "URL": server.url.absoluteString])
        let got = try await client.call("GET", "/v1/contents/\(ContentHash(of: save))")
        let frame = try Data(contentsOf: place.appendingPathComponent("save.zst"))
        let isWhole = got.status == 200 && got.body == frame
        #expect(isWhole, "\(output)")
        if index == 0 {
          let isSame = try Data(contentsOf: place.appendingPathComponent("copy")) == save
          #expect(isSame, "\(output)")
        } else {
          #expect(output.contains(#"{"received":0}"#) && output.contains(#"{"received":1048576}"#), "\(output)")
          #expect(output.components(separatedBy: "serverTimeMilliseconds").count == 3, "\(output)")
          let everything = try String(contentsOf: place.appendingPathComponent("everything.ndjson"), encoding: .utf8)
          #expect(everything.hasPrefix(#"{"device":"#) && everything.contains(#"{"end":{"lines":"#), "\(everything)")
        }
      }
      try await server.stop()
    }
  }

  private func run(_ script: String, in folder: URL, _ environment: [String: String]) async throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/bash")
    process.arguments = ["-euo", "pipefail", "-c", script]
    process.currentDirectoryURL = folder
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let file = folder.appendingPathComponent("output")
    try Data().write(to: file)
    let handle = try FileHandle(forWritingTo: file)
    process.standardOutput = handle
    process.standardError = handle
    let status: Int32 = try await withCheckedThrowingContinuation { continuation in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do {
        try process.run()
      } catch {
        continuation.resume(throwing: error)
      }
    }
    let output = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    #expect(status == 0, "\(output)")
    return output
  }
}
#endif
