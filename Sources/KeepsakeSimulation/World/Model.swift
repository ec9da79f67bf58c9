import Foundation
import KeepsakeReplication

/// What the games of a world did, as recorded by an outside observer: the reference for the checks.
struct Model {
  enum Write {
    case version(VersionID)
    case cell(CellKey, CellDraft.Change)
    case operation(OperationID)
  }

  struct Made {
    var slot: String
    var device: Int
    /// What the game had seen when it saved: loaded, listed, or saved itself.
    var seen: Set<VersionID>
    /// The commit also put the id into the set `World.elements`.
    var paired: Bool
    /// Made on a store that was later rolled back to a backup, so it may be gone.
    var mayBeGone = false
  }

  /// One change of the set `World.favourites`.
  struct Favourite {
    var element: Scalar
    /// The name of the addition; nil if the element was removed.
    var addition: Scalar?
    /// The names of all additions that the device knew when it removed the element.
    var seen: Set<Scalar>
    /// Its index in `writes`.
    var write: Int
  }

  var favourites: [Favourite] = []
  /// The number of names that were given to additions.
  var additions: Int64 = 0
  var writes: [(write: Write, mayBeGone: Bool)] = []
  /// Indices in `writes` of saves that were in the cloud when their device was rolled back: from then on, restoring the
  /// cloud may lose them.
  var leftToCloud: [Int] = []
  var versions: [VersionID: Made] = [:]
  /// Versions that the same device made next, or that were made by games that had seen the key.
  var successors: [VersionID: [VersionID]] = [:]
  var operations: [OperationID: WalletOperation] = [:]
  var operationMayBeGone: Set<OperationID> = []
  /// The operations that were performed together, and have to count together.
  var groups: [[OperationID]] = []
  /// The deeds that each version of the documents' slot knows, its own and those of the versions it comes from.
  var known: [VersionID: Set<Int>] = [:]
  var deeds: [Deed] = []
  /// Versions that a game made from a merge that lacked an ancestor, so that what was removed may have come back.
  var uncertain: Set<VersionID> = []
  /// Versions that a game made from a merge with several ancestors, or that come from such a version.
  var crossed: Set<VersionID> = []
  /// By version: what a merge showed its game although something later was written there, because what both had
  /// replaced was disputed.
  var carriedAlong: [VersionID: Set<Int>] = [:]
  /// What was written to `World.season`: its index in `writes`, the generation that it began or belongs to, and the
  /// value.
  var seasons: [(write: Int, generation: UInt64, value: Scalar)] = []
  /// The save that any device showed first, for given heads under a policy.
  var winners: [ShownHeads: VersionID?] = [:]
  /// The document that any device showed first, for given heads and available ancestors.
  var gardens: [MergedHeads: Data] = [:]

  struct ShownHeads: Hashable {
    var policy: SavePolicy
    var heads: [VersionRecord]
    var related: Bool
  }

  struct MergedHeads: Hashable {
    var heads: [VersionRecord]
    /// The ancestors that can be read, and all ancestors whose record is known: a merge doesn't look past one that is
    /// gone. The records rank them.
    var ancestors: Set<VersionID>
    var known: [VersionRecord]
  }

  /// One change of a document: see ``Plot``.
  struct Deed {
    enum Kind {
      case water(Int)
      case grow(Int)
      case bloom(Int)
      case hang
      case takeOff(Int)
      case plant
      case pull(Int)
      case label(String)
      case move
    }
    var kind: Kind
    /// The deeds that its game knew when it was done.
    var known: Set<Int>
  }
}
