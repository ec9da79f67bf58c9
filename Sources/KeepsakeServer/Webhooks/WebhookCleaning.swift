#if Cloud
import KeepsakeReplication
import Logging
import ServiceLifecycle

/// Keeps what is left of webhooks that aren't configured any more within bounds, as long as the server runs. Those that
/// are have a courier each.
struct WebhookCleaning: Service {
  let storage: any WebhookStorage
  /// The webhooks that are configured.
  let names: [String]
  let limits: WebhookLimits
  let logger: Logger
  let clock: @Sendable () -> Int64

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          let others = try await heldByOthers()
          try await storage.retireWebhooks(except: names + others, limits, now: clock())
          if others.isEmpty { try await storage.forgetUnwantedConflicts() }
        } catch is CancellationError {
          return
        } catch {
          logger.failure("Events of webhooks that aren't configured any more can't be removed", error)
        }
        do { try await Task.sleep(for: .seconds(limits.cleaningSeconds)) } catch { return }
      }
    }
  }

  /// Returns the webhooks that only other servers with the same database have, as while the settings are changed at one
  /// after the other: those of which something is said within the time after which a silent holder loses them.
  private func heldByOthers() async throws -> [String] {
    guard storage.sharesWebhooks else { return [] }
    let before = try await storage.webhookClaims()
    try await Task.sleep(for: .milliseconds(limits.leaseMilliseconds))
    return Self.others(before, try await storage.webhookClaims(), except: names)
  }

  static func others(
    _ before: [String: WebhookClaim], _ after: [String: WebhookClaim], except names: [String]
  ) -> [String] {
    after.filter { name, claim in
      !claim.holder.isEmpty && claim.beat != before[name]?.beat && !names.contains(name)
    }.map(\.key)
  }
}
#endif
