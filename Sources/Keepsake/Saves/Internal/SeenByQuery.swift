import KeepsakeReplication
import KeepsakeStore

/// The question which devices have the current versions of some slots.
struct SeenByQuery: Sendable {
  /// The heads by slot; all of them are certain to be in the cloud. Sorted, as the store returns them.
  private(set) var heads: [String: [VersionID]] = [:]

  var isEmpty: Bool { heads.isEmpty }

  /// Leaves out slots that are local or empty, and those with a head that isn't certain to be in the cloud, because no
  /// device can be known to have it.
  init(_ slots: some Sequence<String>, in transaction: StoreTransaction) throws {
    guard try transaction.facts().container != nil else { return }
    for slot in slots where try !SlotKey(text: slot).isLocal && !transaction.isLocal(slot) {
      let current = try transaction.heads(of: slot)
      guard !current.isEmpty, try current.allSatisfy({ try transaction.version($0)?.acknowledged == true }) else {
        continue
      }
      heads[slot] = current
    }
  }

  /// Asks, in as few requests as possible: one for each `ExchangeRules.maximumAskedVersions` versions.
  func answers(
    asking ask: @Sendable ([VersionID]) async throws -> [AccountDevice]?
  ) async throws -> [String: SeenByCache.Answer] {
    let versions = heads.values.joined().sorted()
    var known: [AccountDevice] = []
    var holdings: [DeviceID: Set<VersionID>] = [:]
    for start in stride(from: 0, to: versions.count, by: ExchangeRules.maximumAskedVersions) {
      let asked = Array(versions[start..<min(start + ExchangeRules.maximumAskedVersions, versions.count)])
      guard let devices = try await ask(asked) else {
        return heads.mapValues { SeenByCache.Answer(heads: $0, devices: nil) }
      }
      // The devices of the newest response: one that was removed between two of them isn't reported.
      known = devices
      for device in devices { holdings[device.device, default: []].formUnion(device.has ?? []) }
    }
    return heads.mapValues { heads in
      let holders = known.filter { !$0.isThis && holdings[$0.device, default: []].isSuperset(of: heads) }
      return SeenByCache.Answer(heads: heads, devices: CloudDevice.sorted(holders.map(CloudDevice.init)))
    }
  }
}
