#if Cloud
import Foundation

/// The manual page of a command, made from its help, in mdoc.
struct ManualPage {
  let text: String

  /// - Parameter date: The day that is given at the foot of the page, in UTC.
  init(_ command: CommandHelp, date: Date) {
    let name = command.commandName
    var lines = [
      ".Dd \(Self.day(date))", ".Dt \(name.uppercased()) 1", ".Os", ".Sh NAME", ".Nm \(name)",
      ".Nd \(Self.plain(Self.unstopped(command.abstract ?? "")))", ".Sh SYNOPSIS", ".Nm", ".Ar command",
      ".Op Ar options",
      ".Nm", ".Cm help", ".Op Ar command", ".Sh DESCRIPTION",
    ]
    lines += Self.paragraphs(command.text) + [".Sh COMMANDS"]
    for (name, leaf) in command.leaves() { lines += Self.section(name, leaf) }
    lines.append(".Sh ENVIRONMENT")
    lines += Self.list(Self.environment.map { (".It Ev \($0.name)", $0.text) })
    lines.append(".Sh EXIT STATUS")
    lines += Self.list(ExitMeaning.all.map { (".It \($0.status)", $0.meaning + ".") })
    text = lines.joined(separator: "\n") + "\n"
  }

  private static let environment: [(name: String, text: String)] = [
    ("NO_COLOR", "If it is set, and not empty, nothing is printed in colors."),
    (
      "CLICOLOR_FORCE",
      "If it is set, and neither empty nor 0, colors are printed even if standard output is not a terminal."
    ),
    ("CLICOLOR", "If it is 0, nothing is printed in colors unless CLICOLOR_FORCE asks for them."),
    ("TERM", "If it is dumb, or not set, nothing is printed in colors unless CLICOLOR_FORCE asks for them."),
    ("COLUMNS", "The width of the terminal, if the system doesn't say it."),
    ("KEEPSAKE_*", "Settings of keepsake serve, such as KEEPSAKE_PORT for its option --port."),
  ]

  // MARK: Commands

  private static func section(_ name: String, _ command: CommandHelp) -> [String] {
    // --help and the parser's own --version are described once.
    let arguments = (command.arguments ?? []).filter { $0.shouldDisplay && !$0.isOfParser }
    var lines = [".Ss \(plain(name))", ".Nm keepsake", ".Cm \(plain(name))"]
    lines += arguments.map { argument in
      let dots = argument.isRepeating ? " ..." : ""
      let synopsis = argument.names.map { names in
        // The long name, which explains itself.
        "Fl \(flag(names.last { $0.kind == "long" } ?? names[0]))" + value(argument)
      }
      let part = (synopsis ?? "Ar \(argument.valueName ?? "")") + dots
      return argument.isOptional ? ".Op \(part)" : ".\(part)"
    }
    lines += [".Pp"] + paragraphs(command.abstract ?? "")
    if !command.text.isEmpty { lines += [".Pp"] + paragraphs(command.text) }
    lines += list(
      arguments.map { argument in
        let names = (argument.names ?? []).sorted { $0.kind == "short" && $1.kind != "short" }
        let title =
          names.isEmpty
          ? "Ar \(argument.valueName ?? "")" : names.map { "Fl \(flag($0))" }.joined(separator: " , ") + value(argument)
        let standard = argument.defaultValue.map { " The default is \($0)." } ?? ""
        return (".It " + title, (argument.abstract ?? "") + standard)
      })
    guard !command.examples.isEmpty else { return lines }
    return lines + [".Pp", "Examples:", ".Bd -literal -offset indent"] + command.examples.map(plain) + [".Ed"]
  }

  private static func flag(_ name: CommandHelp.Argument.Name) -> String { plain(String(name.text.dropFirst())) }

  private static func value(_ argument: CommandHelp.Argument) -> String {
    argument.kind == "option" ? " Ar \(plain(argument.valueName ?? ""))" : ""
  }

  private static func list(_ items: [(title: String, text: String)]) -> [String] {
    items.isEmpty
      ? [] : [".Bl -tag -width Ds"] + items.flatMap { [$0.title] + paragraphs($0.text) } + [".El"]
  }

  // MARK: Text

  /// Shorter than what checkers of manuals complain about.
  private static let longestLine = 76

  /// Paragraphs, and lines that are indented as they are, each sentence on a line of its own.
  private static func paragraphs(_ text: String) -> [String] {
    var lines: [String] = []
    var isLiteral = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("  ") != isLiteral, !line.isEmpty {
        // A display has space above it anyway.
        if !isLiteral, lines.last == ".Pp" { lines.removeLast() }
        lines.append(isLiteral ? ".Ed" : ".Bd -literal -offset indent")
        isLiteral.toggle()
      }
      if isLiteral {
        lines += line.isEmpty ? [] : [plain(line.trimmingCharacters(in: .whitespaces))]
      } else {
        lines += line.isEmpty ? [".Pp"] : wrapped(line)
      }
    }
    return lines + (isLiteral ? [".Ed"] : [])
  }

  private static func wrapped(_ text: Substring) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      if !line.isEmpty, line.count + word.count + 1 > longestLine || line.hasSuffix(".") || line.hasSuffix(":") {
        lines.append(plain(line))
        line = ""
      }
      line += line.isEmpty ? String(word) : " " + word
    }
    return lines + (line.isEmpty ? [] : [plain(line)])
  }

  /// Text that means only itself: neither an escape nor, at the beginning of a line, a request.
  private static func plain(_ text: some StringProtocol) -> String {
    let escaped = text.replacingOccurrences(of: "\\", with: "\\e").replacingOccurrences(of: "-", with: "\\-")
    return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
  }

  private static func unstopped(_ text: String) -> String { text.hasSuffix(".") ? String(text.dropLast()) : text }

  private static func day(_ date: Date) -> String {
    let style = Date.VerbatimFormatStyle(
      format: "\(month: .wide) \(day: .defaultDigits), \(year: .defaultDigits)", locale: Locale(identifier: "en_US"),
      timeZone: .gmt, calendar: Calendar(identifier: .gregorian))
    return date.formatted(style)
  }
}
#endif
