#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// What a request decodes of contents that a player has chained to waste time.
@Suite("Decoding for the studio", .hangLimit) struct ContentDecodingTests {
  private static let container = ContainerID(high: 1, low: 2)
  private static let look = ContentDecoding.lookBytes

  private func with(_ body: (AdminRoutes, [Data]) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    var configuration = ServerConfiguration(data: folder.url, port: 0)
    (configuration.adminPort, configuration.saves) = (0, TextReader())
    let service = try await CloudService(
      configuration: configuration, logger: Logger(label: "test"), stopSwitch: StopSwitch(), onRunning: { _ in })
    let routes = try #require(service.admin).routes
    // A chain: each but the first is decoded from the one before.
    let contents = (0..<4).map { saveBytes(100_000, seed: 1) + Data("\($0)".utf8) }
    for (index, plain) in contents.enumerated() {
      let base = index > 0 ? contents[index - 1] : nil
      let kept = KeptContent(
        hash: ContentHash(of: plain), length: plain.count, base: base.map { ContentHash(of: $0) },
        bytes: .memory(try Zstd.compress(plain, prefix: base)))
      _ = try await routes.cloud.storage.putContent(kept, of: Self.container, quota: nil)
    }
    try await body(routes, contents)
  }

  @Test("bases that were decoded aren't decoded again, so that an export takes no more work than its bytes")
  func once() async throws {
    try await with { routes, contents in
      // Each once, and two looks for each: for itself, and for its base.
      let decoding = ContentDecoding(bytes: 4 * 100_001 + 8 * Self.look)
      for plain in contents {
        let decoded = try await routes.plain(ContentHash(of: plain), of: Self.container, decoding)
        #expect(decoded == plain)
      }
    }
  }

  @Test("what takes more work than a request may do isn't decoded, nor anything after it")
  func exhausted() async throws {
    try await with { routes, contents in
      let decoding = ContentDecoding(bytes: 3 * 100_001 + 5 * Self.look)
      for (index, isDecoded) in [(0, true), (3, false), (0, false)] {
        let hash = ContentHash(of: contents[index])
        var (decoded, code): (Data?, APIError.Code?) = (nil, nil)
        do {
          decoded = try await routes.plain(hash, of: Self.container, decoding)
        } catch {
          code = (error as? APIError)?.code
        }
        #expect(decoded == (isDecoded ? contents[index] : nil))
        #expect(code == (isDecoded ? nil : .contentMissing))
      }
    }
  }

  @Test("little is kept of what was decoded, the newest")
  func kept() {
    let decoding = ContentDecoding(stored: .max)
    let plain = Data(count: 20 << 20)
    let hashes = (0..<5).map { ContentHash(of: Data("\($0)".utf8)) }
    for hash in hashes { decoding.keep(plain, of: hash) }
    #expect(hashes.map { decoding.kept($0) != nil } == [false, false, true, true, true])
  }
}
#endif
