/// What `load` returns in a conflict, when devices saved a slot without knowing of each other.
///
/// A policy is a view: it writes nothing, and all sides are kept. The game's next save replaces the versions that went
/// into the view. Whatever the view leaves out can be restored from the slot's history.
///
/// Every policy leaves out saves that this program can't read: it chooses among the others, or combines them, and the
/// next save doesn't replace those left out. <doc:Merging> has the complete order in which saves are ranked.
public struct ConflictPolicy<Value>: Sendable {
  enum Kind: Sendable {
    case automatic
    case mostProgress
    case longestPlayed
    case newest
    case ask
    case combining(@Sendable (ConflictingSaves<Value>) throws -> Value)
  }
  let kind: Kind

  /// Merges field by field if the type has merge rules (`@Merge`), and otherwise takes one save as `mostProgress` does.
  /// <doc:Merging> lists the rules.
  public static var automatic: Self { Self(kind: .automatic) }
  /// Takes the save with the greatest `SaveMetadata.progress`, then the longest played, then the newest if all of them
  /// have a common ancestor. Without one, clocks aren't compared: the longer save is taken, which may be the older one.
  public static var mostProgress: Self { Self(kind: .mostProgress) }
  /// Takes the save with the greatest `SaveMetadata.playtime`, then the one with the most progress, then as
  /// `mostProgress` does.
  public static var longestPlayed: Self { Self(kind: .longestPlayed) }
  /// Takes the save made last, by the devices' clocks, if all of them have a common ancestor; otherwise as
  /// `mostProgress` does.
  public static var newest: Self { Self(kind: .newest) }
  /// Takes the save that `mostProgress` would take, until the player has chosen: see `SaveSlots.conflict` and
  /// `resolve`.
  public static var ask: Self { Self(kind: .ask) }
  /// Combines the saves with a function that the game provides.
  ///
  /// - Parameter combine: Makes one value of the saves that can be read. Must give the same result on every device. Not
  ///   called if only one save can be read.
  /// - Returns: The policy.
  public static func combining(_ combine: @escaping @Sendable (ConflictingSaves<Value>) throws -> Value) -> Self {
    Self(kind: .combining(combine))
  }
}

/// The input of `ConflictPolicy.combining`.
public struct ConflictingSaves<Value> {
  /// At least two values, the one with the most progress first. Saves that this program can't read aren't included.
  public var values: [Value]
  /// The version of each value, in the same order.
  public var versions: [Version]
  /// The nearest version that all saves descend from, if it is known on this device.
  public var ancestor: Value?
}
