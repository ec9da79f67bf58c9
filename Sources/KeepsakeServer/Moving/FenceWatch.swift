#if Cloud
import Foundation
import GRDB
import Logging
import ServiceLifecycle

/// Notices that the cloud of this server has moved into another database, as a command beside it says in the folder's.
struct FenceWatch: Service {
  /// Devices wait from the moment on when the fence is built.
  private static let period: Duration = .milliseconds(100)

  let database: URL
  let logger: Logger
  /// Called once, with where the cloud is.
  let onMoved: @Sendable (String) -> Void

  func run() async throws {
    try await cancelWhenGracefulShutdown {
      do {
        onMoved(try await found())
        // A service that ends would end the others at once, with the requests in progress.
        try await gracefulShutdown()
      } catch is CancellationError {
        // The server stops.
      }
    }
  }

  private func found() async throws -> String {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    let queue = try DatabaseQueue(path: database.path, configuration: configuration)
    var hasFailed = false
    while true {
      do {
        if let target = try await queue.read({ try CloudFence.target(in: $0) }) {
          try queue.close()
          return target
        }
      } catch let error as DatabaseError {
        // Whatever else needs the database says so, too.
        if !hasFailed { logger.failure("It can't be looked whether the cloud has moved", error) }
        hasFailed = true
      }
      try await Task.sleep(for: Self.period)
    }
  }
}
#endif
