#if Cloud
import KeepsakeReplication
import Logging
import ServiceLifecycle

/// Keeps what is left of webhooks that aren't configured any more within bounds, as long as the server runs. Those that
/// are have a courier each.
struct WebhookCleaning: Service {
  let storage: SQLiteCloudStorage
  /// The webhooks that are configured.
  let names: [String]
  let limits: WebhookLimits
  let logger: Logger
  let clock: @Sendable () -> Int64

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          try await storage.retireWebhooks(except: names, limits, now: clock())
        } catch is CancellationError {
          return
        } catch {
          logger.failure("Events of webhooks that aren't configured any more can't be removed", error)
        }
        do { try await Task.sleep(for: .seconds(limits.cleaningSeconds)) } catch { return }
      }
    }
  }
}
#endif
