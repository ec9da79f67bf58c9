#if Cloud && os(Linux)
import Foundation
import TestSupport
import Testing

@testable import KeepsakeCommand

/// One style of JSON in all commands.
@Suite(.serialized) struct JSONStyleTests {
  /// What a call printed for programs: whole objects, or lines.
  private struct Printed {
    var texts: [String]
    var isLines: Bool
    /// What else it printed.
    var others: [String]
  }

  private static func isProgress(_ line: Substring) -> Bool { line.hasPrefix(#"{"event":"progress","#) }

  private func printed(by ended: TestSupport.ChildProcess.Ended, of command: String, _ arguments: [String]) -> Printed {
    let (output, errors) = (ended.text, ended.errors.split(separator: "\n"))
    let isServer = command == "serve" && !arguments.contains("--print-config")
    func lines(_ text: some Collection<Substring>) -> [String] { text.map { $0 + "\n" } }
    switch command {
    case "wrap":
      let texts = lines(errors.filter { $0.hasPrefix("{") })
      // Standard output is the game's.
      let game = arguments.last == "{}" ? "{}\n" : ""
      return Printed(
        texts: texts, isLines: true,
        others: errors.filter { !$0.hasPrefix("{") }.map(String.init) + (output == game ? [] : [output]))
    case _ where isServer || command == "sync":
      // The log of a server is on standard error.
      let others = command == "serve" ? [] : errors.filter { !Self.isProgress($0) }.map(String.init)
      return Printed(texts: lines(output.split(separator: "\n")), isLines: true, others: others)
    default:
      // The story of the demo is on standard error, and so is the log of a cloud that a command runs.
      let others = ["demo", "bank release", "load"].contains(command) ? [] : errors.filter { !Self.isProgress($0) }
      return Printed(texts: [output], isLines: false, others: others.map(String.init))
    }
  }

  private static let scopes = "read,saves,money,devices,bans,export,delete,webhooks"

  @Test("each subcommand has --json, in one layout, with one name for one thing, paths as given, and nothing besides")
  func everywhere() async throws {
    let leaves = try CommandHelp.read().leaves()
    for (name, help) in leaves {
      #expect(help.arguments?.contains { $0.options.contains("--json") } == true, "keepsake \(name)")
    }
    try await RunningCloud.with(hasWebhook: true) { cloud, folder in
      try JSONCall.fill(folder)
      let key = try Tool.run(
        ["admin", "key", "create", "--data", "../cloud", "--name", "ada", "--scopes", Self.scopes], in: folder)
      try key.output.write(to: folder.appendingPathComponent("admin"))
      let all = JSONCall.all(cloud: cloud)
      var known: [String: String] = [:]
      #expect(Set(all.map(\.command)) == Set(leaves.map(\.name)), "a subcommand without an entry, or one too many")
      var style = JSONStyle()
      var members: [String: Set<String>] = [:]
      for (command, calls) in all {
        for call in calls {
          members[command, default: []].formUnion(try check(call, of: command, in: folder, &style, &known))
        }
      }
      #expect(style.objections.isEmpty, "\(style.objections.joined(separator: "\n"))")
      #expect(style.conflicts.isEmpty, "\(style.conflicts.joined(separator: "\n"))")
      try checkDocument(of: members, names: Set(style.types.keys))
    }
  }

  /// Runs a call, and returns the names of the members of what it printed.
  private func check(
    _ call: JSONCall, of command: String, in folder: URL, _ style: inout JSONStyle, _ known: inout [String: String]
  ) throws -> Set<String> {
    if call.arguments.contains("$OLDEST") { known["$OLDEST"] = try oldest(in: folder) }
    let arguments = call.arguments.map { known[$0] ?? $0 }
    let own = arguments.prefix { $0 != "--" }
    let line = command.split(separator: " ").map(String.init) + own + ["--json"] + arguments.dropFirst(own.count)
    let what = "keepsake \(line.joined(separator: " "))"
    let home = folder.appendingPathComponent("home").path
    let ended = try Tool.run(line, in: folder, environment: ["HOME": home, "XDG_DATA_HOME": home])
    #expect(ended.status == call.status, "\(what): \(ended.status) \(ended.text.prefix(500))\(ended.errors)")
    let printed = printed(by: ended, of: command, arguments)
    #expect(printed.others.isEmpty, "\(what): \(printed.others)")
    #expect(!printed.texts.isEmpty, "\(what): \(ended.text)\(ended.errors)")
    var names: Set<String> = []
    for (number, text) in printed.texts.enumerated() {
      style.check(text, isLine: printed.isLines, of: what)
      let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
      if number == 0 {
        for (name, value) in call.members {
          #expect(object[name] as? String == known[value] ?? value, "\(what): \(name): \(text)")
        }
      }
      // What later calls name is of the player of a cloud.
      if command == "sync" {
        for name in ["player", "device", "version", "pairingCode"] {
          if let text = object[name] as? String { known["$" + name.uppercased()] = text }
        }
      }
      #expect(!printed.isLines || object["event"] is String, "\(what): \(text)")
      if object["event"] as? String != "error" { names.formUnion(object.keys) }
    }
    guard call.status >= 64, !call.isResult else { return names }
    let last = try JSONSerialization.jsonObject(with: Data((printed.texts.last ?? "").utf8)) as? [String: Any]
    let code = (last?["error"] as? [String: Any])?["code"] as? String
    #expect(code == CommandFailure.Kind(rawValue: call.status).map { "\($0)" }, "\(what): \(ended.text)")
    return names
  }

  private func oldest(in folder: URL) throws -> String {
    let history = try Tool.run(["history", "space", "main", "--json"], in: folder)
    return try #require(history.text.matches(of: /"version": "([0-9a-f]{32})"/).last.map { String($0.1) })
  }

  // MARK: The document

  /// The items of the two lists in "JSON" of docs/COMMAND.md: what is described, and how.
  private func items() throws -> [(names: [String], text: String)] {
    let text = try String(contentsOf: Repository.root.appending(path: CommandDocumentTests.document), encoding: .utf8)
    let section = try #require(
      text.components(separatedBy: "\n### JSON\n").last?.components(separatedBy: "\n### ").first)
    let lines = section.replacing("\n  ", with: " ").split(separator: "\n")
    return lines.filter { $0.hasPrefix("- `") }.map { line in
      let parts = line.dropFirst(2).split(separator: ": ", maxSplits: 1)
      return (names(in: parts[0]), parts.count > 1 ? String(parts[1]) : "")
    }
  }

  private func names(in text: some StringProtocol) -> [String] {
    String(text).matches(of: /`([a-zA-Z0-9. -]+)`/).map { String($0.1) }
  }

  /// The members of all events that a command's section lists; what is in parentheses are their values.
  private func events(of command: String) throws -> Set<String> {
    let lines = try #require(CommandDocumentTests.sections()[command]).joined(separator: "\n").replacing(
      "\n  ", with: " ")
    var names: Set<String> = ["event"]
    for line in lines.split(separator: "\n") where line.hasPrefix("- `") && !line.hasPrefix("- `--") {
      let described = String(line.drop { $0 != ":" })
      names.formUnion(self.names(in: described.replacing(/\([^)]*\)/, with: "")))
    }
    return names
  }

  /// Members of which the calls have no example.
  private static let rare: [String: Set<String>] = [
    "app revoke": ["key"], "admin player show": ["parents", "shared"],
    "admin money refund": ["alreadyDone", "balances", "owed", "player", "purchase"], "bank release": ["url"],
    "shard close": ["name"], "shard drain": ["movedCount", "refused", "skippedCount"], "shard hold": ["heldMinutes"],
    "shard list": ["shards"], "shard release": ["heldMinutes"],
    "shard move": ["movedCount", "refused", "skippedCount"], "shard open": ["name"],
    "bank restored": ["epoch"], "doctor": ["needsSecret"], "inspect": ["recordsMessage"],
    // Where a PostgreSQL server is, other tests run it.
    "migrate": [
      "bytes", "contentBytes", "contentCount", "copiedCount", "output", "path", "result", "rowCount",
      "stoppedMilliseconds", "waitingCount",
    ],
    "simulate": ["error"],
    "sync": ["deviceNames", "item"], "wrap": ["beside", "choice", "saveCount"],
  ]

  /// Compares the members of what was printed with the list of the commands, and the names of all that was printed with
  /// the list of the names.
  private func checkDocument(of members: [String: Set<String>], names all: Set<String>) throws {
    var documented: [String: Set<String>] = [:]
    for (described, text) in try items() {
      for name in described {
        if name.hasPrefix("keepsake ") {
          documented[String(name.dropFirst("keepsake ".count)), default: []].formUnion(names(in: text))
        } else {
          let isUsed = name.hasPrefix("...") ? all.contains { $0.hasSuffix(name.dropFirst(3)) } : all.contains(name)
          #expect(isUsed, "nothing is called \(name)")
        }
      }
    }
    for command in ["sync", "wrap"] { documented[command] = try events(of: command) }
    #expect(Set(documented.keys) == Set(members.keys))
    for (command, names) in members.sorted(by: { $0.key < $1.key }) {
      let rare = Self.rare[command, default: []]
      #expect(
        documented[command] == names.union(rare),
        "keepsake \(command): \(names.union(rare).sorted().map { "`\($0)`" }.joined(separator: ", "))")
    }
  }

  // MARK: Usage

  @Test("wrong usage of each subcommand is one error in the same layout, where its results are")
  func wrongUsage() throws {
    var style = JSONStyle()
    for (name, _) in try CommandHelp.read().leaves() {
      let ended = try Tool.run(name.split(separator: " ").map(String.init) + ["--nothing", "--json"])
      let isLine = ["serve", "sync", "wrap"].contains(name)
      let (text, other) = name == "wrap" ? (ended.errors, ended.text) : (ended.text, ended.errors)
      #expect(ended.status == 64 && other.isEmpty, "keepsake \(name): \(other)")
      style.check(text, isLine: isLine, of: "keepsake \(name)")
      let error = try JSONDecoder().decode(Line.self, from: Data(text.utf8))
      #expect(error.error.code == "usage" && error.error.next == "keepsake help \(name) says how it is used")
    }
    #expect(style.objections.isEmpty, "\(style.objections.joined(separator: "\n"))")
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
