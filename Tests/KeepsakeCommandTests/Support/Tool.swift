#if Cloud
import Foundation
import TestSupport

/// The command as a process of its own.
enum Tool {
  static let url = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    .appendingPathComponent("keepsake")

  /// What decides about colors, unset: `env` removes it.
  private static let colorVariables = ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"]

  /// Runs the command in a folder and waits for it. Blocks the thread.
  ///
  /// - Parameter runner: A program, with its arguments, that runs the command.
  static func run(
    _ arguments: [String], in folder: URL? = nil, environment: [String: String] = [:], by runner: [String] = []
  ) throws -> ChildProcess.Ended {
    try ChildProcess.run(
      URL(fileURLWithPath: "/bin/sh"),
      ["-c", "cd \"$0\" && exec \"$@\"", (folder ?? FileManager.default.temporaryDirectory).path, "/usr/bin/env"]
        + colorVariables.flatMap { ["-u", $0] } + environment.map { "\($0.key)=\($0.value)" } + runner + [url.path]
        + arguments)
  }
}
#endif
