#if Cloud
import ArgumentParser
import Foundation
import KeepsakeReplication

/// Plays the Flower Garden story with a real server process and devices that are processes of their own.
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Play a story with devices and a cloud on this machine, and check what Keepsake promises.",
    discussion: """
      Starts a server on the loopback interface with a new database, and a process with its own store for each device. \
      Plays the story, reads everything back, and ends with a table of what was promised and what was seen. Exit \
      status 1 if a promise was not kept.
      """,
    examples: [
      "keepsake demo --keep"
    ])

  @Flag(help: "Leave the server running and keep the data, so that you can look at them.") var keep = false
  @Flag(name: .shortAndLong, help: "Print the table as JSON; the story goes to standard error.") var json = false

  func run() async throws {
    try await CommandRun.reporting(json: json) { try play(DemoIssuer(), forger: DemoIssuer()) }
  }

  private func play(_ issuer: DemoIssuer, forger: DemoIssuer) throws {
    // Only recorded: whatever waits for a child then stops waiting, and everything is cleaned up on the way out.
    let signals = StopSignals(note: { ChildProcess.interrupt($0) })
    defer { withExtendedLifetime(signals) {} }
    let folder = FileManager.default.temporaryDirectory.appending(path: "keepsake-demo-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let server: DemoServer
    do {
      let identity = try issuer.setting(keyAt: folder.appending(path: "login.pem"))
      server = try DemoServer(data: folder.appending(path: "server"), identity: identity, endsWithDemo: !keep)
    } catch {
      // The reason why it couldn't be started is what must be reported, whatever stays behind in the temporary folder.
      try? FileManager.default.removeItem(at: folder)
      if let number = ChildProcess.interruption { throw ExitCode(128 + number) }
      throw error
    }
    report(
      """
      The cloud runs at \(server.url) (process \(server.process.processIdentifier)), its data in \
      \(server.data.path(percentEncoded: false)).
      """)

    var story = Story(
      folder: folder, data: server.data, server: server.url, appKey: server.appKey, issuer: issuer, report: report)
    let failure = Result { try story.play(forger: forger) }
    if let number = ChildProcess.interruption {
      // The devices ended with the story.
      if keep {
        report("\nStopped; all data is in \(folder.path(percentEncoded: false))")
        server.process.leaveRunning()
      } else {
        server.process.kill()
        try FileManager.default.removeItem(at: folder)
      }
      // The exit status that a shell reports for a process that a signal ended.
      throw ExitCode(128 + number)
    }
    var promises = story.promises
    if case .failure(let error) = failure {
      promises.append(
        Story.Promise(promise: "the story plays to its end", seen: String(describing: error), kept: false))
    }
    if keep {
      report(
        """
        \nStill running: the server at \(server.url) (end it with: kill \(server.process.processIdentifier)), all \
        data in \(folder.path(percentEncoded: false))
        """)
      report("For example: keepsake inspect \(folder.appending(path: "phone").path(percentEncoded: false))")
      server.process.leaveRunning()
    } else {
      let status = server.process.terminate()
      promises.append(
        Story.Promise(promise: "the server stops cleanly on SIGTERM", seen: "exit status \(status)", kept: status == 0))
      try FileManager.default.removeItem(at: folder)
    }
    try show(promises)
    guard promises.allSatisfy(\.kept) else { throw ExitCode(1) }
  }

  private struct Table: Encodable {
    var promises: [Story.Promise]
  }

  private func report(_ line: String) {
    // If the reader wants no more output, the story goes on, and the exit status still reports the result.
    if json { Output.complaint(line) } else { Output.text(line) }
  }

  private func show(_ promises: [Story.Promise]) throws {
    if json { return try Output.document(Table(promises: promises)) }
    let width = promises.map(\.promise.count).max() ?? 0
    Output.text("\n\("promised".padding(toLength: width, withPad: " ", startingAt: 0))      seen")
    for promise in promises {
      let name = promise.promise.padding(toLength: width, withPad: " ", startingAt: 0)
      Output.text("\(name)  \(promise.kept ? "yes" : "NO ")  \(promise.seen)")
    }
    let kept = promises.filter(\.kept).count
    Output.text(
      "\n\(kept) of \(CountText.of(promises.count, "promise")) kept"
        + (kept == promises.count ? "." : ": something is wrong.")
    )
  }
}

/// The demo's server: `keepsake serve` as a process of its own.
private struct DemoServer {
  let data: URL
  let process: ChildProcess
  let url: URL
  let appKey: String

  /// - Parameter identity: The issuer with which players sign in.
  init(data: URL, identity: String, endsWithDemo: Bool) throws {
    self.data = data
    var arguments = [
      "serve", "--data", data.path(percentEncoded: false), "--port", "0", "--identity", identity, "--json",
    ]
    // Its input is a pipe from this process, which ends however the demo ends, even by SIGKILL.
    if endsWithDemo { arguments.append("--until-input-ends") }
    process = try ChildProcess(name: "the server", arguments: arguments)
    guard let line = try process.readLine(withinSeconds: 60) else { throw ChildProcess.Failure.ended("the server") }
    let hello = try JSONDecoder().decode(ServeCommand.Hello.self, from: line)
    guard let url = URL(string: hello.url), let appKey = hello.appKeys.first else {
      throw ChildProcess.Failure.ended("the server")
    }
    self.url = url
    self.appKey = appKey
  }
}
#endif
