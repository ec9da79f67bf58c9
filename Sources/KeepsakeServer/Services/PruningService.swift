#if Cloud
import KeepsakeReplication
import Logging
import ServiceLifecycle

/// Prunes the containers that are due, one after the other in small steps, as long as the server runs. Of several
/// servers with one database one looks for them at a time, as long as that is enough.
struct PruningService: Service {
  let storage: any CloudStorage
  let metrics: ServerMetrics
  let logger: Logger
  let clock: @Sendable () -> Int64

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do {
          try await Task.sleep(for: .seconds(ServerLimits.pruningSweepSeconds))
        } catch {
          return
        }
        do {
          if try await storage.claimPruning(seconds: ServerLimits.pruningSweepSeconds) { await self.sweep() }
        } catch {
          logger.failure("Whose turn it is to prune can't be found out", error)
        }
      }
    }
  }

  /// Looks at all containers once. A failure is reported, and the sweep goes on with the next container.
  func sweep() async {
    var place: PrunablePage.Place?
    repeat {
      do {
        let page = try await storage.containersToPrune(
          after: place, now: clock(), limit: ServerLimits.containersLookedAtOnce)
        for container in page.containers where !Task.isCancelled { await prune(container) }
        place = page.next
      } catch {
        logger.failure("Containers can't be searched for what to prune", error)
        return
      }
    } while place != nil && !Task.isCancelled
  }

  private func prune(_ container: ContainerID) async {
    var place: CloudAcceptance.PruningStep.Place? = .start
    do {
      while let from = place, !Task.isCancelled {
        let (step, bytes) = try await storage.prune(container, from: from, now: clock())
        metrics.pruned(versions: step.versions, ids: step.ids, bytes: bytes)
        place = step.next
        // Play comes first.
        try await Task.sleep(for: .milliseconds(ServerLimits.pruningPauseMilliseconds))
      }
    } catch is CancellationError {
      // The server stops. The next sweep goes on.
    } catch let error as APIError where error.code == .retired {
      // Everything of the player was deleted meanwhile.
    } catch {
      logger.failure("A container can't be pruned", error)
    }
  }
}
#endif
