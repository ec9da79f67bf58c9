#if Cloud
import Dispatch
import KeepsakeReplication
import Synchronization

/// The newest seqs of containers that were read or changed lately, so that an exchange needn't ask the database for its
/// one before its turn. They are only estimates for callers: another commit may follow at any time.
final class NewestSeqs: Sendable {
  /// About 40 bytes each.
  private static let most = 16_384

  private let known = Mutex(BoundedTable<ContainerID, (seq: UInt64, noted: UInt64)>(most: NewestSeqs.most))
  /// After which time a seq isn't known any more: other servers may change the container, too. Nil for never.
  private let lifetimeSeconds: UInt64?

  init(lifetimeSeconds: UInt64? = nil) { self.lifetimeSeconds = lifetimeSeconds }

  subscript(container: ContainerID) -> UInt64? {
    known.withLock { $0[container].flatMap(fresh) }
  }

  /// Returns a seq as long as it counts.
  private func fresh(_ seq: UInt64, noted: UInt64) -> UInt64? {
    guard let lifetimeSeconds else { return seq }
    return Self.now < noted + lifetimeSeconds * 1_000_000_000 ? seq : nil
  }

  private static var now: UInt64 { DispatchTime.now().uptimeNanoseconds }

  /// Notes the seq of a container, unless a later one is known: what was loaded may arrive after a commit.
  func note(_ seq: UInt64, of container: ContainerID) {
    _ = known.withLock { known in
      known.put((max(known[container].flatMap(fresh) ?? 0, seq), Self.now), for: container)
    }
  }

  /// Forgets a container, for instance one that was deleted.
  func forget(_ container: ContainerID) { known.withLock { $0.remove(container) } }
}
#endif
