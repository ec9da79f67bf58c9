#if Cloud && os(Linux)
import Foundation
import GRDB
import Keepsake
import KeepsakeArchive
import KeepsakeServer
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

// What depends on a cloud, on another process, or on another release.
extension ExitStatusTests {
  private static let player = String(repeating: "0", count: 31) + "1"
  private static let watch = ["--once", "--interval", "20", "--settle", "40"]

  @Test("a cloud that can't be reached ends with 69, and a game runs without it")
  func unreachable() async throws {
    try await filled { folder in
      let nowhere = "http://127.0.0.1:9"
      try check(
        [
          ["sync", "empty", "--cloud", nowhere, "--app-key", "key"] + Self.watch,
          ["load", "--url", nowhere, "--app-key", "key", "--devices", "1", "--seconds", "0.1"],
          ["bank", "release", "--url", nowhere, "--key-file", "key", "--all"],
          ["admin", "player", "show", Self.player, "--url", nowhere, "--key-file", "key"],
        ], 69, in: folder)
      let wrap = ["wrap", "--saves", "empty", "--state", "wrapped", "--cloud", nowhere, "--app-key", "key", "--"]
      try check([wrap + ["true"]], 0, in: folder)
      try check([wrap + ["sh", "-c", "exit 9"]], 9, in: folder)
    }
  }

  @Test("what a cloud doesn't permit ends with 77, and what it doesn't have with 66")
  func refused() async throws {
    try await RunningCloud.with { cloud, folder in
      try Self.fill(folder)
      let wrong = ["--cloud", cloud.url, "--app-key", "wrong-key-of-this-cloud"]
      let right = ["--cloud", cloud.url, "--app-key", cloud.appKey]
      try check(
        [
          ["sync", "empty"] + wrong + Self.watch, ["sync", "empty", "--join", "ABCD2345"] + right + Self.watch,
          ["load", "--url", cloud.url, "--app-key", "wrong-key-of-this-cloud", "--devices", "1", "--seconds", "0.1"],
          ["bank", "release", "--url", cloud.url, "--key-file", "key", "--all"],
          ["admin", "player", "show", Self.player, "--url", cloud.adminURL, "--key-file", "key"],
        ], 77, in: folder)
      let key = try Tool.run(["bank", "key", "--data", "../cloud", "--name", "shop"], in: folder)
      try key.output.write(to: folder.appendingPathComponent("key"))
      try check(
        [
          ["bank", "release", "--url", cloud.url, "--key-file", "key", "--player", Self.player],
          ["bank", "status", "--data", "../cloud", "--player", Self.player],
        ], 66, in: folder)
      // What needs the folder for itself, while the cloud runs.
      try check(
        [
          ["serve", "--data", "../cloud", "--port", "0"], ["bank", "restored", "--data", "../cloud"],
          ["bank", "release", "--data", "../cloud", "--all"],
        ], 75, in: folder)
    }
  }

  @Test("a store that a game has open ends with 75 in each command that changes it, and can be read")
  func inUse() async throws {
    try await filled { folder in
      try check([["export", "space", "main", "a.save"]], 0, in: folder)
      let game = try GameData.open("com.example.space", at: folder.appendingPathComponent("space"))
      let oldest = try #require(try game.saves.history(of: Slot<[Int]>("main")).last)
      try check(
        [
          ["restore", "space", "main", "\(oldest.id)"], ["import", "space", "a.save", "--slot", "other"],
          ["doctor", "space"], ["doctor", "space", "--repair"],
          ["sync", "empty", "--folder", "home", "--state", "space"] + Self.watch,
        ], 75, in: folder)
      try check(
        [
          ["inspect", "space"], ["inspect", "space", "--slot", "main"], ["history", "space"], ["verify", "space"],
          ["scores", "space"], ["export", "space", "main", "b.save"],
          ["diff", "space", "space", "--slot", "main"],
          ["wrap", "--saves", "empty", "--state", "space", "--", "true"],
        ], 0, in: folder)
      try game.close()
    }
  }

  @Test("what a newer version has written ends with 78 in each command that reads it")
  func newer() async throws {
    try await filled { folder in
      func url(_ name: String) -> URL { folder.appendingPathComponent(name) }
      let served = try Tool.run(["serve", "--data", "cloud", "--port", "0", "--until-input-ends"], in: folder)
      #expect(served.status == 0, "\(served.errors)")
      try check(
        [["cloud", "backup", "--data", "cloud", "--to", "a.tar"], ["export", "space", "main", "a.save"]], 0, in: folder)
      let format = try await DatabaseQueue(path: url("space/store.sqlite").path).read {
        try Int.fetchOne($0, sql: "PRAGMA user_version") ?? 0
      }
      for (database, sql) in [
        ("space/store.sqlite", "PRAGMA user_version = \(format + 1)"),
        ("cloud/cloud.sqlite", "INSERT INTO grdb_migrations (identifier) VALUES ('9 from the future')"),
      ] {
        let queue = try DatabaseQueue(path: url(database).path)
        try await queue.write { try $0.execute(sql: sql) }
        try queue.close()
      }
      var archive = [UInt8](try Archive.encode([1]).dropLast(8))
      archive[8] = 2
      let sum = archive.withUnsafeBytes { Checksum.xxh64($0) }
      for shift in stride(from: UInt64(0), to: 64, by: 8) { archive.append(UInt8(truncatingIfNeeded: sum >> shift)) }
      try Data(archive).write(to: url("new.keepsake"))
      try Data(#"{"format":2,"files":[]}"#.utf8).write(to: url("empty/keepsake-assets.json"))
      try check(
        [
          ["inspect", "space"], ["inspect", "space", "--slot", "main"], ["inspect", "new.keepsake"],
          ["diff", "space", "space", "--slot", "main"], ["diff", "new.keepsake", "json"],
          ["convert", "new.keepsake", "a.json"], ["verify", "space"], ["verify", "new.keepsake"],
          ["history", "space"], ["restore", "space", "main", "abcd"], ["export", "space", "main", "b.save"],
          ["import", "space", "a.save"], ["scores", "space"], ["doctor", "space"],
          ["sync", "home", "--folder", "empty", "--state", "space"],
          ["serve", "--data", "cloud", "--port", "0"], ["bank", "status", "--data", "cloud"],
          ["bank", "restored", "--data", "cloud"], ["bank", "release", "--data", "cloud", "--all"],
          ["cloud", "backup", "--data", "cloud", "--to", "b.tar"], ["assets", "verify", "empty"],
        ], 78, in: folder)
    }
  }

  @Test("a result that isn't the best one ends with 1 in each command that has such results")
  func unsound() async throws {
    try await filled { folder in
      try Data(#"{"a": 1}"#.utf8).write(to: folder.appendingPathComponent("other"))
      let database = folder.appendingPathComponent("space/store.sqlite")
      try Data(repeating: 7, count: 20_000).write(to: database)
      let calls = [
        ["diff", "json", "other"], ["verify", "space"], ["doctor", "space"],
        ["assets", "manifest", "empty", "--check"],
        ["simulate", "--seeds", "4", "--planted", "coverUnloaded"],
      ]
      try check(calls, 1, in: folder)
      try check([["assets", "manifest", "empty"]], 0, in: folder)
      try Data("more".utf8).write(to: folder.appendingPathComponent("empty/more"))
      try check([["assets", "verify", "empty"]], 0, in: folder)
      try check([["assets", "manifest", "empty"]], 0, in: folder)
      try Data("less".utf8).write(to: folder.appendingPathComponent("empty/more"))
      try check([["assets", "verify", "empty"]], 1, in: folder)
    }
  }
}
#endif
