#if Cloud
import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeServer
@testable import KeepsakeStore
import TestSupport

@Suite("The curl commands in docs/PROTOCOL.md")
struct ProtocolLinesTests {
  private static let hasTools = ["curl", "zstd", "bash"].allSatisfy { tool in
    ["/usr/bin", "/bin", "/usr/local/bin"].contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(tool)") }
  }

  /// The document's blocks of commands, in their order.
  private enum Block: Int, CaseIterable {
    case frames, wholeContent, export, parts, fromTheMiddle, exchange, byHand
  }

  private static func blocks() throws -> [Block: String] {
    let document = try String(contentsOf: Repository.root.appending(path: "docs/PROTOCOL.md"), encoding: .utf8)
    let blocks = document.components(separatedBy: "```sh\n").dropFirst().compactMap {
      $0.components(separatedBy: "```").first
    }
    // Each of them is run below.
    try #require(blocks.count == Block.allCases.count)
    return Dictionary(uniqueKeysWithValues: zip(Block.allCases, blocks))
  }

  @Test(
    "the document's commands upload a save whole and in parts, download it, export it, and make an exchange",
    .enabled(if: hasTools))
  func lines() async throws {
    let all = try Self.blocks()
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let place = folder.appendingPathComponent("place")
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      let save = frameBytes(3_000_000, seed: 1)
      try save.write(to: place.appendingPathComponent("save"))
      // One player for the upload as a whole, another for the upload in parts and the download from the middle.
      for (index, kinds) in [[Block.wholeContent], [.export, .parts, .fromTheMiddle, .exchange]].enumerated() {
        let blocks = kinds.compactMap { all[$0] }
        let (client, _) = try await server.client.register()
        let script =
          (index == 0 ? blocks : ["HASH=$(sha256sum < save | cut -d' ' -f1); LENGTH=$(stat -c %s save)\n"] + blocks)
          .joined()
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

  @Test(
    """
    the document's full example makes two devices of a player, syncs a save from one to the other, and deletes \
    everything
    """,
    .enabled(if: hasTools))
  func byHand() async throws {
    let script = try #require(Self.blocks()[.byHand])
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let place = folder.appendingPathComponent("place")
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      try frameBytes(300_000, seed: 1).write(to: place.appendingPathComponent("save"))
      let output = try await run(
        script + "\necho; echo $FIRST $SECOND > tokens", in: place,
        ["KEY": server.appKey, "URL": server.url.absoluteString])
      for part in [#""status":"ok""#, #""stored":"#, #""accepted":{"seq":2}"#, #"{"seq":2}"#, #""name":"Tablet""#] {
        #expect(output.contains(part), "\(part) is missing in \(output)")
      }
      let received = try String(contentsOf: place.appendingPathComponent("response"), encoding: .utf8)
      #expect(received.contains(#""slot":"main""#) && received.contains(#""max":{"int":6}"#), "\(received)")
      // The example deletes what it has made: nothing of the player is left.
      let tokens = try String(contentsOf: place.appendingPathComponent("tokens"), encoding: .utf8).split(
        whereSeparator: \.isWhitespace)
      #expect(tokens.count == 2 && tokens[0] != tokens[1])
      for token in tokens {
        #expect(try await Client(server: server, token: String(token)).call("GET", "/v1/devices").code == "retired")
      }
      try await server.stop()
    }
  }

  @Test("Keepsake and the program zstd decompress each other's frames, in full and as deltas", .enabled(if: hasTools))
  func frames() async throws {
    let script = try #require(Self.blocks()[.frames])
    try await TemporaryFolder.with { folder in
      let (before, change) = (frameBytes(700_000, seed: 1), frameBytes(1_000, seed: 2))
      let after = before.prefix(300_000) + change + before.suffix(400_000)
      try before.write(to: folder.appendingPathComponent("before"))
      try after.write(to: folder.appendingPathComponent("after"))
      let output = try await run(script, in: folder, [:])
      func frame(_ name: String) throws -> Data { try Data(contentsOf: folder.appendingPathComponent(name)) }
      // The program's frames, read by Keepsake.
      let isFull = try Zstd.decompress(frame("before.zst"), length: before.count) == before
      let isDelta = try Zstd.decompress(frame("delta.zst"), prefix: before, length: after.count) == after
      #expect(isFull && isDelta, "\(output)")
      #expect(try frame("delta.zst").count < 5_000)
      // Keepsake's frames, read by the program: the last line of the script once more.
      try Zstd.compress(before).write(to: folder.appendingPathComponent("before.zst"))
      try Zstd.compress(after, prefix: before).write(to: folder.appendingPathComponent("delta.zst"))
      _ = try await run(try #require(script.split(separator: "\n").last.map(String.init)), in: folder, [:])
    }
  }

  private func run(_ script: String, in folder: URL, _ environment: [String: String]) async throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/bash")
    process.arguments = [
      "-euo", "pipefail", "-c", script.replacingOccurrences(of: "curl ", with: "curl -sSf --noproxy '*' "),
    ]
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
