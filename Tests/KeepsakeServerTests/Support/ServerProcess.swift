#if Cloud
import Foundation
import Logging
import Testing

@testable import KeepsakeServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A server in a process of its own, which can be killed as a power cut or an operator does.
struct ServerProcess: Sendable {
  static let appKey = "app-key-for-tests"

  let port: Int
  let process: Int32
  private let ended: Task<Void, Never>

  var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }

  /// Starts a server; it listens when this returns. The test fails if it doesn't end as `ending` says.
  static func start(data: URL, port: Int = 0, ending: ExitTest.Condition) async throws -> ServerProcess {
    let note = data.deletingLastPathComponent().appendingPathComponent("running-\(UUID().uuidString)")
    let (place, notePath) = (data.path, note.path)
    let ended = Task {
      _ = await #expect(processExitsWith: ending) { [place = place as String, notePath = notePath as String, port = port as Int] in
        var logger = Logger(label: "keepsake.test")
        logger.logLevel = .critical
        let configuration = ServerConfiguration(
          data: URL(fileURLWithPath: place), port: port, appKeys: [ServerProcess.appKey])
        try await KeepsakeServer.run(configuration: configuration, logger: logger) { running in
          // Whoever waits for this file fails if it doesn't come.
          try? Data("\(running.port) \(getpid())".utf8).write(to: URL(fileURLWithPath: notePath), options: .atomic)
        }
      }
    }
    let start = ContinuousClock.now
    while ContinuousClock.now - start < .seconds(120) {
      if FileManager.default.fileExists(atPath: note.path) {
        let words = try String(contentsOf: note, encoding: .utf8).split(separator: " ")
        let port = try #require(words.first.flatMap { Int($0) })
        let process = try #require(words.last.flatMap { Int32($0) })
        return ServerProcess(port: port, process: process, ended: ended)
      }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw ServerError(.inputOutput, "The server's process didn't start.")
  }

  /// Ends it as a power cut does, or as an operator; returns when it has ended.
  func signal(_ signal: Int32) async {
    kill(process, signal)
    await ended.value
  }
}
#endif
