import Foundation
import KeepsakeReplication
import KeepsakeStore

/// What stands in a slot, with its bytes: read in one go, decoded by the caller.
struct SlotReading: Sendable {
  struct Side: Sendable {
    var version: StoredVersion
    var isPinned: Bool
    var bytes: Data

    /// As the game is told of it.
    var summary: Version { Version(version, isPinned: isPinned) }
  }
  struct Damage: Sendable {
    var version: VersionID
    var usedInstead: VersionID?
    var message: String
  }
  /// The live heads that can be read, best first; where none can, the newest good version before them.
  var sides: [Side] = []
  var ancestors: [Side] = []
  /// Every head that a save replaces which saw them all.
  var basis: [VersionID] = []
  var damage: [Damage] = []

  /// Reads the slot. Throws `StoreError.Code.damaged` if nothing of it can be read, though there is something.
  static func read(_ slot: String, policy: SavePolicy, in transaction: StoreTransaction) throws -> SlotReading {
    let view = try Resolution.view(of: slot, in: transaction, policy: policy)
    var reading = SlotReading(basis: view.basis)
    for head in view.heads {
      do {
        reading.sides.append(try side(head, in: transaction))
      } catch let error as StoreError where error.code == .damaged || error.code == .missing {
        reading.damage.append(Damage(version: head.id, message: error.message))
      }
    }
    // What another device can still bring back whole is not replaced by a save that never saw it.
    if !reading.damage.isEmpty, try transaction.facts().container != nil {
      let damaged = Set(reading.damage.map(\.version))
      reading.basis.removeAll(where: damaged.contains)
    }
    if reading.sides.isEmpty, !reading.damage.isEmpty { try reading.fallBack(slot, in: transaction) }
    if reading.sides.count > 1 {
      for id in view.ancestors {
        guard let record = try transaction.version(id)?.record else { continue }
        do {
          reading.ancestors.append(try side(record, in: transaction))
        } catch let error as StoreError where error.code == .missing {
          // Of a version from long ago only the record is kept: the sides are merged without it.
          continue
        } catch let error as StoreError where error.code == .damaged {
          reading.damage.append(Damage(version: id, message: error.message))
        }
      }
    }
    return reading
  }

  /// The bytes of one version, each content checked against its hash.
  static func side(_ record: VersionRecord, in transaction: StoreTransaction) throws -> Side {
    guard let version = try transaction.version(record.id) else {
      throw StoreError(.missing, "the version \(record.id) isn't here")
    }
    return Side(version: version, isPinned: try transaction.isPinned(record.id), bytes: try transaction.plainBytes(of: record))
  }

  /// The newest version before the heads that can be read.
  private mutating func fallBack(_ slot: String, in transaction: StoreTransaction) throws {
    let unreadable = Set(damage.map(\.version))
    for version in try transaction.history(of: slot)
    where !version.record.tombstone && !unreadable.contains(version.record.id) {
      do {
        sides = [try Self.side(version.record, in: transaction)]
        for index in damage.indices { damage[index].usedInstead = version.record.id }
        if !basis.contains(version.record.id) { basis.append(version.record.id) }
        return
      } catch let error as StoreError where error.code == .damaged || error.code == .missing {
        damage.append(Damage(version: version.record.id, message: error.message))
      }
    }
  }
}
