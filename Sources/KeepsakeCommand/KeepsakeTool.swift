#if Cloud
import ArgumentParser
import KeepsakePlatform
/// The command `keepsake`.
@main
struct KeepsakeTool: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keepsake",
    abstract: "Run a cloud, sync folders of saves, and inspect, convert and repair saved games.",
    discussion: """
      Each subcommand has the option --json. keepsake help SUBCOMMAND has examples, keepsake manual \
      prints the manual page, and keepsake --generate-completion-script bash (or zsh, fish) completions for your shell.

      Exit statuses:

      \(ExitMeaning.text)
      """,
    version: "0.1.0",
    subcommands: [
      DemoCommand.self, ServeCommand.self, CloudCommand.self, MigrateCommand.self, ShardCommand.self, AppCommand.self,
      TeamCommand.self, BankCommand.self, AdminCommand.self, SecretCommand.self, SyncCommand.self,
      WrapCommand.self,
      InspectCommand.self, DiffCommand.self, ConvertCommand.self, VerifyCommand.self,
      HistoryCommand.self, RestoreCommand.self, ExportCommand.self, ImportCommand.self, ScoresCommand.self,
      DoctorCommand.self,
      EstimateCommand.self, AssetsCommand.self, SimulateCommand.self, LoadCommand.self, ManualCommand.self,
      DemoDeviceCommand.self,
      LoadEchoCommand.self,
    ])

  static func main() async {
    GameSignals.rememberStart()
    // The reader of the output, or the other end of a pipe, may go away at any time. That must be an error of one
    // write, and not the end of a sync or of a server.
    signal(SIGPIPE, SIG_IGN)
    let arguments = Array(CommandLine.arguments.dropFirst())
    if let failure = RawArguments.failure(in: RawArguments.all) {
      if ErrorReport.isWanted(in: arguments) {
        Output.failure(ErrorReport(failure), as: jsonForm(of: arguments))
      } else {
        CommandRun.complain(of: failure)
      }
      exit(withError: ExitCode(failure.kind.rawValue))
    }
    do {
      var command = try await asyncParseAsRoot(arguments)
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      exit(withError: Output.failed(after: ExitCode.success))
    } catch {
      if let report = ErrorReport(usage: error, of: arguments) {
        Output.failure(report, as: jsonForm(of: arguments))
        exit(withError: ExitCode(CommandFailure.Kind.usage.rawValue))
      }
      if !(error is ExitCode), exitCode(for: error).isSuccess {
        // The help, the version or a completion script.
        let text = fullMessage(for: error)
        if !text.isEmpty { Output.text(text) }
        exit(withError: Output.failed(after: ExitCode.success))
      }
      exit(withError: Output.failed(after: error))
    }
  }

  private static func jsonForm(of arguments: [String]) -> JSONForm {
    (command(in: arguments).type as? any PrintsLines.Type)?.jsonForm ?? .object
  }

  /// Returns the names with which arguments begin, as far as they are those of subcommands, and the last subcommand.
  static func command(in arguments: some Sequence<String>) -> (path: [String], type: any ParsableCommand.Type) {
    var path: [String] = []
    var type: any ParsableCommand.Type = Self.self
    for name in arguments {
      guard let next = type.configuration.subcommands.first(where: { $0.configuration.commandName == name }) else {
        break
      }
      path.append(name)
      type = next
    }
    return (path, type)
  }
}
#else
import Foundation
/// Replaces the command in a build without the packages that it needs.
@main
struct KeepsakeTool {
  static func main() {
    let hint =
      "This build doesn't contain the command. Build it with the trait Cloud: swift run --traits Cloud keepsake\n"
    FileHandle.standardError.write(Data(hint.utf8))
    // Wrong usage, as in <sysexits.h>.
    exit(64)
  }
}
#endif
