#if Cloud && os(Linux)
import Foundation
import Glibc
import GRDB
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeServer

/// A process that saves and prunes in a folder until it is killed: this test program again.
private enum Pruning {
  static let variable = "KEEPSAKE_TEST_PRUNING"
  static let log = "acknowledged"

  static func process(on data: URL) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["--testing-library", "swift-testing", "--filter", "PruningProcessTests"]
    process.environment = ProcessInfo.processInfo.environment.merging([variable: data.path], uniquingKeysWith: { $1 })
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }
}

struct PruningProcessTests {
  @Test(
    "saves and prunes in a folder until it is killed or its test has ended, for another test",
    .partOfAnotherTest(where: ProcessInfo.processInfo.environment[Pruning.variable] != nil))
  func prune() async throws {
    let path = try #require(ProcessInfo.processInfo.environment[Pruning.variable])
    let folder = URL(fileURLWithPath: path)
    var lab = try PruningLab(in: folder, players: 1)
    (lab.rules.windowMilliseconds, lab.rules.stepMilliseconds, lab.rules.history) = (0, 1, nil)
    lab.rules.rememberedMilliseconds = 10 * 3_600_000
    lab.now = Int64(Date().timeIntervalSince1970 * 1_000)
    lab.random = SeededGenerator(seed: UInt64(lab.now))
    let log = try FileHandle(forWritingTo: folder.appendingPathComponent(Pruning.log))
    try log.seekToEnd()
    let parent = getppid()
    // Everything that a process before it has left.
    try await lab.sync(0)
    // A test that crashed can't kill it.
    while parent != 1, getppid() == parent {
      for _ in 0..<3 {
        lab.now += 3_600_000
        let id = lab.save(0)
        try await lab.sync(0)
        try log.write(contentsOf: Data("\(id)\n".utf8))
      }
      try await lab.prune()
    }
  }
}

@Suite("Prunings that are killed")
struct PruningKillTests {
  @Test("a kill at any moment of a pruning loses nothing that was acknowledged, and the next process goes on")
  func kills() async throws {
    try await TemporaryFolder.with { folder in
      let log = folder.appendingPathComponent(Pruning.log)
      try Data().write(to: log)
      for round in 0..<6 {
        let before = try Data(contentsOf: log).count
        let process = try Pruning.process(on: folder)
        // Another moment in each round.
        try await until("the process saves and prunes") {
          try Data(contentsOf: log).count > before + 33 * (5 + 7 * round) || !process.isRunning
        }
        #expect(process.isRunning, "the process has ended by itself")
        Glibc.kill(process.processIdentifier, SIGKILL)
        try await until("the process has ended") { !process.isRunning }
        try await check(folder, acknowledged: String(decoding: Data(contentsOf: log), as: UTF8.self))
      }
    }
  }

  private func check(_ folder: URL, acknowledged: String) async throws {
    let ids = acknowledged.split(separator: "\n").compactMap { VersionID(String($0)) }
    let storage = try SQLiteCloudStorage(
      database: folder.appendingPathComponent("cloud.sqlite"), contents: folder.appendingPathComponent("contents"))
    let last = try #require(ids.last)
    var reads = ReadSet()
    (reads.versions, reads.slots, reads.wholeRoom) = ([last], [ExactText("main")], true)
    let snapshot = try await storage.load(reads, of: PruningLab.container)
    let heads = try #require(snapshot.heads[ExactText("main")])
    #expect(heads.count == 1)
    // The last save that was acknowledged, or the one after it.
    let head = try #require(heads.first.flatMap { snapshot.versions[$0]?.record })
    #expect(head.id == last || head.covers.contains(last))
    for hash in head.contents {
      var next: ContentHash? = hash
      while let content = next {
        let found = snapshot.room.contents[content]
        #expect(found != nil)
        next = found?.base
      }
    }
    try await PruningLab.checkDatabase(storage)
    let versions = try await storage.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM version") ?? 0 }
    #expect(versions < 60, "nothing was pruned")
    try await storage.close()
  }
}
#endif
