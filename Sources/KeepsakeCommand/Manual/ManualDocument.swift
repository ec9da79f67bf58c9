#if Cloud
/// What `keepsake manual --json` prints: what the manual page has, for programs.
struct ManualDocument: Encodable {
  struct Argument: Encodable {
    /// As they are typed, such as `-j` and `--json`; empty for an argument without one.
    var names: [String]
    /// What stands for the value; nil for a flag.
    var value: String?
    var standard: String?
    var optional: Bool
    var repeating: Bool
    var text: String
  }
  struct Command: Encodable {
    /// Such as `assets manifest`.
    var command: String
    var summary: String
    var text: String
    var arguments: [Argument]
    var examples: [String]
  }
  struct Status: Encodable {
    var status: Int32
    var message: String
  }
  var commands: [Command]
  var statuses: [Status]

  init(_ help: CommandHelp) {
    commands = help.leaves().map { name, leaf in
      Command(
        command: name, summary: leaf.abstract ?? "", text: leaf.text,
        arguments: (leaf.arguments ?? []).filter { $0.shouldDisplay && !$0.isOfParser }.map(Argument.init),
        examples: leaf.examples)
    }
    statuses = ExitMeaning.all.map { Status(status: $0.status, message: $0.meaning) }
  }
}

extension ManualDocument.Argument {
  fileprivate init(_ argument: CommandHelp.Argument) {
    names = argument.shortOptions + argument.options
    value = argument.kind == "flag" ? nil : argument.valueName ?? ""
    standard = argument.defaultValue
    (optional, repeating, text) = (argument.isOptional, argument.isRepeating, argument.abstract ?? "")
  }
}
#endif
