#if Cloud
import KeepsakeReplication

/// Containers that are due for pruning.
struct PrunablePage: Sendable {
  var containers: [ContainerID] = []
  /// Where a page begins, by what a storage counts containers by.
  enum Place: Sendable {
    case number(Int64)
    case container(ContainerID)
  }
  /// Where the next page begins; nil after the last one.
  var next: Place?
}

extension CloudStorage {
  /// Prunes a part of a container, beside whatever else happens to it.
  ///
  /// - Returns: What was done, and by how many bytes the player has less.
  func prune(
    _ container: ContainerID, from place: CloudAcceptance.PruningStep.Place = .start,
    under rules: PruningRules = PruningRules(), now: Int64
  ) async throws -> (step: CloudAcceptance.PruningStep, bytes: Int64) {
    try await decide(on: container, work: ServerLimits.lightDecision + 1) { storage in
      let step = try CloudAcceptance.prune(from: place, under: rules, now: now, in: &storage)
      return (step, -storage.writes.used)
    }
  }
}
#endif
