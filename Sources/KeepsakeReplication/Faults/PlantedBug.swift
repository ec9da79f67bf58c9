/// The bugs that a test can plant, by the names that `keepsake simulate --planted` takes. Code that decides asks
/// `Faults` and never names one of these.
package enum PlantedBug: String, Hashable, Sendable, CaseIterable {
  /// The engine says that a save is certain before the storage has committed that.
  case acknowledgeBeforeCommit
  /// A save covers heads that the game never loaded.
  case coverUnloaded
  /// A store that is opened again goes on under its old writer's name.
  case reuseWriter
  /// Pages are shown as they come, before the last one.
  case showHalfPages
  /// A group leaves the outbox when it is sent.
  case forgetWhenSent
  /// What the cloud refuses leaves the outbox.
  case dropRefused
  /// The cloud keeps an echo to itself though it joined something that the sender doesn't have.
  case swallowEcho
  /// The device takes a fork's head for its own.
  case ignoreFork
  /// What an event brings is taken though changes before it were never heard.
  case eventPastGap
  /// An answer is taken whatever request it answers.
  case takeLateAnswer
  /// What was received and not yet shown is thrown away when the store is opened.
  case dropStagedAtOpening
  /// What is staged is shown though contents that it needs aren't here.
  case showWithoutContents
  /// A device that starts again with a restored cloud offers only what was never certain.
  case restartUnacknowledged
  /// The cloud applies the parts of an offer as they come.
  case takePartsAsTheyCome
  /// A device that starts again with a restored cloud offers what it holds group by group, each when its contents are
  /// there.
  case restartInPieces
  /// The values and the saves of one checkpoint travel one after the other.
  case splitGroup
  /// What the cloud refuses takes the rest of its group with it.
  case refuseWhole
  /// The cloud takes a version whose contents it lacks.
  case acceptWithoutContents
  /// The cloud believes a cursor whatever its mark says.
  case ignoreMark
  /// The cloud lifts what is provisional though another head stands.
  case liftProvisional
  /// A fresh install's saves rank like all others.
  case neverProvisional
  /// A reset is joined like any other value.
  case resetLikeValue
  /// A counter's entries are added where they meet.
  case addCounters
  /// The later of two unions replaces the other.
  case replaceUnion
  /// A value's stamp goes by the clock alone, whatever stamp it replaces.
  case stampByClock
  /// A delete hides a save that stands beside it.
  case tombstoneHides
  /// The save that came first is shown.
  case winnerByArrival
  /// Saves are merged as if they had no ancestor.
  case mergeWithoutAncestor
  /// Several ancestors of a merge are made one as if they had nothing in common.
  case mergeAncestorsAsStrangers
  /// One side of a conflict is loaded, and the next save replaces them all.
  case chooseInsteadOfMerge
  /// The cloud takes a device to have seen what it was answered, though the answer may be lost.
  case reachedWhenAnswered
  /// The cloud takes a device to have seen what it has only staged.
  case reachedWhileStaged
  /// The rules for history take from what a conflict's sides come from.
  case thinAncestors
  /// A device lets go of a save that the cloud doesn't have yet.
  case evictUnsent
}
