#if Cloud
import ArgumentParser
import Foundation

/// `keepsake manual`: prints the manual page.
struct ManualCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "manual",
    abstract: "Print the manual page of this command.",
    discussion: """
      The page is in the format mdoc, which man reads. It is made from the help of each command. With --json, the same \
      is an object with all commands and their options, for programs.
      """,
    examples: ["keepsake manual > keepsake.1", "keepsake manual | man -l -"])

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let help = try CommandHelp.read()
      guard json else { return Output.bytes(Data(ManualPage(help, date: Date()).text.utf8)) }
      try Output.document(ManualDocument(help))
    }
  }
}
#endif
