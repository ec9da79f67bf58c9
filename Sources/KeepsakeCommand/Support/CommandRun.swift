#if Cloud
import ArgumentParser

/// How a command ends: it reports its failure on standard error, or as JSON, and exits with the matching code.
enum CommandRun {
  /// Runs `body`, and reports its failure.
  ///
  /// - Parameters:
  ///   - form: How `--json` prints it.
  ///   - looksInside: Whether the command itself reads everything that a damaged store still gives.
  static func reporting(
    json: Bool, as form: JSONForm = .object, looksInside: Bool = false, _ body: () async throws -> Void
  ) async throws {
    do {
      try await body()
    } catch let exit as ExitCode {
      throw exit
    } catch {
      let failure = looksInside ? CommandFailure(error).withoutInspectAdvice : CommandFailure(error)
      if json { Output.failure(ErrorReport(failure), as: form) } else { complain(of: failure) }
      throw ExitCode(failure.kind.rawValue)
    }
  }

  /// Reports a failure to people.
  static func complain(of failure: CommandFailure) {
    Output.complaint("keepsake: " + Printable.text(failure.message))
    if let next = failure.next { Output.complaint("  " + next) }
  }
}

/// A failure as `--json` prints it.
struct ErrorReport: Encodable {
  struct Body: Encodable {
    /// The name of the kind of failure; `usage` for wrong usage.
    var code: String
    var message: String
    var next: String?

    init(code: String, message: String, next: String?) {
      (self.code, self.message, self.next) = (code, message, next)
    }

    init(_ failure: CommandFailure) {
      self.init(code: "\(failure.kind)", message: failure.message, next: failure.next)
    }
  }
  var event = "error"
  var error: Body

  init(_ failure: CommandFailure) { error = Body(failure) }

  /// Returns the report of arguments that can't be parsed, if they ask for JSON; nil for anything else, such as the
  /// help, and what a command that ran has reported itself.
  init?(usage error: any Error, of arguments: [String]) {
    guard Self.isWanted(in: arguments), !(error is ExitCode),
      KeepsakeTool.exitCode(for: error) == .validationFailure
    else { return nil }
    let own = arguments.prefix { $0 != "--" }
    self.error = Body(
      code: "usage", message: KeepsakeTool.message(for: error),
      next: (["keepsake help"] + KeepsakeTool.command(in: own).path).joined(separator: " ") + " says how it is used")
  }

  /// Whether arguments that aren't parsed yet ask for JSON.
  static func isWanted(in arguments: [String]) -> Bool {
    // Short flags may be written together.
    arguments.prefix { $0 != "--" }.contains { $0 == "--json" || $0.wholeMatch(of: /-[a-z]*j[a-z]*/) != nil }
  }
}
#endif
