#if Cloud
import Foundation
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

  @Test(
    "every answer, and what is stored, is what the rules say, also if two requests arrive together",
    arguments: TestStorage.all)
  func worlds(kind: TestStorage) async throws {
    let folder = try TemporaryFolder.inMemory("accounts")
    defer { withExtendedLifetime(folder) {} }
    let answers = try await kind.with { storage in
      let cloud = try AccountSwarm.Cloud(storage, in: folder.url)
      var answers: [String: Int] = [:]
      let first = UInt64(TestDepth.firstAccountWorld)
      // A database that other programs could use, too, takes a hundred times as long.
      let count = kind == .sqlite ? TestDepth.accountWorlds : max(25, TestDepth.accountWorlds / 10)
      for seed in first..<first + UInt64(count) {
        var swarm = AccountSwarm(seed: seed, cloud: cloud)
        try await swarm.run()
        answers.merge(swarm.answers, uniquingKeysWith: +)
        guard swarm.problems.isEmpty else {
          Issue.record(
            "seed \(seed): \(swarm.problems.joined(separator: "\n"))\n\(swarm.story.joined(separator: "\n"))")
          break
        }
      }
      return answers
    }
    for seen in Self.kinds { #expect(answers[seen] ?? 0 > 0, "\(seen) in \(answers)") }
  }
}
#endif
