#if Cloud && os(Linux)
import Foundation
import Glibc
import Logging
import Testing

@testable import KeepsakeServer

/// A server in a process of its own, which can be killed as a power cut or an operator does.
///
/// The process is this test program again, told by its environment to run one test: the one below, which is the server. (An
/// exit test would hold one of the few threads that all tasks share for as long as the server runs.)
struct ServerProcess: Sendable {
  static let appKey = "app-key-for-tests"
  static let variable = "KEEPSAKE_TEST_SERVER"

  let port: Int
  private let process: Process
  private let ended: Task<Process.TerminationReason, Never>

  var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }

  /// Starts a server; it listens when this returns.
  static func start(data: URL, port: Int = 0) async throws -> ServerProcess {
    let note = data.deletingLastPathComponent().appendingPathComponent("running-\(UUID().uuidString)")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["--testing-library", "swift-testing", "--filter", "ServerProcessTests"]
    process.environment = ProcessInfo.processInfo.environment.merging(
      [variable: "\(port)\n\(data.path)\n\(note.path)"], uniquingKeysWith: { $1 })
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    let (stream, continuation) = AsyncStream<Process.TerminationReason>.makeStream()
    process.terminationHandler = {
      continuation.yield($0.terminationStatus == 0 ? $0.terminationReason : .uncaughtSignal)
      continuation.finish()
    }
    try process.run()
    let ended = Task { await stream.first { _ in true } ?? .uncaughtSignal }
    let start = ContinuousClock.now
    while ContinuousClock.now - start < .seconds(120) {
      if FileManager.default.fileExists(atPath: note.path) {
        let port = try #require(Int(String(contentsOf: note, encoding: .utf8)))
        return ServerProcess(port: port, process: process, ended: ended)
      }
      try await Task.sleep(for: .milliseconds(10))
    }
    process.terminate()
    throw ServerError(.inputOutput, "The server's process didn't start.")
  }

  /// Ends it in the middle of whatever it does; returns when it has ended.
  func kill() async {
    Glibc.kill(process.processIdentifier, SIGKILL)
    _ = await ended.value
  }

  /// Ends it as an operator does; the test fails unless it ends well.
  func end(by signal: Int32) async {
    Glibc.kill(process.processIdentifier, signal)
    #expect(await ended.value == .exit, "the server didn't end well")
  }
}

struct ServerProcessTests {
  @Test(
    "(the server of other tests)",
    .enabled(if: ProcessInfo.processInfo.environment[ServerProcess.variable] != nil, "only as a process of its own"))
  func serve() async throws {
    let words = try #require(ProcessInfo.processInfo.environment[ServerProcess.variable]).split(separator: "\n")
    try #require(words.count == 3)
    var logger = Logger(label: "keepsake.test")
    logger.logLevel = .critical
    let configuration = ServerConfiguration(
      data: URL(fileURLWithPath: String(words[1])), port: try #require(Int(words[0])), appKeys: [ServerProcess.appKey])
    let note = URL(fileURLWithPath: String(words[2]))
    try await KeepsakeServer.run(configuration: configuration, logger: logger) { running in
      do {
        try Data("\(running.port)".utf8).write(to: note, options: .atomic)
      } catch {
        Issue.record(error)
      }
    }
  }
}
#endif
