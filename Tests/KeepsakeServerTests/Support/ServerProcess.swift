#if Cloud && os(Linux)
import Foundation
import Glibc
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// A server in a separate process, which can be killed as by a power cut, or stopped as by an operator.
///
/// The process is this test program again, with an environment that makes it run one test: the one below, which is the
/// server. (An exit test would block one of the few threads that all tasks share for as long as the server runs.)
///
/// It ends by itself when the process that started it has: nothing else would ever end the server of tests that were
/// killed.
struct ServerProcess: Sendable {
  static let appKey = "app-key-for-tests"
  static let variable = "KEEPSAKE_TEST_SERVER"
  /// The address of its database, if it isn't in its folder.
  static let databaseVariable = "KEEPSAKE_TEST_DATABASE"
  static let noQuota = "none"

  let port: Int
  let metricsPort: Int
  private let process: Process
  private let ended: Task<Process.TerminationReason, Never>

  var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }

  /// The most memory that the process has used so far, in bytes.
  func peakMemory() throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
    return try #require(Int(line.filter(\.isNumber))) * 1024
  }

  /// A file on the server's disk, which only its process sees.
  func file(_ name: String, on data: URL) -> URL {
    URL(fileURLWithPath: "/proc/\(process.processIdentifier)/root\(data.path)/\(name)")
  }

  /// Starts a server; it listens when this returns. With `diskMebibytes` its data folder is a file system of that size,
  /// which ends with the process.
  ///
  /// - Parameters:
  ///   - port: Where an earlier server listened; nil for an unused one.
  ///   - database: Where its database is; nil for one in its folder.
  ///   - isGrandchild: Whether a shell starts the server and waits for it. Then it is the shell that is killed.
  static func start(
    data: URL, port: Int? = nil, diskMebibytes: Int? = nil, quota: Int64? = nil, database: String? = nil,
    isGrandchild: Bool = false
  ) async throws -> ServerProcess {
    let port = try port ?? TestPort.unused()
    let note = data.deletingLastPathComponent().appendingPathComponent("running-\(UUID().uuidString)")
    let process = Process()
    let command = [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "ServerProcessTests"]
    if let diskMebibytes {
      try FileManager.default.createDirectory(at: data, withIntermediateDirectories: true)
      let script = "mount -t tmpfs -o size=\(diskMebibytes)m keepsake \"$0\" && exec \"$@\""
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, data.path] + command
    } else if isGrandchild {
      process.executableURL = URL(fileURLWithPath: "/bin/sh")
      process.arguments = ["-c", "\"$0\" \"$@\" & wait"] + command
    } else {
      process.executableURL = URL(fileURLWithPath: command[0])
      process.arguments = Array(command.dropFirst())
    }
    process.environment = ProcessInfo.processInfo.environment.merging(
      [variable: "\(port)\n\(data.path)\n\(note.path)\n\(quota.map(String.init) ?? noQuota)"], uniquingKeysWith: { $1 })
    process.environment?[databaseVariable] = database
    // Why it ended, if it couldn't start.
    let said = note.appendingPathExtension("log")
    try Data().write(to: said)
    let output = try FileHandle(forWritingTo: said)
    (process.standardOutput, process.standardError) = (output, output)
    let (stream, continuation) = AsyncStream<Process.TerminationReason>.makeStream()
    process.terminationHandler = {
      continuation.yield($0.terminationStatus == 0 ? $0.terminationReason : .uncaughtSignal)
      continuation.finish()
    }
    try process.run()
    let ended = Task { await stream.first { _ in true } ?? .uncaughtSignal }
    do {
      try await until("the server's process listens") {
        FileManager.default.fileExists(atPath: note.path) || !process.isRunning
      }
      try #require(FileManager.default.fileExists(atPath: note.path), Comment(rawValue: Self.end(of: said)))
      let ports = try String(contentsOf: note, encoding: .utf8).split(separator: " ").compactMap { Int($0) }
      return ServerProcess(
        port: try #require(ports.first), metricsPort: try #require(ports.last), process: process, ended: ended)
    } catch {
      process.terminate()
      throw error
    }
  }

  private static func end(of file: URL) -> String {
    String(decoding: FileManager.default.contents(atPath: file.path)?.suffix(4_000) ?? Data(), as: UTF8.self)
  }

  /// Kills the process, whatever it is doing; returns when it has ended.
  func kill() async {
    if process.isRunning { Glibc.kill(process.processIdentifier, SIGKILL) }
    _ = await ended.value
  }

  /// Returns when the process has ended by itself; the test fails unless that was with success.
  func hasEnded() async { #expect(await ended.value == .exit, "the server didn't end with success") }

  /// Stops the process as an operator does; the test fails unless it ends with success.
  func end(by signal: Int32) async {
    Glibc.kill(process.processIdentifier, signal)
    #expect(await ended.value == .exit, "the server didn't end with success")
  }
}

struct ServerProcessTests {
  @Test(
    "runs the server of other tests in a separate process",
    .partOfAnotherTest(where: ProcessInfo.processInfo.environment[ServerProcess.variable] != nil))
  func serve() async throws {
    let words = try #require(ProcessInfo.processInfo.environment[ServerProcess.variable]).split(separator: "\n")
    try #require(words.count == 4)
    var logger = Logger(label: "keepsake.test")
    logger.logLevel = .critical
    var configuration = ServerConfiguration(
      data: URL(fileURLWithPath: String(words[1])), port: try #require(Int(words[0])), appKeys: [ServerProcess.appKey])
    configuration.waitLong()
    try await configuration.useTestDatabase()
    if let address = ProcessInfo.processInfo.environment[ServerProcess.databaseVariable] {
      (configuration.database, configuration.databaseConnections) = (address, 4)
      #if PostgreSQL
      configuration.databaseStandIn = TestDatabase.standIn
      #endif
    }
    configuration.metricsPort = 0
    if words[3] != ServerProcess.noQuota {
      let quota: Int64 = try #require(Int64(words[3]))
      configuration.quota = quota
    }
    let note = URL(fileURLWithPath: String(words[2]))
    Self.endWithParent()
    try await KeepsakeServer.run(configuration: configuration, logger: logger) { running in
      do {
        try Data("\(running.port) \(running.metricsPort ?? 0)".utf8).write(to: note, options: .atomic)
      } catch {
        Issue.record(error)
      }
    }
  }

  /// Ends this process once the one that started it has ended, however it did. No descriptor is needed for that, which
  /// other processes could inherit and keep open.
  private static func endWithParent() {
    let parent = getppid()
    Thread.detachNewThread {
      while getppid() == parent { Thread.sleep(forTimeInterval: 0.2) }
      _exit(1)
    }
  }
}
#endif
