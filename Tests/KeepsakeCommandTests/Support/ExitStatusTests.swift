#if Cloud && os(Linux)
import Foundation
import Keepsake
import TestSupport
import Testing

@testable import KeepsakeCommand

/// One table of exit statuses, the same for all commands.
@Suite struct ExitStatusTests {
  private typealias Call = [String]

  /// In a folder with a store, `space`, and the files `json`, `text` and `existing`. An exception is a call whose
  /// documented status is another one.
  private func filled(_ body: (URL) throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let game = try GameData.open("com.example.space", at: folder.appendingPathComponent("space"))
      try game.saves.capture([1, 2], to: Slot<[Int]>("main")).wait()
      try game.close()
      for (name, text) in [("json", "{}"), ("text", "once upon a time"), ("existing", "x"), ("key", "k")] {
        try Data(text.utf8).write(to: folder.appendingPathComponent(name))
      }
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent("empty"), withIntermediateDirectories: true)
      try body(folder)
    }
  }

  private func check(_ calls: [Call], _ status: Int32, in folder: URL, by runner: [String] = []) throws {
    for call in calls {
      let text = try Tool.run(call, in: folder, by: runner)
      #expect(text.status == status, "keepsake \(call.joined(separator: " ")): \(text.errors)\(text.text.prefix(300))")
      // The same for programs, which get the reason on standard output; verify has it in its report of each file.
      guard status >= 64, !call.contains("--graph"), !["manual", "wrap", "verify"].contains(call[0]) else { continue }
      let json = try Tool.run(Array(call.prefix { $0 != "--" }) + ["--json"], in: folder, by: runner)
      #expect(json.status == status, "keepsake \(call.joined(separator: " ")) --json: \(json.errors)")
      let errors = json.text.split(separator: "\n").compactMap { line in
        let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return object?["event"] as? String == "error" ? object?["error"] as? [String: Any] : nil
      }
      let message = errors.first?["message"] as? String
      #expect(
        errors.count == 1 && message?.isEmpty == false,
        "keepsake \(call.joined(separator: " ")) --json: \(json.text)\(json.errors)")
    }
  }

  @Test("wrong usage ends with 64 in each command")
  func usage() async throws {
    try await filled { folder in
      try check(
        CommandHelp.read().leaves().map { $0.name.split(separator: " ").map(String.init) + ["--nothing"] }, 64,
        in: folder)
      try check(
        [
          ["inspect"], ["nothing"], ["bank", "nothing"], ["diff", "json"], ["diff", "space", "json"],
          ["inspect", "json", "--slot", "main"], ["serve"], ["serve", "--data", "new", "--tls-key", "key"],
          ["serve", "--data", "new", "--host", "0.0.0.0"],
        ], 64, in: folder)
    }
  }

  @Test("what doesn't exist ends with 66 in each command that reads")
  func missing() async throws {
    try await filled { folder in
      try check(
        [
          ["inspect", "gone"], ["verify", "gone"], ["convert", "gone", "a.json"], ["history", "gone"],
          ["history", "space", "gone"], ["restore", "gone", "main", "abcd"], ["restore", "space", "gone", "abcd"],
          ["restore", "space", "main", "0000"], ["export", "gone", "main", "a.save"],
          ["export", "space", "gone", "a.save"], ["import", "space", "gone"],
          ["scores", "gone"], ["scores", "space", "--board", "gone"], ["doctor", "gone"], ["estimate", "gone"],
          ["assets", "manifest", "gone"], ["assets", "verify", "gone"], ["inspect", "space", "--slot", "gone"],
          ["sync", "gone", "--folder", "empty", "--once"], ["inspect", "json", "--secret-file", "gone"],
          ["cloud", "backup", "--data", "gone", "--to", "a.tar"], ["cloud", "verify", "--from", "gone"],
          ["cloud", "restore", "--from", "gone", "--data", "new"], ["bank", "keys", "--data", "gone"],
          ["bank", "key", "--data", "gone", "--name", "shop"],
          ["bank", "remove-key", "--data", "gone", "--name", "shop"],
          ["bank", "restored", "--data", "gone"], ["bank", "status", "--data", "gone"],
          ["bank", "release", "--data", "gone", "--all"], ["secret", "rotate", "--data", "gone"],
          ["secret", "list", "--data", "gone"], ["secret", "forget", "--data", "gone"],
          ["serve", "--data", "new", "--config", "gone"], ["inspect", "empty"], ["diff", "gone", "json"],
          ["diff", "json", "gone"], ["cloud", "backup", "--data", "empty", "--to", "a.tar"],
          ["bank", "status", "--data", "empty"], ["secret", "rotate", "--data", "empty"],
          ["bank", "keys", "--data", "empty"], ["bank", "key", "--data", "empty", "--name", "shop"],
          ["secret", "list", "--data", "empty"], ["secret", "forget", "--data", "empty"],
          ["bank", "remove-key", "--data", "empty", "--name", "shop"],
          ["serve", "--data", "new", "--app-keys-file", "gone"],
          ["serve", "--data", "new", "--tls-certificate", "gone", "--tls-key", "gone"],
        ], 66, in: folder)
      #expect(!FileManager.default.fileExists(atPath: folder.appendingPathComponent("gone").path))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("empty").path).isEmpty)
    }
  }

  @Test("what the system doesn't let the command read ends with 77")
  func denied() async throws {
    try await filled { folder in
      // Root may read everything, unless it has given that up.
      let runner =
        geteuid() == 0 ? ["/usr/bin/setpriv", "--bounding-set=-dac_override,-dac_read_search"] : []
      if geteuid() == 0 { try #require(FileManager.default.isExecutableFile(atPath: runner[0])) }
      for name in ["json", "space", "empty", "key"] { #expect(chmod(folder.appendingPathComponent(name).path, 0) == 0) }
      defer {
        for name in ["json", "space", "empty", "key"] { chmod(folder.appendingPathComponent(name).path, 0o700) }
      }
      try check(
        [
          ["inspect", "json"], ["inspect", "space"], ["verify", "json"], ["verify", "space"],
          ["convert", "json", "a.plist"], ["history", "space"], ["restore", "space", "main", "abcd"],
          ["export", "space", "main", "a.save"], ["scores", "space"], ["doctor", "space"],
          ["estimate", "json"], ["estimate", "empty"], ["assets", "manifest", "empty"], ["assets", "verify", "empty"],
          ["sync", "empty", "--folder", "space", "--once"], ["inspect", "text", "--secret-file", "key"],
          ["cloud", "backup", "--data", "space", "--to", "a.tar"], ["cloud", "verify", "--from", "json"],
          ["cloud", "restore", "--from", "json", "--data", "new"], ["bank", "keys", "--data", "space"],
          ["bank", "restored", "--data", "space"], ["bank", "status", "--data", "space"],
          ["secret", "list", "--data", "space"], ["serve", "--data", "new", "--config", "json"],
          ["diff", "json", "text"],
        ], 77, in: folder, by: runner)
      // A folder that can be read and not written, and one file that can't be read.
      #expect(chmod(folder.appendingPathComponent("empty").path, 0o500) == 0)
      try check([["serve", "--data", "empty", "--port", "0"]], 77, in: folder, by: runner)
      let saves = folder.appendingPathComponent("saves")
      try FileManager.default.createDirectory(at: saves, withIntermediateDirectories: true)
      try Data("x".utf8).write(to: saves.appendingPathComponent("a"))
      #expect(chmod(saves.appendingPathComponent("a").path, 0) == 0)
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent("shared"), withIntermediateDirectories: true)
      let sync = ["sync", "saves", "--folder", "shared", "--once", "--interval", "20", "--settle", "40"]
      let ended = try Tool.run(sync, in: folder, by: runner)
      #expect(ended.status == 77, "\(ended.text)\(ended.errors)")
    }
  }

  @Test("output that can't be written ends with 74, whatever the result is, and a closed pipe is no failure")
  func unwritable() async throws {
    try await filled { folder in
      let full = ["sh", "-c", "exec \"$@\" > /dev/full", "sh"]
      for call in [
        ["inspect", "json"], ["history", "space"], ["manual"], ["verify", "space"], ["estimate", "json"],
        ["verify", "text"], ["--version"], ["help", "inspect"], ["--generate-completion-script", "bash"],
      ] {
        let ended = try Tool.run(call, in: folder, by: full)
        let isFailure = call == ["verify", "text"]
        #expect(
          ended.status == (isFailure ? 65 : 74) && ended.errors.contains("standard output can't be written"),
          "keepsake \(call.joined(separator: " ")): \(ended.status) \(ended.errors)")
      }
      // The reader is gone before the command writes.
      let closed = ["sh", "-c", "{ sleep 0.3; \"$@\"; echo $? > status; } | true", "sh"]
      let ended = try Tool.run(["manual"], in: folder, by: closed)
      let status = try String(contentsOf: folder.appendingPathComponent("status"), encoding: .utf8)
      #expect(status == "0\n" && ended.errors.isEmpty, "\(status) \(ended.errors)")
    }
  }

  @Test("output that exists ends with 73")
  func existing() async throws {
    try await filled { folder in
      try check(
        [
          ["convert", "json", "existing", "--to", "json"], ["export", "space", "main", "existing"],
          ["history", "space", "main", "--graph", "--svg", "existing"],
        ], 73, in: folder)
    }
  }

  @Test("no command writes its output into a store, a synced folder's own folder or a cloud, whatever is allowed")
  func keptApart() async throws {
    try await filled { folder in
      for (name, files) in [("synced/.keepsake", ["folder"]), ("cloud", ["cloud.sqlite", "secret"])] {
        let url = folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(
          at: url.appendingPathComponent("inner"), withIntermediateDirectories: true)
        for file in files { try Data("kept".utf8).write(to: url.appendingPathComponent(file)) }
      }
      let link = folder.appendingPathComponent("link")
      try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder.appendingPathComponent("cloud"))
      let before = try Data(contentsOf: folder.appendingPathComponent("space/store.sqlite"))
      var calls: [Call] = [["cloud", "backup", "--data", "cloud", "--to", "./cloud/cloud.sqlite", "--force"]]
      for output in [
        "space/store.sqlite", "synced/.keepsake/folder", "cloud/cloud.sqlite", "cloud/inner/a", "link/secret",
      ] {
        calls += [
          ["convert", "json", output, "--to", "json", "--force"], ["export", "space", "main", output, "--force"],
          ["cloud", "backup", "--data", "cloud", "--to", output, "--force"],
          ["assets", "manifest", "empty", "--output", output],
          ["load", "--devices", "1", "--plot", output],
        ]
      }
      calls.append(["history", "space", "main", "--graph", "--svg", "space/a.svg"])
      calls.append(["history", "space", "main", "--graph", "--svg", "cloud/a.svg"])
      try check(calls, 65, in: folder)
      #expect(try Data(contentsOf: folder.appendingPathComponent("space/store.sqlite")) == before)
      for name in ["synced/.keepsake/folder", "cloud/cloud.sqlite", "cloud/secret"] {
        #expect(try Data(contentsOf: folder.appendingPathComponent(name)) == Data("kept".utf8), "\(name)")
      }
    }
  }

  @Test("a link that leads nowhere counts as output that exists")
  func danglingLink() async throws {
    try await filled { folder in
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent("cloud"), withIntermediateDirectories: true)
      try Data().write(to: folder.appendingPathComponent("cloud/cloud.sqlite"))
      try FileManager.default.createSymbolicLink(
        at: folder.appendingPathComponent("nowhere"), withDestinationURL: folder.appendingPathComponent("gone"))
      try check(
        [
          ["convert", "json", "nowhere", "--to", "json"], ["export", "space", "main", "nowhere"],
          ["history", "space", "main", "--graph", "--svg", "nowhere"],
          ["cloud", "backup", "--data", "cloud", "--to", "nowhere"],
        ], 73, in: folder)
      #expect(!FileManager.default.fileExists(atPath: folder.appendingPathComponent("gone").path))
    }
  }

  @Test("what is damaged or of unknown format ends with 65, and with 1 where the question is whether it is sound")
  func damaged() async throws {
    try await filled { folder in
      let database = folder.appendingPathComponent("space/store.sqlite")
      try Data(repeating: 7, count: 20_000).write(to: database)
      try check(
        [
          ["inspect", "text"], ["inspect", "space"], ["convert", "text", "a.json"], ["history", "space"],
          ["import", "space", "text"], ["scores", "space"], ["cloud", "verify", "--from", "text"],
          ["cloud", "restore", "--from", "text", "--data", "new"], ["serve", "--data", "new", "--config", "text"],
          ["diff", "text", "json"], ["serve", "--data", "new", "--tls-certificate", "text", "--tls-key", "text"],
        ], 65, in: folder)
      try check([["verify", "space"], ["doctor", "space"]], 1, in: folder)
      try #require(mkfifo(folder.appendingPathComponent("pipe").path, 0o600) == 0)
      try check([["verify", "text"], ["verify", "json"], ["verify", "pipe"], ["estimate", "pipe"]], 65, in: folder)
    }
  }
}
#endif
