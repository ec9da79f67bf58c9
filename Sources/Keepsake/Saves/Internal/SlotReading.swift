package import Foundation
package import KeepsakeReplication
package import KeepsakeStore

/// The storage that slots are read from: a store in a game, a device in memory in a simulation.
///
/// For contents that can't be read, it throws ``StoreError`` with `missing` or `damaged`.
package protocol SlotSource: DeviceStorage {
  /// Returns the bytes of a version, after checking each content against its hash.
  func plainBytes(of record: VersionRecord) throws -> Data
  func isPinned(_ id: VersionID) throws -> Bool
  /// Whether the contents are in the cloud, with only the record here.
  func isNotDownloaded(_ record: VersionRecord) throws -> Bool
  /// Returns the versions of a slot that are kept with their contents, newest first.
  func history(of slot: String) throws -> [StoredVersion]
}

extension StoreTransaction: SlotSource {}

/// The heads of a slot with their bytes: read in one transaction, decoded by the caller.
package struct SlotReading: Sendable {
  package struct Side: Sendable {
    package var version: StoredVersion
    var isPinned: Bool
    package var bytes: Data

    /// The version as the game sees it.
    var summary: Version { Version(version, isPinned: isPinned) }
  }
  package struct Damage: Sendable {
    package var version: VersionID
    var usedInstead: VersionID?
    package var message: String
  }
  /// The live heads that can be read, best first; if none can, the newest good version before them.
  package var sides: [Side] = []
  /// The versions that merges of `sides` start from.
  package private(set) var mergeAncestors = MergeAncestors()
  /// The merge ancestors that can be read.
  package private(set) var older: [VersionID: Side] = [:]
  /// The versions that a save replaces if all of `sides` went into it.
  package var parents: [VersionID] = []
  package var damage: [Damage] = []
  /// Live heads that aren't downloaded.
  package var notDownloaded: [VersionRecord] = []

  /// Reads the slot. If it has saves and none can be read, `sides` is empty, and `damage` or `notDownloaded` isn't.
  package static func read(_ slot: String, policy: SavePolicy, in transaction: some SlotSource) throws -> SlotReading {
    // In a conflict, both the view and the ancestors walk through the records; shared, each is decoded once.
    let record = transaction.sharedRecords()
    let view = try Resolution.view(of: slot, in: transaction, policy: policy, record: record)
    var reading = SlotReading(parents: view.parents)
    for head in view.heads {
      do {
        reading.sides.append(try side(head, in: transaction))
      } catch let error as GameDataError where error.code == .notDownloaded {
        reading.notDownloaded.append(head)
      } catch let error as StoreError where error.code == .damaged || error.code == .missing {
        reading.damage.append(Damage(version: head.id, message: error.message))
      }
    }
    let notDownloaded = Set(reading.notDownloaded.map(\.id))
    reading.parents.removeAll(where: notDownloaded.contains)
    // Another device may still have a damaged version intact, so a save that never saw it doesn't replace it.
    if !reading.damage.isEmpty, try transaction.facts().container != nil {
      let damaged = Set(reading.damage.map(\.version))
      reading.parents.removeAll(where: damaged.contains)
    }
    if reading.sides.isEmpty, reading.notDownloaded.isEmpty, !reading.damage.isEmpty {
      try reading.fallBack(slot, in: transaction)
    }
    if transaction.faults.choosesInsteadOfMerging { reading.sides.removeLast(max(0, reading.sides.count - 1)) }
    if reading.sides.count > 1, !transaction.faults.mergesWithoutAncestors {
      let depth = transaction.faults.mergesAncestorsAsStrangers ? 1 : MergeAncestors.maximumDepth
      reading.mergeAncestors = try Resolution.mergeAncestors(
        of: view.heads.map(\.id), policy: policy, depth: depth, record: record)
      try reading.readAncestors(in: transaction)
    }
    return reading
  }

  private mutating func readAncestors(in transaction: some SlotSource) throws {
    for id in mergeAncestors.all {
      guard let record = try transaction.version(id)?.record else { continue }
      do {
        older[id] = try Self.side(record, in: transaction)
      } catch let error as GameDataError where error.code == .notDownloaded {
        continue
      } catch let error as StoreError where error.code == .missing {
        // Of a version from long ago only the record is kept. The sides are merged without it.
        continue
      } catch let error as StoreError where error.code == .damaged {
        damage.append(Damage(version: id, message: error.message))
      }
    }
  }

  /// Reads one version, after checking each content against its hash. Throws `notDownloaded`, too.
  static func side(_ record: VersionRecord, in transaction: some SlotSource) throws -> Side {
    guard let version = try transaction.version(record.id) else {
      throw StoreError(.missing, "the version \(record.id) isn't on this device")
    }
    return Side(
      version: version, isPinned: try transaction.isPinned(record.id), bytes: try bytes(of: record, in: transaction))
  }

  /// Reads only the bytes of one version.
  static func bytes(of record: VersionRecord, in transaction: some SlotSource) throws -> Data {
    do {
      return try transaction.plainBytes(of: record)
    } catch let error as StoreError where error.code == .missing {
      guard try transaction.isNotDownloaded(record) else { throw error }
      throw GameDataError.notDownloaded(record)
    }
  }

  /// Uses the newest version before the heads that can be read.
  private mutating func fallBack(_ slot: String, in transaction: some SlotSource) throws {
    let unreadable = Set(damage.map(\.version))
    for version in try transaction.history(of: slot)
    where !version.record.tombstone && !unreadable.contains(version.record.id) {
      do {
        sides = [try Self.side(version.record, in: transaction)]
        for index in damage.indices { damage[index].usedInstead = version.record.id }
        if !parents.contains(version.record.id) { parents.append(version.record.id) }
        return
      } catch let error as StoreError where error.code == .damaged || error.code == .missing {
        damage.append(Damage(version: version.record.id, message: error.message))
      }
    }
  }
}
