#if Cloud
import Foundation
import KeepsakePlatform
import KeepsakeReplication

/// Asks for a recovery code, which must not be on a command line, where other users of the machine see it.
enum RecoveryPrompt {
  /// At a terminal: how often a code with a mistake can be typed.
  private static let attempts = 5

  /// Reads a line of standard input. At a terminal, says which group has a mistake and asks again.
  ///
  /// - Throws: `CommandFailure` if there is no line, or it isn't a code.
  static func read() throws -> RecoveryCode {
    let asks = isatty(STDIN_FILENO) == 1
    for attempt in 1... {
      if asks { Output.errorBytes(Data("recovery code: ".utf8)) }
      guard let line = readLine() else {
        throw CommandFailure(
          .noInput, "there is no recovery code on standard input",
          next: "type the code when you are asked for it, or give it with < FILE")
      }
      do {
        return try RecoveryCode(typed: line)
      } catch {
        guard asks, attempt < attempts else {
          throw CommandFailure(
            .data, Printable.text(error.message), next: "compare it with what you have written down, group by group")
        }
        Output.complaint(Printable.text(error.message))
      }
    }
    throw CommandFailure(.software, "the recovery code was asked for without end")
  }
}
#endif
