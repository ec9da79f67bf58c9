package import Foundation
package import KeepsakeReplication
package import KeepsakeStore

/// Where a slot is read: a store in a game, a device in memory in a simulation.
///
/// What can't be read is a ``StoreError`` that is `missing` or `damaged`.
package protocol SlotSource: DeviceStorage {
  /// The bytes of a version, each content checked against its hash.
  func plainBytes(of record: VersionRecord) throws -> Data
  func isPinned(_ id: VersionID) throws -> Bool
  /// Whether only the record is here, and the rest is to be had from the cloud.
  func isNotDownloaded(_ record: VersionRecord) throws -> Bool
  /// The versions of a slot that are kept whole, newest first.
  func history(of slot: String) throws -> [StoredVersion]
}

extension StoreTransaction: SlotSource {}

/// What stands in a slot, with its bytes: read in one go, decoded by the caller.
package struct SlotReading: Sendable {
  package struct Side: Sendable {
    package var version: StoredVersion
    var isPinned: Bool
    package var bytes: Data

    /// As the game is told of it.
    var summary: Version { Version(version, isPinned: isPinned) }
  }
  package struct Damage: Sendable {
    package var version: VersionID
    var usedInstead: VersionID?
    package var message: String
  }
  /// The live heads that can be read, best first; where none can, the newest good version before them.
  package var sides: [Side] = []
  /// From which versions a merge of some of `sides` starts.
  package private(set) var mergeAncestors = MergeAncestors()
  /// Those of them that can be read.
  package private(set) var older: [VersionID: Side] = [:]
  /// Every head that a save replaces which saw them all.
  package var parents: [VersionID] = []
  package var damage: [Damage] = []
  /// Live heads of which only the record is here.
  package var notDownloaded: [VersionRecord] = []

  /// Reads the slot. Throws `StoreError.Code.damaged` if nothing of it can be read, though there is something.
  package static func read(_ slot: String, policy: SavePolicy, in transaction: some SlotSource) throws -> SlotReading {
    // In a conflict both the view and the ancestors walk through them: each is decoded once.
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
    // What another device can still bring back whole is not replaced by a save that never saw it.
    if !reading.damage.isEmpty, try transaction.facts().container != nil {
      let damaged = Set(reading.damage.map(\.version))
      reading.parents.removeAll(where: damaged.contains)
    }
    if reading.sides.isEmpty, reading.notDownloaded.isEmpty, !reading.damage.isEmpty { try reading.fallBack(slot, in: transaction) }
    if transaction.faults.choosesInsteadOfMerging { reading.sides.removeLast(max(0, reading.sides.count - 1)) }
    if reading.sides.count > 1, !transaction.faults.mergesWithoutAncestors {
      let depth = transaction.faults.mergesAncestorsAsStrangers ? 1 : MergeAncestors.maximumDepth
      reading.mergeAncestors = try Resolution.mergeAncestors(of: view.heads.map(\.id), policy: policy, depth: depth, record: record)
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
        // Of a version from long ago only the record is kept: the sides are merged without it.
        continue
      } catch let error as StoreError where error.code == .damaged {
        damage.append(Damage(version: id, message: error.message))
      }
    }
  }

  /// The bytes of one version, each content checked against its hash. Throws `notDownloaded` as well.
  static func side(_ record: VersionRecord, in transaction: some SlotSource) throws -> Side {
    guard let version = try transaction.version(record.id) else {
      throw StoreError(.missing, "the version \(record.id) isn't here")
    }
    return Side(version: version, isPinned: try transaction.isPinned(record.id), bytes: try bytes(of: record, in: transaction))
  }

  /// The same, alone.
  static func bytes(of record: VersionRecord, in transaction: some SlotSource) throws -> Data {
    do {
      return try transaction.plainBytes(of: record)
    } catch let error as StoreError where error.code == .missing {
      guard try transaction.isNotDownloaded(record) else { throw error }
      throw GameDataError.notDownloaded(record)
    }
  }

  /// The newest version before the heads that can be read.
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
