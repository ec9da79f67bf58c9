import Foundation
import KeepsakeReplication

/// What the games of a world did, as an outside observer writes it down: what the checks compare with.
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
    /// Made on a store that was later set back to a backup: may be gone.
    var mayBeGone = false
  }

  /// One thing that was done to the set `World.favourites`.
  struct Favourite {
    var element: Scalar
    /// The name of the addition; nil where the element was taken out.
    var addition: Scalar?
    /// The names of all additions that the device had heard of when it took the element out.
    var seen: Set<Scalar>
    /// Its place in `writes`.
    var write: Int
  }

  var favourites: [Favourite] = []
  /// How many names were given to additions.
  var additions: Int64 = 0
  var writes: [(write: Write, mayBeGone: Bool)] = []
  /// Of `writes`, saves that were in the cloud when their device was set back: from then on a restored cloud may lose them.
  var leftToCloud: [Int] = []
  var versions: [VersionID: Made] = [:]
  /// Versions made next on the same device, or by games that had seen the key.
  var successors: [VersionID: [VersionID]] = [:]
  var operations: [OperationID: WalletOperation] = [:]
  var operationMayBeGone: Set<OperationID> = []
  /// What each version of the documents' slot knows of what was done, itself or by those it comes from.
  var known: [VersionID: Set<Int>] = [:]
  var deeds: [Deed] = []
  /// Versions that a game made of a merge of which an ancestor was missing, so that what was removed may have come back.
  var uncertain: Set<VersionID> = []
  /// Versions that a game made of a merge that had several ancestors, or that come from such.
  var crossed: Set<VersionID> = []
  /// By version: what its game was shown of a merge though something later was written there, because what both had replaced was disputed.
  var carriedAlong: [VersionID: Set<Int>] = [:]
  /// What was written to `World.season`: its place in `writes`, the generation that it began or belongs to, and the value.
  var seasons: [(write: Int, generation: UInt64, value: Scalar)] = []
  /// Which save was shown first for heads under a policy, by any device.
  var winners: [ShownHeads: VersionID?] = [:]
  /// The document that was shown first for heads of which these ancestors were there, by any device.
  var gardens: [MergedHeads: Data] = [:]

  struct ShownHeads: Hashable {
    var policy: SavePolicy
    var heads: [VersionRecord]
    var related: Bool
  }

  struct MergedHeads: Hashable {
    var heads: [VersionRecord]
    /// Those that can be read, and all of which the record is known: a merge doesn't look past one that is gone. The records rank them.
    var ancestors: Set<VersionID>
    var known: [VersionRecord]
  }

  /// One thing that was done to a document.
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
    /// What its game knew of when it was done.
    var known: Set<Int>
  }
}
