#if Cloud
import ArgumentParser
import Foundation

/// A command as it describes itself to tools that make manuals of it.
struct CommandHelp: Decodable {
  struct Argument: Decodable {
    struct Name: Decodable {
      /// `long` or `short`.
      var kind: String
      var name: String

      /// As it is typed.
      var text: String { (kind == "short" ? "-" : "--") + name }
    }
    /// `positional`, `option` or `flag`.
    var kind: String
    var shouldDisplay: Bool
    var isOptional: Bool
    var isRepeating: Bool
    var names: [Name]?
    var valueName: String?
    var defaultValue: String?
    var abstract: String?

    /// The long names as they are typed.
    var options: [String] { (names ?? []).filter { $0.kind == "long" }.map(\.text) }
    /// Whether it is one that the parser adds to every command; an option of such a name takes a value.
    var isOfParser: Bool { kind == "flag" && (options.contains("--help") || options.contains("--version")) }
    /// The short names as they are typed.
    var shortOptions: [String] { (names ?? []).filter { $0.kind == "short" }.map(\.text) }
  }
  var commandName: String
  var shouldDisplay: Bool
  var abstract: String?
  /// With the examples.
  var discussion: String?
  var arguments: [Argument]?
  var subcommands: [CommandHelp]?

  /// What the help says, without the examples.
  var text: String { parts.text }
  /// Command lines, each with what it does after a #, if that is said.
  var examples: [String] { parts.examples }

  private var parts: (text: String, examples: [String]) {
    let all = discussion ?? ""
    guard let title = all.range(of: CommandConfiguration.examplesTitle) else { return (all, []) }
    let examples = all[title.upperBound...].split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    return (String(all[..<title.lowerBound]).trimmingCharacters(in: .whitespacesAndNewlines), examples)
  }

  private struct Dump: Decodable {
    var command: CommandHelp
  }

  /// Reads what `keepsake` says of itself.
  static func read() throws -> CommandHelp {
    try JSONDecoder().decode(Dump.self, from: Data(KeepsakeTool._dumpHelp().utf8)).command
  }

  /// Returns the commands that do something, in the order of the help, by their names, such as `assets manifest`.
  func leaves(under words: [String] = []) -> [(name: String, help: CommandHelp)] {
    let parts = (subcommands ?? []).filter { $0.shouldDisplay && $0.commandName != "help" }
    return parts.flatMap { part in
      let name = words + [part.commandName]
      let below = part.leaves(under: name)
      return below.isEmpty ? [(name.joined(separator: " "), part)] : below
    }
  }
}
#endif
