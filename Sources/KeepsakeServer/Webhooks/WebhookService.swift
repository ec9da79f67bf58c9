#if Cloud
import Foundation
import KeepsakeReplication
import Logging
import ServiceLifecycle

/// Tells a studio's backends what happened, as long as the server runs.
struct WebhookService: Service {
  let couriers: [WebhookCourier]
  let storage: any WebhookStorage
  let sender: any WebhookSender
  let limits: WebhookLimits
  let logger: Logger
  let clock: @Sendable () -> Int64

  /// Nil if none is configured.
  init?(
    _ configuration: ServerConfiguration, storage: any WebhookStorage, metrics: ServerMetrics, logger: Logger
  ) throws {
    guard !configuration.webhooks.isEmpty else { return nil }
    var limits = configuration.webhookLimits
    limits.conflictMilliseconds = Int64(configuration.webhookConflictMinutes) * 60_000
    (self.storage, self.logger, self.limits) = (storage, logger, limits)
    (sender, clock) = (configuration.webhookSender, configuration.clock)
    couriers = try configuration.webhooks.map { [limits, clock] endpoint in
      try WebhookCourier(
        endpoint, storage: storage, limits: limits, metrics: metrics, logger: logger, clock: clock)
    }
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      await withDiscardingTaskGroup { group in
        group.addTask { await self.tellConflicts() }
        for courier in self.couriers { group.addTask { await self.deliver(by: courier) } }
      }
    }
    do {
      try await sender.close()
    } catch {
      logger.failure("The connections to webhooks can't be closed", error)
    }
  }

  // MARK: Delivering

  private func deliver(by courier: WebhookCourier) async {
    // One more wake than is taken is one for all.
    let (wakes, waker) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    storage.outbox?.onEvents { waker.yield() }
    await withDiscardingTaskGroup { group in
      var wake = wakes.makeAsyncIterator()
      while !Task.isCancelled {
        for delivery in await courier.pass() {
          group.addTask {
            await self.send(delivery, by: courier)
            waker.yield()
          }
        }
        let pause = await courier.wakeMilliseconds().addingClamped(-WebhookCourier.steadyMilliseconds())
        let timer = Task {
          // A cancelled sleep means that somebody else was first.
          do { try await Task.sleep(for: .milliseconds(min(max(0, pause), limits.sweepMilliseconds))) } catch { return }
          waker.yield()
        }
        await wake.next()
        timer.cancel()
        await courier.notice()
        do { try await Task.sleep(for: .milliseconds(limits.gatherMilliseconds)) } catch { break }
      }
    }
    do {
      // In a task of its own: in one that is cancelled, nothing could wait for what is in its way.
      try await Task { try await courier.stop() }.value
    } catch {
      logger.failure("Delivered events can't be removed: they are sent again after the next start", error)
    }
  }

  private func send(_ delivery: WebhookDelivery, by courier: WebhookCourier) async {
    do {
      let status = try await Deadline.run(within: .seconds(limits.answerSeconds)) {
        try await sender.send(delivery.request)
      }
      await courier.finish(delivery, status: status)
    } catch {
      if Task.isCancelled { return await courier.abandon(delivery) }
      await courier.finish(delivery, .failed(String("\(error)".prefix(200))))
    }
  }

  // MARK: Conflicts

  private func tellConflicts() async {
    guard storage.outbox?.wants(.conflictOpen) == true else { return }
    var isFirst = true
    while !Task.isCancelled {
      do {
        if isFirst { try await storage.noteOpenConflicts(now: clock()) }
        isFirst = false
        try await tellDueConflicts()
      } catch {
        logger.failure("Open conflicts can't be looked up", error)
      }
      do { try await Task.sleep(for: .seconds(limits.conflictSweepSeconds)) } catch { return }
    }
  }

  /// Tells of the conflicts that are due.
  func tellDueConflicts() async throws {
    let now = clock()
    let since = now.addingClamped(-limits.conflictMilliseconds)
    while try await storage.tellConflicts(openSince: since, now: now, limit: limits.scanned) > 0 {}
  }
}
#endif
