import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

extension CloudFolder {
  /// Finds the folder. Blocks.
  ///
  /// - Throws: `unreachable` if there is no iCloud at present.
  private func found() throws(TransportFailure) -> FolderPlace {
    switch place {
    case .url(let url): .plain(url)
    case .iCloud(let container, let name): try .inICloud(name, container: container)
    }
  }

  /// Returns the folder, and the container to sync with. Nil if the store isn't bound to one yet, and the folder has
  /// none or isn't there; or if there is no iCloud.
  ///
  /// A store that is already bound starts whether or not the folder is there: the transport reports what is wrong, and
  /// continues when the folder appears.
  func known(of store: Store) throws -> (folder: FolderPlace, container: ContainerID)? {
    let held = try store.read { try $0.facts().container }
    do throws(TransportFailure) {
      let folder = try found()
      if let held, !isJoining { return (folder, held) }
      return (folder, try folder.container(keeping: held, making: nil))
    } catch  where error.kind == .unreachable {
      return nil
    }
  }

  /// Makes the folder a cloud, if it is there and isn't one yet. Never for a store that is bound to a container, unless
  /// it joins an account of iCloud: to that store, a folder without a container is a missing one, like a mount point
  /// without its disk.
  func makeContainer(for store: Store) throws {
    var random = SystemRandomNumberGenerator()
    // In iCloud nothing is missing that an account could have: a device that joins one may be its first.
    let isFirst = if case .iCloud = place { isJoining } else { false }
    let isNew = try store.read { try $0.facts().container } == nil || isFirst
    _ = try found().container(making: isNew ? ContainerID(using: &random) : nil)
  }

  static func transport(
    to folder: FolderPlace, _ container: ContainerID, for core: GameCore
  ) -> FolderTransport {
    let (store, environment) = (core.store.base, core.environment)
    let clock = FolderTransport.Environment(now: environment.nowMilliseconds, sleep: environment.sleep)
    return FolderTransport(folder, container: container, environment: clock) { hash in
      try store.read { try $0.hasContent(hash) ? $0.encoded(hash, against: nil) : nil }
    }
  }
}
