#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication
import KeepsakeServer

/// `keepsake migrate`: moves a cloud between a data folder and a PostgreSQL database.
struct MigrateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate", abstract: "Move a cloud from a data folder into PostgreSQL, while players play; or back.",
    discussion: """
      From a folder, keepsake serve goes on with it: everything is copied, read back and compared, and what changes \
      meanwhile is copied again. In the end the folder's server takes no write any more, the rest is copied, and that \
      server ends. Start the new one before, with the same folder and port and with --database: it waits until the \
      cloud is there. If this ends early, for whatever reason, run it again: it goes on.

      Back, no server may run. The folder must be empty, or the one from which the cloud came.
      """,
    examples: [
      "keepsake migrate --from cloud --to postgres://keepsake@db.example.com/keepsake",
      "keepsake migrate --from cloud --to postgres://keepsake@db.example.com/keepsake --abandon",
      "keepsake migrate --from postgres://keepsake@db.example.com/keepsake --to cloud",
    ])

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Where the cloud is: the folder of its data, or the address of its PostgreSQL database.", valueName: "place"),
    completion: .directory)
  var from: String

  @Option(
    name: .long,
    help: ArgumentHelp(
      """
      Where it goes: the address of an empty PostgreSQL database, or a folder. Other users of the machine see an \
      address: have a password in the file that PostgreSQL's clients read, ~/.pgpass.
      """, valueName: "place"),
    completion: .directory)
  var to: String

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Where large contents are with the database, as for keepsake serve; may be repeated.", valueName: "place"))
  var contents: [String] = []

  @Flag(name: .long, help: "Copy and compare, and leave the last step for another time.")
  var onlyCopy = false

  @Flag(name: .long, help: "Give up a move that isn't finished: the cloud stays where it was.")
  var abandon = false

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  private struct Answer: Encodable {
    /// Where the cloud was.
    var path: String
    /// Where it goes.
    var output: String
    /// `moved`, `copied` (the last step is left) or `abandoned`.
    var result: String
    /// How many players were copied; one that was copied twice counts twice.
    var copiedCount: Int
    var rowCount: Int
    var bytes: Int
    var contentCount: Int
    var contentBytes: Int
    /// How many had changed since they were copied.
    var waitingCount: Int
    /// Nil if play wasn't stopped.
    var stoppedMilliseconds: Int64?
  }

  func validate() throws {
    guard Self.isAddress(from) != Self.isAddress(to) else {
      throw ValidationError("One of --from and --to is a folder, and the other one the address of a database.")
    }
    guard !onlyCopy || !abandon else { throw ValidationError("--only-copy and --abandon don't go together.") }
    guard !onlyCopy || Self.isAddress(to) else { throw ValidationError("--only-copy is for a move into a database.") }
  }

  private static func isAddress(_ place: String) -> Bool {
    ["postgres://", "postgresql://"].contains { place.hasPrefix($0) }
  }

  func run() async throws {
    try await CommandRun.reporting(json: json) {
      let isBack = Self.isAddress(from)
      let (folder, address) = isBack ? (to, from) : (from, to)
      let data = isBack ? URL(fileURLWithPath: folder, isDirectory: true) : try FolderArgument.url(folder)
      if !isBack { try CloudFolder.check(data) }
      let request = CloudMove.Request(data: data, address: address, contents: contents, isOnlyCopying: onlyCopy)
      let name = CloudMove.name(of: address)
      let (source, target) = isBack ? (name, folder) : (folder, name)
      let abandon = abandon
      let summary = try await watching { progress in
        guard abandon else {
          return try await isBack
            ? CloudMove.moveBack(request, progress: progress) : CloudMove.move(request, progress: progress)
        }
        if isBack {
          try await CloudMove.abandonBack(request)
        } else {
          try await CloudMove.abandon(request, progress: progress)
        }
        return CloudMoveSummary()
      }
      let result = abandon ? "abandoned" : summary.isFinished ? "moved" : "copied"
      if json {
        return try Output.document(
          Answer(
            path: source, output: target, result: result, copiedCount: summary.copied, rowCount: summary.rows,
            bytes: summary.bytes, contentCount: summary.contents, contentBytes: summary.contentBytes,
            waitingCount: summary.waiting, stoppedMilliseconds: summary.stoppedMilliseconds))
      }
      Output.text(text(summary, Printable.text(source), Printable.text(target)))
    }
  }

  private func text(_ summary: CloudMoveSummary, _ source: String, _ target: String) -> String {
    if abandon { return "the move from \(source) to \(target) was given up: the cloud is in \(source)" }
    let counts = [
      CountText.of(summary.copied, "player") + " copied and compared", CountText.of(summary.rows, "row"),
      Printable.size(Int64(summary.bytes)),
      CountText.of(summary.contents, "large content") + " of \(Printable.size(Int64(summary.contentBytes)))",
    ].joined(separator: ", ")
    guard summary.isFinished else {
      return """
        copied from \(source) to \(target): \(counts)
        \(summary.waiting) have changed since; run the command without --only-copy to move the cloud
        """
    }
    let stopped = summary.stoppedMilliseconds.map { "\nplay was stopped for \($0) ms" } ?? ""
    return "moved from \(source) to \(target): \(counts)\(stopped)"
  }

  private static let again = "run the command again: it goes on where it was"

  /// Runs `body`, shows its progress, and ends it in good order when a signal asks for that.
  private func watching(
    _ body: @escaping @Sendable (@escaping CloudMoveProgress.Receiver) async throws -> CloudMoveSummary
  ) async throws -> CloudMoveSummary {
    let line = ProgressLine(json: json)
    let task = Task { try await body { line.update(Self.text($0)) } }
    let signals = StopSignals { _ in task.cancel() }
    defer { withExtendedLifetime(signals) {} }
    do {
      let summary = try await task.value
      line.clear()
      return summary
    } catch is CancellationError {
      throw CommandFailure(.temporary, "it was stopped", next: Self.again)
    } catch let error as ServerError {
      var failure = CommandFailure(error)
      // Nothing that is usual for these concerns the folder alone.
      if [.inputOutput, .damaged, .overloaded].contains(error.code) { failure.next = Self.again }
      if error.code == .folderInUse { failure.next = "stop the servers on the folder, or wait for the other command" }
      throw failure
    }
  }

  private static func text(_ progress: CloudMoveProgress) -> String {
    var step = "copying"
    switch progress.step {
    case .listing: return "looking what there is: \(CountText.of(progress.done, "player"))"
    case .removing: return "removing what was copied: \(progress.done)"
    case .copying: break
    case .finishing: step = "play is stopped; copying the rest"
    }
    let left = progress.secondsLeft.map { ", \(Int($0.rounded(.up))) s left" } ?? ""
    return """
      \(step): \(progress.done) of \(CountText.of(progress.total, "player")), \
      \(Printable.size(Int64(progress.bytes))), \(Int(progress.rate)) a second\(left)
      """
  }
}
#endif
