#if Cloud
import ExchangeFuzz
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// What `make fuzz` does with many more messages, and with a fuzzer that learns which ones lead further.
@Suite("Altered messages of an exchange")
struct AlteredMessageTests {
  private static let fixtures = Repository.root.appending(path: "Tests/KeepsakeReplicationTests/Fixtures/v1")

  private static func check(_ form: MessageCheck.Form) -> MessageCheck {
    MessageCheck(
      form,
      scan: { json in
        let scan = JSONScan(json, limit: ServerLimits.jsonTokens, deepest: ServerLimits.jsonDepth)
        return MessageCheck.Scan(
          isAdmitted: scan.tokens <= ServerLimits.jsonTokens && scan.depth <= ServerLimits.jsonDepth,
          decodingBytes: scan.decodingBytes)
      })
  }

  private static func recorded(_ form: MessageCheck.Form) throws -> [[UInt8]] {
    try FileManager.default.contentsOfDirectory(at: fixtures, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == form.fileExtension }.sorted { $0.path < $1.path }
      .compactMap { file in
        guard let kind = MessageCheck.Kind(named: file.lastPathComponent) else { return nil }
        return try [kind.rawValue] + Data(contentsOf: file)
      }
  }

  @Test(
    "an altered message is refused in a typed way, or stays the same when it is encoded and decoded in both forms",
    arguments: MessageCheck.Form.allCases)
  func altered(form: MessageCheck.Form) throws {
    let check = Self.check(form)
    let recorded = try Self.recorded(form)
    #expect(recorded.count >= 10)
    for message in recorded { #expect(try check.run(Data(message))) }
    var decoded = 0
    for seed in 0..<UInt64(TestDepth.alteredMessages) {
      var mutator = MessageMutator(form, seed: seed)
      var bytes = MessageMutator(form, seed: ~seed)
      let message = mutator.altered(
        recorded[Int(seed) % recorded.count], with: recorded[Int(seed / 7) % recorded.count]
      ) { bytes.alteredBytes($0) }
      do {
        if try check.run(Data(message)) { decoded += 1 }
      } catch {
        Issue.record("seed \(seed): \(error): \(String(decoding: message, as: UTF8.self))")
      }
    }
    // Both sides of the decision are reached.
    #expect(decoded > TestDepth.alteredMessages / 50 && decoded < TestDepth.alteredMessages)
  }
}
#endif
