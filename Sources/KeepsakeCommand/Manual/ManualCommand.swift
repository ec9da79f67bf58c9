#if Cloud
import ArgumentParser
import Foundation

/// `keepsake manual`: prints the manual page.
struct ManualCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "manual",
    abstract: "Print the manual page of this command.",
    discussion: "The page is in the format mdoc, which man reads. It is made from the help of each command.",
    examples: ["keepsake manual > keepsake.1", "keepsake manual | man -l -"])

  func run() async throws {
    try await CommandRun.reporting(json: false) {
      Output.bytes(Data(ManualPage(try CommandHelp.read(), date: Date()).text.utf8))
    }
  }
}
#endif
