/// What `load` gives when two devices saved the same slot without knowing of each other.
///
/// A policy is a view: it writes nothing, and both sides are kept. The game's next save replaces what went into the view.
/// Whatever it leaves out can be brought back from the slot's history.
public struct ConflictPolicy<Value: Archivable>: Sendable {
  enum Kind: Sendable {
    case automatic
    case mostProgress
    case longestPlayed
    case newest
    case ask
    case combining(@Sendable (ConflictingSaves<Value>) throws -> Value)
  }
  let kind: Kind

  /// Merges field by field where the type says how (`@Merge`), else takes the save with the most progress. <doc:Merging> has the rules.
  public static var automatic: Self { Self(kind: .automatic) }
  /// The save with the greatest `SaveMetadata.progress`, then the longest played, then the newest of one lineage.
  public static var mostProgress: Self { Self(kind: .mostProgress) }
  /// The save with the greatest `SaveMetadata.playtime`.
  public static var longestPlayed: Self { Self(kind: .longestPlayed) }
  /// The save made last, by the devices' clocks; where the saves have no common ancestor, progress decides instead.
  public static var newest: Self { Self(kind: .newest) }
  /// One save, the same on every device, until the player has chosen: see `SaveSlots.conflict` and `resolve`.
  public static var ask: Self { Self(kind: .ask) }
  /// The game's own way to make one of several. Has to give equal results on every device. Not asked where only one of them can be read.
  public static func combining(_ combine: @escaping @Sendable (ConflictingSaves<Value>) throws -> Value) -> Self {
    Self(kind: .combining(combine))
  }
}

/// What a policy of the game's own is given.
public struct ConflictingSaves<Value> {
  /// Two or more, the best by progress first. Those that this program can't read, because a newer one made them, aren't among them.
  public var values: [Value]
  /// What each of `values` was saved with.
  public var versions: [Version]
  /// What all of them came from, if it is known here.
  public var ancestor: Value?
}
