import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

extension CloudFolder {
  /// The container to synchronize with; nil if the folder has none yet, or isn't there, and this store doesn't know which it was.
  ///
  /// A store that was here before begins whether the folder is there or not: the transport says what is wrong, and goes on when it comes.
  func knownContainer(of store: Store) throws -> ContainerID? {
    if !isJoining, let held = try store.read({ try $0.facts().container }) { return held }
    do {
      return try FolderTransport.container(of: url, making: nil)
    } catch  where error.kind == .unreachable {
      return nil
    }
  }

  /// Makes the folder a cloud, if it is there and isn't one yet. A store that belongs somewhere never does: for it a folder without a
  /// container is one that isn't there, like a mount point without its disk.
  func makeContainer(for store: Store) throws {
    var random = SystemRandomNumberGenerator()
    let isNew = try store.read { try $0.facts().container } == nil
    _ = try FolderTransport.container(of: url, making: isNew ? ContainerID(using: &random) : nil)
  }

  func transport(_ container: ContainerID, for core: GameCore) -> FolderTransport {
    let (store, environment) = (core.store, core.environment)
    let clock = FolderTransport.Environment(now: environment.nowMilliseconds, sleep: environment.sleep)
    return FolderTransport(url, container: container, environment: clock) { hash in
      try store.read { try $0.hasContent(hash) ? $0.encoded(hash, against: nil) : nil }
    }
  }
}
