#if Cloud
import Foundation
import Keepsake
import TestSupport
import Testing

@testable import KeepsakeCommand

/// One style of JSON in all commands.
@Suite struct JSONStyleTests {
  /// The names of members, at any depth, of which some name a slot or a currency of the player.
  private func names(in value: Any) -> Set<String> {
    switch value {
    case let object as [String: Any]: object.reduce(into: Set(object.keys)) { $0.formUnion(names(in: $1.value)) }
    case let list as [Any]: list.reduce(into: []) { $0.formUnion(names(in: $1)) }
    default: []
    }
  }

  @Test("each result is one object whose names are in camel case, and the same thing has the same name")
  func names() async throws {
    try await TemporaryFolder.with { folder in
      let game = try GameData.open("com.example.space", at: folder.appendingPathComponent("space"))
      try game.saves.capture([1, 2], to: Slot<[Int]>("main")).wait()
      try game.close()
      for (name, text) in [("a.json", "{\"a\": 1}"), ("b.json", "{\"a\": 2}")] {
        try Data(text.utf8).write(to: folder.appendingPathComponent(name))
      }
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent("assets"), withIntermediateDirectories: true)
      // The members that each result must have.
      let calls: [(arguments: [String], members: Set<String>)] = [
        (["inspect", "a.json"], ["header", "root"]), (["inspect", "space"], ["path", "slots", "contents"]),
        (["inspect", "a.json", "b.json"], ["files"]), (["diff", "a.json", "b.json"], ["equal", "changes"]),
        (["verify", "space"], ["files", "unsound", "skipped"]),
        (["convert", "a.json", "a.plist"], ["path", "output", "bytes", "outputBytes", "losses"]),
        (["history", "space"], ["slots"]),
        (["export", "space", "main", "a.save"], ["slot", "version", "output", "bytes"]),
        (["inspect", "a.save"], ["save", "archive"]),
        (["import", "space", "a.save", "--slot", "other"], ["slot", "version", "from", "heads"]),
        (["scores", "space"], ["boards"]), (["doctor", "space"], ["path", "state", "findings"]),
        (["estimate", "a.json", "b.json"], ["series"]),
        (["assets", "manifest", "assets"], ["path", "assets", "bytes", "changed"]),
        (["assets", "verify", "assets"], []),
        (["simulate", "--seeds", "1", "--operations", "10"], ["worlds", "failures"]),
        (["serve", "--data", "cloud", "--print-config"], ["settings"]),
      ]
      for (arguments, members) in calls {
        let ended = try Tool.run(arguments + ["--json"], in: folder)
        let what = "keepsake \(arguments.joined(separator: " ")): \(ended.text.prefix(500))\(ended.errors)"
        let object = try #require(
          try JSONSerialization.jsonObject(with: ended.output) as? [String: Any], "\(what)")
        #expect(members.isSubset(of: object.keys), "\(what)")
        for name in names(in: object) where !name.hasPrefix("$") && arguments[0] != "serve" {
          #expect(
            name.wholeMatch(of: /[a-z][A-Za-z0-9]*/) != nil && name.wholeMatch(of: /is[A-Z].*/) == nil,
            "\(name): \(what)")
        }
      }
    }
  }

  @Test("an error of usage is JSON if that is asked for, also by the short option among others")
  func usage() throws {
    for arguments in [["inspect", "--json"], ["inspect", "-j", "--nothing", "a"], ["inspect", "-aj"]] {
      let ended = try Tool.run(arguments)
      #expect(ended.status == 64 && ended.errors.isEmpty, "\(arguments): \(ended.errors)")
      let error = try JSONDecoder().decode(Line.self, from: ended.output)
      #expect(error.event == "error" && error.error.code == "usage")
      #expect(error.error.next == "keepsake help inspect says how it is used")
    }
    for (arguments, known) in [(["bank", "nope"], " bank"), (["nope"], ""), (["bank", "keys"], " bank keys")] {
      let error = try JSONDecoder().decode(Line.self, from: Tool.run(arguments + ["--json"]).output)
      #expect(error.error.next == "keepsake help\(known) says how it is used")
    }
    // Not what a game is given, and not without being asked.
    for arguments in [["wrap", "--nothing", "--", "game", "--json"], ["inspect"]] {
      let ended = try Tool.run(arguments)
      #expect(ended.status == 64 && ended.output.isEmpty && ended.errors.contains("Usage: keepsake"))
    }
    #expect(try Tool.run(["inspect", "--help", "--json"]).text.contains("EXAMPLES:"))
  }

  private struct Line: Decodable {
    struct Body: Decodable {
      var code: String
      var message: String
      var next: String
    }
    var event: String
    var error: Body
  }
}
#endif
