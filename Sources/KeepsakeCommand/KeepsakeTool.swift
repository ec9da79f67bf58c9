#if Cloud
import ArgumentParser
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The command `keepsake`.
@main
struct KeepsakeTool: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keepsake",
    abstract: "Run a cloud, sync folders of saves, and inspect, convert and repair saved games.",
    discussion: """
      Commands that print a result have the option --json. Exit statuses follow sysexits.h: 64 wrong usage, 65 damaged \
      or unknown input, 66 not found, 69 the cloud can't be reached, 73 the output exists, 74 disk error, 75 in use or \
      stopped early, 77 not permitted, 78 written by a newer version. diff, verify, doctor and assets end with 1 for \
      "different" or "not sound", and diff with 2 if it could not compare.

      Completions for your shell: keepsake --generate-completion-script bash (or zsh, fish).
      """,
    version: "0.1.0",
    subcommands: [
      DemoCommand.self, ServeCommand.self, CloudCommand.self, BankCommand.self, SecretCommand.self, SyncCommand.self,
      WrapCommand.self,
      InspectCommand.self, DiffCommand.self, ConvertCommand.self, VerifyCommand.self,
      HistoryCommand.self, RestoreCommand.self, ExportCommand.self, ImportCommand.self, ScoresCommand.self,
      DoctorCommand.self,
      EstimateCommand.self, AssetsCommand.self, SimulateCommand.self, LoadCommand.self, DemoDeviceCommand.self,
      LoadEchoCommand.self,
    ])

  static func main() async {
    GameSignals.rememberStart()
    // The reader of the output, or the other end of a pipe, may go away at any time. That must be an error of one
    // write, and not the end of a sync or of a server.
    signal(SIGPIPE, SIG_IGN)
    await self.main(nil)
  }
}
#else
import Foundation
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

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
