#if Cloud
import KeepsakeMirror
import KeepsakeReplication
import Synchronization

/// What this run has kept, and which other devices are known to have it, as far as it is to be reported.
final class SeenByTracker: Sendable {
  /// A file's newest version, and the devices that have it by now.
  struct Sighting: Hashable, Sendable {
    var path: SavePath
    var version: VersionID
    var devices: [String]
  }

  private struct Entry {
    var path: SavePath
    var version: VersionID
    var reported: Set<DeviceID> = []
  }
  /// The newest last; older ones than fit into one request are dropped.
  private let entries = Mutex<[Entry]>([])

  func note(_ event: MirrorEvent) {
    switch event {
    case .captured(let path, let version, _), .deleted(let path, let version), .rescued(let path, let version, _):
      entries.withLock { entries in
        entries.removeAll { $0.path == path }
        entries.append(Entry(path: path, version: version))
        if entries.count > ExchangeRules.maximumAskedVersions { entries.removeFirst() }
      }
    case .placed(let path, _, _), .removed(let path, _):
      // The file is another device's from here on.
      entries.withLock { entries in entries.removeAll { $0.path == path } }
    case .conflict, .issue: break
    }
  }

  /// The versions to ask about.
  var versions: [VersionID] { entries.withLock { $0.map(\.version) } }

  /// Returns what is new in a response: each file that another device has turned out to have, with all devices that
  /// have it.
  func take(_ devices: [AccountDevice]) -> [Sighting] {
    let others = devices.filter { !$0.isThis }.sorted {
      ($0.createdMilliseconds, $0.device) < ($1.createdMilliseconds, $1.device)
    }
    return entries.withLock { entries in
      var sightings: [Sighting] = []
      for index in entries.indices {
        let holders = others.filter { $0.has?.contains(entries[index].version) == true }
        guard !entries[index].reported.isSuperset(of: holders.map(\.device)) else { continue }
        entries[index].reported.formUnion(holders.map(\.device))
        sightings.append(
          Sighting(path: entries[index].path, version: entries[index].version, devices: holders.map(\.name)))
      }
      return sightings
    }
  }
}
#endif
