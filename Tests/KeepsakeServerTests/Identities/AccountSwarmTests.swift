#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Registering, pairing, recovery codes, identities, shared containers, rights to them that come and go, removing and
/// deleting, in any order, repeated, raced, and with everything that is no good any more.
@Suite("Ways to a player, in many worlds", .hangLimit) struct AccountSwarmTests {
  /// What a run of so many worlds has to have seen, or it shows little.
  private static let kinds = [
    "join device", "join nothing", "recover device", "recover nothing", "recover refused", "link done", "link taken",
    "link used", "link refused", "signIn device", "signIn unknown", "signIn own", "signIn used", "signIn refused",
    "unlink done", "unlink nothing", "makePairing refused", "makeRecovery refused", "delete done", "remove done",
    "registerShared device", "registerShared refused", "entitle done", "join refused",
  ]

  @Test("every answer, and what is stored, is what the rules say, also if two requests arrive together")
  func worlds() async throws {
    let folder = try TemporaryFolder.inMemory("accounts")
    defer { withExtendedLifetime(folder) {} }
    let contents = folder.url.appendingPathComponent("contents")
    try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
    let database = folder.url.appendingPathComponent("cloud.sqlite")
    let storage = try SQLiteCloudStorage(database: database, contents: contents)
    let cloud = try AccountSwarm.Cloud(storage, in: folder.url)
    var answers: [String: Int] = [:]
    let first = UInt64(TestDepth.firstAccountWorld)
    for seed in first..<first + UInt64(TestDepth.accountWorlds) {
      var swarm = AccountSwarm(seed: seed, cloud: cloud)
      try await swarm.run()
      answers.merge(swarm.answers, uniquingKeysWith: +)
      guard swarm.problems.isEmpty else {
        Issue.record("seed \(seed): \(swarm.problems.joined(separator: "\n"))\n\(swarm.story.joined(separator: "\n"))")
        break
      }
    }
    for kind in Self.kinds { #expect(answers[kind] ?? 0 > 0, "\(kind) in \(answers)") }
    try await storage.close()
  }
}
#endif
