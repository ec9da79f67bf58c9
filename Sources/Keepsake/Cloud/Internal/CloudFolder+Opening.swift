import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

extension CloudFolder {
  /// Returns the container to sync with. Nil if the store isn't bound to one yet, and the folder has none or isn't
  /// there.
  ///
  /// A store that is already bound starts whether or not the folder is there: the transport reports what is wrong, and
  /// continues when the folder appears.
  func knownContainer(of store: Store) throws -> ContainerID? {
    if !isJoining, let held = try store.read({ try $0.facts().container }) { return held }
    do {
      return try FolderTransport.container(of: url, making: nil)
    } catch  where error.kind == .unreachable {
      return nil
    }
  }

  /// Makes the folder a cloud, if it is there and isn't one yet. Never for a store that is bound to a container: to
  /// that store, a folder without a container is a missing one, like a mount point without its disk.
  func makeContainer(for store: Store) throws {
    var random = SystemRandomNumberGenerator()
    let isNew = try store.read { try $0.facts().container } == nil
    _ = try FolderTransport.container(of: url, making: isNew ? ContainerID(using: &random) : nil)
  }

  func transport(_ container: ContainerID, for core: GameCore) -> FolderTransport {
    let (store, environment) = (core.store.base, core.environment)
    let clock = FolderTransport.Environment(now: environment.nowMilliseconds, sleep: environment.sleep)
    return FolderTransport(url, container: container, environment: clock) { hash in
      try store.read { try $0.hasContent(hash) ? $0.encoded(hash, against: nil) : nil }
    }
  }
}
