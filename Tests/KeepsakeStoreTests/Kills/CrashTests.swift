import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A child process saves continuously and records which commits were acknowledged; a thread of its own kills it.
@Suite(.serialized, .hangLimit) struct CrashTests {
  /// `make kills` sets a thousand.
  static let kills = TestDepth.kills
  /// Kills of one store; then a new one is created, which may be killed while it is created, too.
  static let killsPerStore = 40
  /// A process is killed a moment after a given number of acknowledgements, so that it makes as many commits on a busy
  /// machine.
  static let maximumCommits = 16
  static let maximumMomentMicroseconds: UInt64 = 6_000
  /// Commits that are submitted and not waited for.
  static let maximumPending = 8

  @Test("when the game is killed, no acknowledged save is lost, and no partial one is there")
  func survivesKills() async throws {
    var commits: UInt64 = 0
    var acknowledgements: UInt64 = 0
    var round = 0
    while round < Self.kills {
      let folder = try TemporaryFolder.inMemory()
      let path = folder.url.path
      var last: UInt64 = 0
      for _ in 0..<min(Self.killsPerStore, Self.kills - round) {
        await #expect(processExitsWith: .signal(SIGKILL), "kill \(round)") {
          [path = path as String, round = round as Int] in
          try CrashTests.saveUntilKilled(path: path, seed: UInt64(round))
        }
        let acknowledged = try Self.acknowledged(path)
        // On a copy: the next process has to find the store as the killed one left it.
        let found = try await onThread { try Self.find(path) }
        #expect(found.last >= acknowledged, "kill \(round): \(acknowledged) was acknowledged, \(found.last) is there")
        #expect(found.problems.isEmpty, "kill \(round)")
        last = found.last
        round += 1
      }
      commits += last
      acknowledgements += try Self.acknowledged(path)
    }
    #expect(commits >= UInt64(Self.kills) * 5)
    print("killed \(round) times, \(commits) commits, \(acknowledgements) acknowledged")
  }

  /// The last commit in the store that a kill left, and the problems of that store.
  private static func find(_ path: String) throws -> (last: UInt64, problems: [String]) {
    let copy = try TemporaryFolder.inMemory()
    let original = URL(fileURLWithPath: path).appendingPathComponent("store")
    let url = copy.url.appendingPathComponent("store")
    if FileManager.default.fileExists(atPath: original.path) { try FileManager.default.copyItem(at: original, to: url) }
    let store = try Store.open(at: url)
    let found = try store.read { (try KillWorld.last(in: $0), try KillWorld.problems(in: $0)) }
    try store.close()
    return found
  }

  private static func acknowledged(_ path: String) throws -> UInt64 {
    let file = URL(fileURLWithPath: path).appendingPathComponent("acknowledged")
    guard FileManager.default.fileExists(atPath: file.path) else { return 0 }
    let bytes = try Data(contentsOf: file)
    let whole = bytes.count / 8
    guard whole > 0 else { return 0 }
    return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: (whole - 1) * 8, as: UInt64.self) }
  }

  /// The child process: opens the store and saves until it is killed.
  private static func saveUntilKilled(path: String, seed: UInt64) throws {
    let folder = URL(fileURLWithPath: path)
    var random = SeededRandom(seed: seed)
    let acknowledgements = Shared(0)
    // One process in four is killed by time alone, while the store is still being opened or soon after.
    let isShort = Int.random(in: 0..<4, using: &random) == 0
    let commits = isShort ? 0 : Int.random(in: 1...maximumCommits, using: &random)
    let moment = UInt64.random(
      in: 0..<(isShort ? 5 * maximumMomentMicroseconds : maximumMomentMicroseconds), using: &random)
    _ = KillWorld.world("main", at: 0)  // Made here, because it takes a while in a debug build.
    let killer = Thread {
      while acknowledgements.value < commits { usleep(50) }
      usleep(UInt32(moment))
      kill(getpid(), SIGKILL)
    }
    killer.start()
    let store = try Store.open(at: folder.appendingPathComponent("store"))
    var number = try store.read { try KillWorld.last(in: $0) }
    // Otherwise the next commits would hide that some are gone.
    guard number >= (try acknowledged(path)) else { throw StoreError(.missing, "an acknowledged commit is gone") }
    let file = open(folder.appendingPathComponent("acknowledged").path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    var pending: [PendingCommit<Void>] = []
    while true {
      number += 1
      let commit = try KillWorld.submit(number, to: store)
      commit.observe { [number] result in
        guard case .success = result else { exit(EXIT_FAILURE) }
        withUnsafeBytes(of: number) { _ = write(file, $0.baseAddress, $0.count) }
        acknowledgements.value += 1
      }
      pending.append(commit)
      if pending.count == maximumPending { try pending.removeFirst().wait() }
    }
  }
}
