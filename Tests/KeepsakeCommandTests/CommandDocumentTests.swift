#if Cloud
import Foundation
import TestSupport
import Testing

@testable import KeepsakeCommand

/// Compares docs/COMMAND.md with the command, as it describes itself to tools that generate manuals.
@Suite struct CommandDocumentTests {
  static let document = "docs/COMMAND.md"
  /// Options that are described once, in "Common options". A subcommand that has them names them after "Also:".
  static let common: Set<String> = ["--json", "--no-color", "--secret-file", "--player"]

  /// The options of each subcommand that has no further subcommands, by its name, such as `assets manifest`.
  static func options() throws -> [String: Set<String>] {
    let found = try CommandHelp.read().leaves().map { name, help in
      let own = (help.arguments ?? []).filter { $0.shouldDisplay && !$0.isOfParser }
      return (name, Set(own.flatMap(\.options)))
    }
    return Dictionary(uniqueKeysWithValues: found)
  }

  /// The lines under each heading "### keepsake NAME".
  static func sections() throws -> [String: [Substring]] {
    var sections: [String: [Substring]] = [:]
    var name: String?
    for line in try String(contentsOf: Repository.root.appending(path: document), encoding: .utf8).split(
      separator: "\n")
    {
      if line.hasPrefix("#") {
        name = line.wholeMatch(of: /### keepsake (.+)/).map { String($0.1) }
        if let name { sections[name] = [] }
      } else if let name {
        sections[name]?.append(line)
      }
    }
    return sections
  }

  @Test("docs/COMMAND.md has a section for each subcommand, and for no other")
  func subcommands() throws {
    let options = try Self.options()
    #expect(options.count > 10)
    #expect(Set(try Self.sections().keys) == Set(options.keys))
  }

  @Test("docs/COMMAND.md has a line for each option of each subcommand, and for no other")
  func options() throws {
    let sections = try Self.sections()
    for (name, options) in try Self.options() {
      let lines = sections[name] ?? []
      var described = Set(lines.compactMap { $0.prefixMatch(of: /- `(--[a-z-]+)/).map { String($0.1) } })
      let text = lines.joined(separator: " ")
      if let also = text.firstMatch(of: /Also: ((?:`--[a-z-]+`(?:, )?)+)/) {
        described.formUnion(also.1.matches(of: /`(--[a-z-]+)`/).map { String($0.1) }.filter(Self.common.contains))
      }
      #expect(described == options, "keepsake \(name)")
    }
  }

  @Test("docs/COMMAND.md has an example of each subcommand, with options that it has")
  func examples() throws {
    let options = try Self.options()
    for (name, lines) in try Self.sections() {
      let uses = lines.filter { $0.hasPrefix("keepsake \(name)") }
      #expect(!uses.isEmpty, "keepsake \(name)")
      for use in uses {
        let used = Set(use.matches(of: /--[a-z-]+/).map { String($0.0) })
        #expect(used.isSubset(of: options[name] ?? []), "\(use)")
      }
    }
  }
}
#endif
