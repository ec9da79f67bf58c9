#if Cloud
import KeepsakeReplication
import Synchronization

/// Players and devices of games that are being deleted or removed: they get nothing in shared containers meanwhile.
final class LeavingParents: Sendable {
  struct Entry: Hashable, Sendable {
    var container: ContainerID
    /// Nil for all of the player's.
    var device: DeviceID?
  }
  private let entries = Mutex<[Entry: Int]>([:])

  func enter(_ container: ContainerID, _ device: DeviceID?) -> Entry {
    let entry = Entry(container: container, device: device)
    entries.withLock { $0[entry, default: 0] += 1 }
    return entry
  }

  func end(_ entry: Entry) {
    entries.withLock { entries in
      let left = (entries[entry] ?? 1) - 1
      entries[entry] = left > 0 ? left : nil
    }
  }

  func contains(_ parent: DeviceIdentity) -> Bool {
    entries.withLock { entries in
      [nil, parent.device].contains { entries[Entry(container: parent.container, device: $0)] != nil }
    }
  }
}
#endif
