#if Cloud
import Foundation
import TestSupport
import Testing

@testable import KeepsakeCommand

/// The help of all commands, and what is made of it.
@Suite struct HelpTests {
  @Test("the help of each command ends with examples, which docs/COMMAND.md has, too")
  func examples() throws {
    let sections = try CommandDocumentTests.sections()
    for (name, help) in try CommandHelp.read().leaves() {
      let documented = (sections[name] ?? []).map(String.init).filter {
        $0.hasPrefix("keepsake \(name)") || ($0.hasPrefix("KEEPSAKE_") && $0.contains(" keepsake \(name)"))
      }
      #expect(!help.examples.isEmpty, "keepsake \(name)")
      #expect(help.examples == documented, "keepsake \(name)")
      #expect(help.abstract?.hasSuffix(".") == true && !help.text.contains("EXAMPLES"), "keepsake \(name)")
    }
  }

  @Test("a short option means the same in each command, has a long form, and is the beginning of its name or usual")
  func shortOptions() throws {
    var meanings: [String: String] = [:]
    let usual = ["-n": "--top"]
    for (name, help) in try CommandHelp.read().leaves() {
      for argument in help.arguments ?? [] {
        for short in argument.shortOptions {
          let long = try #require(argument.options.first, "keepsake \(name) \(short)")
          #expect(meanings[short] ?? long == long, "keepsake \(name) \(short)")
          meanings[short] = long
          #expect(usual[short] == long || long.dropFirst(2).first == short.last, "keepsake \(name) \(short)")
        }
        // What most commands have must not lack its short form in one of them.
        for (short, long) in [("-j", "--json"), ("-f", "--force")] where argument.options.contains(long) {
          #expect(argument.shortOptions == [short], "keepsake \(name)")
        }
      }
    }
    #expect(Set(meanings.keys).isSuperset(of: ["-a", "-d", "-f", "-g", "-h", "-j", "-o", "-p", "-s", "-t"]))
  }

  @Test("the manual page has each command with its options and examples, and the exit statuses")
  func manual() throws {
    let help = try CommandHelp.read()
    let page = ManualPage(help, date: Date(timeIntervalSince1970: 86_400 * 365)).text
    #expect(page.hasPrefix(".Dd January 1, 1971\n.Dt KEEPSAKE 1\n"))
    for (name, leaf) in help.leaves() {
      #expect(page.contains("\n.Ss \(name.replacingOccurrences(of: "-", with: "\\-"))\n"), "\(name)")
      for argument in leaf.arguments ?? [] where argument.shouldDisplay && !argument.isOfParser {
        for option in argument.options {
          let text = "Fl " + option.dropFirst().replacingOccurrences(of: "-", with: "\\-")
          #expect(page.contains(text), "\(name) \(option)")
        }
      }
    }
    for (status, _) in ExitMeaning.all { #expect(page.contains("\n.It \(status)\n"), "\(status)") }
    // Nothing that a formatter would take for a request of its own.
    #expect(page.split(separator: "\n").allSatisfy { !$0.hasPrefix("'") && !$0.hasPrefix("..") })
  }

  @Test(
    "a checker of manual pages has nothing to say about it",
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/mandoc")))
  func lint() async throws {
    try await TemporaryFolder.with { folder in
      let page = folder.appendingPathComponent("keepsake.1")
      try Data(ManualPage(try CommandHelp.read(), date: Date()).text.utf8).write(to: page)
      let ended = try ChildProcess.run(
        URL(fileURLWithPath: "/usr/bin/mandoc"), ["-T", "lint", "-W", "warning", page.path])
      #expect(ended.status == 0 && ended.text.isEmpty, "\(ended.text)")
    }
  }

  @Test("completions know each command and its options, for each shell", arguments: ["bash", "zsh", "fish"])
  func completions(_ shell: String) throws {
    let script = try Tool.run(["--generate-completion-script", shell])
    #expect(script.status == 0)
    for (name, _) in try CommandHelp.read().leaves() {
      for word in name.split(separator: " ") { #expect(script.text.contains(word), "\(name)") }
    }
    #expect(script.text.contains(shell == "fish" ? "-l 'no-color'" : "--no-color"))
    guard shell == "bash" else { return }
    let check = try ChildProcess.run(URL(fileURLWithPath: "/bin/bash"), ["-n"], input: script.output)
    #expect(check.status == 0, "\(check.errors)")
  }

  @Test("the exit statuses of the help and of docs/COMMAND.md are the same")
  func statuses() throws {
    let text = try String(contentsOf: Repository.root.appending(path: "docs/COMMAND.md"), encoding: .utf8)
    let documented = Set(text.matches(of: /\n\| ([0-9]+) \|/).compactMap { Int32($0.1) })
    #expect(documented == Set(ExitMeaning.all.map(\.status)))
    let failures = (0...255 as ClosedRange<Int32>).filter { CommandFailure.Kind(rawValue: $0) != nil }
    #expect(failures.count >= 8 && documented == Set([0, 1] + failures))
  }
}
#endif
