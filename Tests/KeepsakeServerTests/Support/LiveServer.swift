#if Cloud
import Foundation
import KeepsakeSync
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

extension ServerConfiguration {
  /// Sets the server's limits so high that it ends no slow stop or request, however slow the machine is: the test's own
  /// limit ends what hangs.
  mutating func waitLong() {
    let limit = Int(Patience.limit.components.seconds)
    (stopSeconds, idleSeconds, slowGraceSeconds, requestSeconds) = (limit, limit, limit, limit)
    (handshakeSeconds, probeSeconds, databaseSeconds) = (limit, limit, limit)
  }
}

/// A server on loopback with its own data folder, for the duration of a test.
struct LiveServer: Sendable {
  let running: RunningServer
  let task: Task<Void, any Error>

  var url: URL { running.url }
  var appKey: String { running.appKeys[0] }

  /// Starts a server; it listens when this returns.
  ///
  /// - Parameter port: Where an earlier server listened; nil for an unused one.
  static func start(
    data: URL, port: Int? = nil, appKeys: [String] = [], clock: (@Sendable () -> Int64)? = nil, logger: Logger? = nil,
    change: (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> LiveServer {
    if let port { try await until("the port \(port) to be free") { !TestPort.isOpen(port) } }
    var configuration = ServerConfiguration(data: data, port: try port ?? TestPort.unused(), appKeys: appKeys)
    configuration.waitLong()
    SyncLimits.waitLonger()
    try await configuration.useTestDatabase()
    change(&configuration)
    if let clock { configuration.clock = clock }
    var silent = Logger(label: "keepsake.test")
    silent.logLevel = .critical
    let logger = logger ?? silent
    let (stream, continuation) = AsyncThrowingStream<RunningServer, any Error>.makeStream()
    let task = Task { [configuration, logger] in
      do {
        try await KeepsakeServer.run(configuration: configuration, logger: logger, signals: []) {
          continuation.yield($0)
        }
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
        throw error
      }
    }
    for try await running in stream { return LiveServer(running: running, task: task) }
    throw ServerError(.inputOutput, "The server ended before it ran.")
  }

  /// Stops the server as SIGTERM does.
  func stop() async throws {
    running.stop()
    try await task.value
  }

  /// Runs `body` with a server in a new folder, and removes both.
  static func with<Result>(
    appKeys: [String] = [], clock: (@Sendable () -> Int64)? = nil,
    change: (inout ServerConfiguration) -> Void = { _ in }, _ body: (LiveServer) async throws -> Result
  ) async throws -> Result {
    try await TemporaryFolder.with { folder in
      let server = try await start(data: folder, appKeys: appKeys, clock: clock, change: change)
      let result: Result
      do {
        result = try await body(server)
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
      return result
    }
  }
}
#endif
