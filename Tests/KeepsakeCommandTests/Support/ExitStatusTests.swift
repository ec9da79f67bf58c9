#if Cloud && os(Linux)
import Foundation
import Keepsake
import TestSupport
import Testing

@testable import KeepsakeCommand

/// One table of exit statuses, the same for all commands.
@Suite struct ExitStatusTests {
  typealias Call = [String]

  /// In a folder with a store, `space`, and the files `json`, `text` and `existing`. An exception is a call whose
  /// documented status is another one.
  func filled(_ body: (URL) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      try Self.fill(folder)
      try await body(folder)
    }
  }

  static func fill(_ folder: URL) throws {
    let game = try GameData.open("com.example.space", at: folder.appendingPathComponent("space"))
    try game.saves.capture([1, 2], to: Slot<[Int]>("main")).wait()
    try game.close()
    for (name, text) in [("json", "{}"), ("text", "once upon a time"), ("existing", "x"), ("key", "k")] {
      try Data(text.utf8).write(to: folder.appendingPathComponent(name))
    }
    for name in ["empty", "home"] {
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent(name), withIntermediateDirectories: true)
    }
  }

  func check(_ calls: [Call], _ status: Int32, in folder: URL, by runner: [String] = []) throws {
    let home = folder.appendingPathComponent("home").path
    let environment = ["HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home]
    for call in calls {
      let what = "keepsake \(call.joined(separator: " "))"
      let text = try Tool.run(call, in: folder, environment: environment, by: runner)
      #expect(text.status == status, "\(what): \(text.errors)\(text.text.prefix(300))")
      // The same for programs, which get the reason where the result would be; verify has it in its report of each
      // file.
      guard status >= 64, !call.contains("--graph"), call[0] != "verify" else { continue }
      let own = call.prefix { $0 != "--" }
      let json = try Tool.run(
        own + ["--json"] + call.dropFirst(own.count), in: folder, environment: environment, by: runner)
      #expect(json.status == status, "\(what) --json: \(json.errors)")
      let isLines = KeepsakeTool.command(in: call).type is any PrintsLines.Type
      let printed = call[0] == "wrap" ? json.errors : json.text
      let errors = (isLines ? printed.split(separator: "\n").map(String.init) : [printed]).compactMap { text in
        let object = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        return object?["event"] as? String == "error" ? object?["error"] as? [String: Any] : nil
      }
      let (code, message) = (errors.first?["code"] as? String, errors.first?["message"] as? String)
      #expect(
        errors.count == 1 && message?.isEmpty == false
          && code == CommandFailure.Kind(rawValue: status).map { "\($0)" },
        "\(what) --json: \(json.text)\(json.errors)")
    }
  }

  /// Calls of the commands of the studio.
  private static func administration(data: String, key: String) -> [Call] {
    let (player, other) = (String(repeating: "1", count: 32), String(repeating: "2", count: 32))
    let why = ["--reason", "x"]
    let asking: [Call] = [
      ["player", "find", "--device", other], ["player", "show", player], ["player", "ban", player] + why,
      ["player", "unban", player], ["player", "export", player, "--output", "player.tar"],
      ["player", "delete", player, "--yes"], ["save", "list", player], ["save", "show", player, other],
      ["save", "diff", player, other, other], ["save", "restore", player, other] + why, ["money", "show", player],
      ["money", "grant", player, "1", "gems"] + why, ["money", "charge", player, "1", "gems"] + why,
      ["money", "refund", player, other] + why, ["device", "list", player], ["device", "remove", player, other],
      ["device", "clear", player, other], ["webhook", "list"], ["webhook", "dead", "shop"],
      ["webhook", "retry", "shop"],
    ]
    let local: [Call] = [
      ["key", "create", "--name", "ada", "--scopes", "read"], ["key", "list"], ["key", "revoke", "--name", "ada"],
      ["audit"],
    ]
    let address = ["--url", "http://127.0.0.1:9", "--key-file", key]
    return asking.map { ["admin"] + $0 + address } + local.map { ["admin"] + $0 + ["--data", data] }
  }

  /// Calls of the commands of apps and teams.
  private static func apps(data: String) -> [Call] {
    let apps = [["create"], ["rotate"], ["revoke"]].map { ["app"] + $0 + ["--name", "dungeon"] } + [["app", "list"]]
    let teams = [
      ["create", "studio"], ["list"], ["add", "studio", "dungeon"], ["remove", "studio", "dungeon"],
      ["share", "studio", "studio.coins"], ["grant", "studio", "studio.coins", "dungeon"],
      ["withdraw", "studio", "studio.coins", "dungeon"],
    ].map { ["team"] + $0 }
    return (apps + teams).map { $0 + ["--data", data] }
  }

  /// They read databases, and no file.
  private static let ofShards: Set<String> = [
    "shard close", "shard drain", "shard hold", "shard list", "shard move", "shard open", "shard release",
  ]

  /// Checks that calls name each subcommand, except those that can't end so.
  func checkCoverage(of calls: [Call], except others: Set<String>) throws {
    let named = Set(calls.map { KeepsakeTool.command(in: $0).path.joined(separator: " ") })
    let all = Set(try CommandHelp.read().leaves().map(\.name))
    #expect(named.union(others) == all && named.isDisjoint(with: others), "\(all.subtracting(named).sorted())")
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
      let calls =
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
          ["wrap", "--game", "Game", "--manifest", "gone", "--", "true"],
          ["wrap", "--saves", "empty", "--state", "wrapped", "--", "no-such-program"],
          ["verify", "empty"], ["estimate", "empty"],
          ["migrate", "--from", "gone", "--to", "postgres://127.0.0.1:1/cloud"],
        ] + Self.apps(data: "gone") + Self.apps(data: "empty")
      try check(calls + Self.administration(data: "gone", key: "gone"), 66, in: folder)
      try check(Self.administration(data: "empty", key: "gone"), 66, in: folder)
      // They read nothing that is named.
      try checkCoverage(
        of: calls + Self.administration(data: "gone", key: "gone"),
        except: Self.ofShards.union(["demo", "load", "manual", "simulate"]))
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
      try check([["export", "space", "main", "a.save"]], 0, in: folder)
      for name in ["json", "space", "empty", "key"] { #expect(chmod(folder.appendingPathComponent(name).path, 0) == 0) }
      defer {
        for name in ["json", "space", "empty", "key"] { chmod(folder.appendingPathComponent(name).path, 0o700) }
      }
      let calls =
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
          ["diff", "json", "text"], ["import", "space", "a.save"],
          ["import", "home", "json"],
          ["bank", "key", "--data", "space", "--name", "shop"],
          ["bank", "remove-key", "--data", "space", "--name", "shop"],
          ["bank", "release", "--data", "space", "--all"], ["secret", "rotate", "--data", "space"],
          ["secret", "forget", "--data", "space"], ["load", "--url", "http://192.0.2.1:1", "--app-key", "key"],
          ["wrap", "--saves", "home/saves", "--state", "wrapped", "--", "/etc/passwd"],
          ["migrate", "--from", "space", "--to", "postgres://127.0.0.1:1/cloud"],
        ] + Self.apps(data: "space")
      let administration = Self.administration(data: "space", key: "key")
      try check(calls + administration, 77, in: folder, by: runner)
      try checkCoverage(of: calls + administration, except: Self.ofShards.union(["demo", "manual", "simulate"]))
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

  @Test("output that can't be written ends with 74, whatever the result is")
  func unwritable() async throws {
    try await filled { folder in
      let full = ["sh", "-c", "exec \"$@\" > /dev/full", "sh"]
      for call in [
        ["inspect", "json"], ["history", "space"], ["manual"], ["verify", "space"], ["estimate", "json"],
        ["verify", "text"], ["--version"], ["help", "inspect"], ["--generate-completion-script", "bash"],
        ["convert", "json", "-", "--to", "xml"],
      ] {
        let ended = try Tool.run(call, in: folder, by: full)
        let isFailure = call == ["verify", "text"]
        #expect(
          ended.status == (isFailure ? 65 : 74) && ended.errors.contains("standard output can't be written"),
          "keepsake \(call.joined(separator: " ")): \(ended.status) \(ended.errors)")
      }
    }
  }

  @Test("a reader of the output that is gone changes no command's status, and is nothing to speak of")
  func closedPipe() async throws {
    try await filled { folder in
      // A pipe whose reading end is closed before the command begins.
      let script = """
        p=$(mktemp -u) && mkfifo "$p" && exec 3<>"$p" 4>"$p" && rm "$p" && exec 3<&- && exec "$@" >&4 4>&-
        """
      let closed = ["sh", "-c", script, "sh"]
      var calls: [Call] = [
        ["--version"], ["help"], ["help", "inspect"], ["--generate-completion-script", "zsh"], ["manual"],
        ["inspect", "json"], ["inspect", "space"], ["inspect", "json", "text"], ["diff", "json", "json"],
        ["verify", "space"], ["verify", "text"], ["verify", "space", "text"], ["history", "space"],
        ["scores", "space"],
        ["history", "space", "main", "--graph"], ["history", "space", "main", "--graph", "--svg", "a.svg"],
        ["export", "space", "main", "a.save"], ["import", "space", "a.save"], ["doctor", "space"],
        ["estimate", "json"],
        ["assets", "manifest", "empty"], ["assets", "verify", "empty"], ["simulate", "--seeds", "1"],
        ["inspect", "gone"],
        ["sync", "saves", "--folder", "empty", "--once", "--interval", "10", "--settle", "10"],
        ["wrap", "--saves", "saves", "--folder", "empty", "--state", "wrapped", "--settle", "10", "--", "true"],
      ]
      calls += ["json", "xml", "binary", "keyed", "archive"].map { ["convert", "json", "-", "--to", $0] }
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent("saves"), withIntermediateDirectories: true)
      try Data("x".utf8).write(to: folder.appendingPathComponent("saves/a"))
      let failing: [Call: Int32] = [
        ["verify", "text"]: 65, ["verify", "space", "text"]: 65, ["inspect", "json", "text"]: 65,
        ["inspect", "gone"]: 66,
      ]
      for call in calls {
        for options in [[], ["--json"]] where options.isEmpty || !Self.isWithoutJSON(call) {
          for file in ["a.svg", "a.save"] where call.last == file && call[0] != "import" {
            try? FileManager.default.removeItem(at: folder.appendingPathComponent(file))
          }
          let ended = try Tool.run(call + options, in: folder, by: closed)
          #expect(
            ended.status == failing[call] ?? 0 && !ended.errors.contains("standard output"),
            "keepsake \((call + options).joined(separator: " ")): \(ended.status) \(ended.errors)")
        }
      }
    }
  }

  private static func isWithoutJSON(_ call: Call) -> Bool {
    call[0].hasPrefix("-") || ["help", "wrap"].contains(call[0]) || call.contains("--graph") || call.contains("-")
  }

  @Test("only one place writes to standard output and error, and decides what it means if that can't be done")
  func oneOutput() throws {
    // In Unicode's own sense, there is no boundary of words in "Error.write".
    let writes = /FileHandle\.standard(Output|Error)\b|\bprint\(|\bfputs\(|\bfwrite\(|\bputs\(/
      .wordBoundaryKind(.simple)
    let sources = Repository.root.appendingPathComponent("Sources/KeepsakeCommand")
    let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
    var writers: Set<String> = []
    for case let file as URL in files where file.pathExtension == "swift" {
      if try String(contentsOf: file, encoding: .utf8).contains(writes) { writers.insert(file.lastPathComponent) }
    }
    // The tool itself stands for the command in a build without it.
    #expect(writers == ["Output.swift", "KeepsakeTool.swift"])
  }

  @Test("an argument that isn't UTF-8 is wrong usage in every command, whatever file it names, and its bytes are shown")
  func notUnicode() async throws {
    try await filled { folder in
      // The name is é in Latin-1, as old file systems have it.
      let runner = ["sh", "-c", "f=$(printf 'caf\\351'); printf '{}' > \"$f\"; exec \"$@\" \"$f\"", "sh"]
      for call in [
        ["inspect"], ["diff", "json"], ["verify", "json"], ["convert", "json", "--to", "json"], ["history"], ["doctor"],
        ["estimate"], ["sync", "empty", "--folder"], ["wrap", "--saves"], ["serve", "--data"], ["help"],
        ["inspect", "--"],
      ] {
        let ended = try Tool.run(call, in: folder, by: runner)
        #expect(
          ended.status == 64 && ended.errors.contains("argument \(call.count + 1) isn't valid UTF-8: caf\\xE9\n"),
          "keepsake \(call.joined(separator: " ")): \(ended.status) \(ended.errors)")
        #expect(ended.errors.contains("ln -s"))
      }
      let json = try Tool.run(["inspect", "--json"], in: folder, by: runner)
      let object = try #require(try JSONSerialization.jsonObject(with: Data(json.text.utf8)) as? [String: Any])
      let error = try #require(object["error"] as? [String: Any])
      #expect(json.status == 64 && error["code"] as? String == "usage" && json.errors.isEmpty)
      #expect(error["message"] as? String == "argument 3 isn't valid UTF-8: caf\\xE9")
      // What is said of it can be done.
      let linked = ["sh", "-c", "f=$(printf 'caf\\351'); ln -s \"$f\" linked; exec \"$@\" linked", "sh"]
      #expect(try Tool.run(["inspect"], in: folder, by: linked).status == 0)
    }
  }

  @Test("arguments that aren't UTF-8 are found wherever they are, and shown as far as they can be")
  func rawArguments() {
    func message(_ arguments: [[UInt8]]) -> String? { RawArguments.failure(in: arguments)?.message }
    func bytes(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }
    #expect(message(bytes("inspect", "é😀\u{FFFD}")) == nil && message([]) == nil)
    #expect(message([[0xFF]]) == "argument 1 isn't valid UTF-8: \\xFF")
    #expect(
      message(bytes("verify", "é") + [[0x61, 0xC3, 0x28, 0xED, 0xA0, 0x80, 0x0A]])
        == "argument 3 isn't valid UTF-8: a\\xC3(\\xED\\xA0\\x80\n")
    #expect(message(bytes("verify", "--") + [[0x80]]) != nil)
    #expect(message(bytes("wrap", "--", "game") + [[0x80]]) == nil, "it is the game's")
    #expect(message(bytes("wrap", "--saves") + [[0x80]] + bytes("--", "game")) != nil)
    #expect((message([[UInt8](repeating: 0xFE, count: 1 << 20)]) ?? "").count < 1_000)
    #expect(RawArguments.bytes(of: ["a\u{FFFD}"], in: bytes("wrap", "--") + [[0x61, 0x80]]) == [[0x61, 0x80]])
    #expect(RawArguments.bytes(of: ["game"], in: bytes("other")) == bytes("game"))
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
