#if Cloud
import KeepsakeReplication
import Synchronization

/// What a server remembers of the containers that it has lately changed (``RememberedContainer``), so that the next
/// save needs no load.
///
/// What has been remembered is used only of a container that nobody else has changed between this server's last two
/// commits: where each request of a player comes to another server, it would be in vain.
final class RememberedContainers: Sendable {
  private final class Entry: Sendable {
    let container: RememberedContainer?
    /// The revision to which this server has brought it.
    let revision: UInt64
    /// Whether nobody else has changed it before that.
    let isAlone: Bool
    let connections: Int

    init(_ container: RememberedContainer?, revision: UInt64, isAlone: Bool, connections: Int) {
      (self.container, self.revision, self.isAlone, self.connections) = (container, revision, isAlone, connections)
    }
  }
  private let known: Mutex<BoundedTable<ContainerID, Entry>>
  /// How many connections to the database have been made: what was remembered before the last one doesn't count, since
  /// a database that takes over may lack the newest commits.
  private let countConnections: @Sendable () -> Int

  /// - Parameter most: How many containers are remembered.
  init(most: Int = ServerLimits.rememberedContainers, connections: @escaping @Sendable () -> Int) {
    known = Mutex(BoundedTable(most: most))
    countConnections = connections
  }

  /// How many connections have been made; asked before what is noted is read.
  var connections: Int { countConnections() }

  /// Returns a container as a decision sees it; nil if it isn't remembered, or not enough of it.
  func snapshot(of container: ContainerID, for reads: ReadSet) -> Snapshot? {
    let connections = connections
    let entry = known.withLock { $0[container] }
    guard let entry, entry.isAlone, entry.connections == connections else { return nil }
    var snapshot = entry.container?.snapshot(for: reads)
    snapshot?.assumption?.connections = connections
    return snapshot
  }

  /// Notes that a decision was committed.
  ///
  /// - Parameter connections: As of before what the decision rests on was read.
  func note(_ decided: SnapshotContainer, of container: ContainerID, connections: Int) {
    let before = decided.base.revision
    let known = known.withLock { $0[container] }
    let isAlone = known?.revision == before && known?.connections == connections
    let remembered = RememberedContainer(after: decided, and: isAlone ? known?.container : nil)
    let entry = Entry(remembered, revision: before + 1, isAlone: isAlone, connections: connections)
    _ = self.known.withLock { known in
      // Of two commits, the later one may be noted first.
      if let other = known[container], other.revision > before, other.connections == connections {
        return [ContainerID: Entry]()
      }
      return known.put(entry, for: container)
    }
  }

  func forget(_ container: ContainerID) { known.withLock { $0.remove(container) } }

  /// Forgets a container of which everything was deleted: what was committed before isn't noted any more.
  func end(_ container: ContainerID) {
    let entry = Entry(nil, revision: .max, isAlone: false, connections: connections)
    _ = known.withLock { $0.put(entry, for: container) }
  }
}
#endif
