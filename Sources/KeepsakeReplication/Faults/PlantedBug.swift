/// The bugs that a test can plant, with the names that `keepsake simulate --planted` accepts. Code consults `Faults`
/// and never names one of these.
package enum PlantedBug: String, Hashable, Sendable, CaseIterable {
  /// The engine reports a save as certain before the storage has committed that.
  case acknowledgeBeforeCommit
  /// A save covers heads that the game never loaded.
  case coverUnloaded
  /// A store that is opened again keeps writing under its old writer's name.
  case reuseWriter
  /// Pages are shown as they arrive, before the last one.
  case showHalfPages
  /// A group leaves the outbox when it is sent.
  case forgetWhenSent
  /// What the cloud refuses is removed from the outbox.
  case dropRefused
  /// The cloud omits an echo although it joined something that the sender doesn't have.
  case swallowEcho
  /// The device adopts a fork's head as its own.
  case ignoreFork
  /// An event is applied although changes before it were never fetched.
  case eventPastGap
  /// A response is accepted whatever request it responds to.
  case takeLateAnswer
  /// What was received and not yet shown is discarded when the store is opened.
  case dropStagedAtOpening
  /// Staged changes are shown although contents that they need aren't here.
  case showWithoutContents
  /// A device that starts over with a restored cloud offers only what was never certain.
  case restartUnacknowledged
  /// The cloud applies the parts of an offer as they arrive.
  case takePartsAsTheyCome
  /// A device that starts over with a restored cloud offers what it holds group by group, each when its contents are
  /// there.
  case restartInPieces
  /// The values and the saves of one checkpoint are sent one after the other.
  case splitGroup
  /// A refusal by the cloud affects the rest of the group, too.
  case refuseWhole
  /// The cloud accepts a version whose contents it lacks.
  case acceptWithoutContents
  /// The cloud trusts a cursor whatever its mark.
  case ignoreMark
  /// The cloud prunes versions from which a device may still continue.
  case pruneWhereDevicesAre
  /// The cloud prunes versions without handing on what they cover.
  case pruneWithoutHeir
  /// The cloud stops a version from being provisional although there is another head.
  case liftProvisional
  /// A fresh install's saves rank like all others.
  case neverProvisional
  /// A reset is joined like any other value.
  case resetLikeValue
  /// A counter's entries are added when they are joined.
  case addCounters
  /// The later of two unions replaces the other.
  case replaceUnion
  /// A value's stamp depends on the clock alone, whatever stamp it replaces.
  case stampByClock
  /// A delete hides a save that is a head beside it.
  case tombstoneHides
  /// The save that arrived first is shown.
  case winnerByArrival
  /// Saves are merged as if they had no ancestor.
  case mergeWithoutAncestor
  /// Several ancestors of a merge are merged as if they had nothing in common.
  case mergeAncestorsAsStrangers
  /// One side of a conflict is loaded, and the next save replaces all sides.
  case chooseInsteadOfMerge
  /// The cloud considers a device to have seen what it responded, although the response may be lost.
  case reachedWhenAnswered
  /// The cloud considers a device to have seen what it has only staged.
  case reachedWhileStaged
  /// The cloud ignores that a device confirms that its store went back to an older state.
  case forgetSetBack
  /// The cloud takes a request that arrives late for one of a store that went back to an older state.
  case lateIsSetBack
  /// Pruning removes versions that a conflict's sides come from.
  case thinAncestors
  /// A device removes a save that the cloud doesn't have yet.
  case evictUnsent
  /// A wallet ignores that the bank has more of its chain than one batch.
  case ignoreHeadBeyondBatch
  /// A late spend that comes again is charged again.
  case chargeLateTwice
  /// A late spend is declined although the balance covers it.
  case declineThoughCovered
  /// The operations of one checkpoint count one by one if they come late.
  case splitLateGroup
  /// Another operation under a known id counts as a repeat.
  case acceptReusedID
  /// A wallet takes an older statement of the bank for the newest.
  case takeOldStatement
  /// What a chain holds counts before a device has shown its first statement.
  case countUnshownChain
  /// The chain of a removed device keeps its rights.
  case removedChainKeepsRights
  /// A wallet forgets the spends that wait at the bank.
  case forgetWaiting
  /// What a purchase needs is recalled for another device.
  case recallWhatIsSpent
  /// The bank's verdict is told once, and kept nowhere.
  case loseVerdict
  /// A store that joins another player offers the new bank what it had offered the old one.
  case offerToSecondBank
  /// A voucher that is shown again is paid again.
  case payVoucherTwice
  /// A bank ignores which claims a voucher's bank has paid.
  case payClaimAfterAdoption
  /// A purchase is refunded as often as that is ordered.
  case refundTwice
  /// A receipt is paid as often as it is handed in.
  case payReceiptTwice
  /// A bank that was set back grants rights before all devices have shown what it had granted.
  case frozenBankGrants
  /// A bank that was set back ignores what a statement shows that it had granted.
  case forgetProof

  /// What a world has to be about for the bug to have an effect often; nil if any world will do.
  var subject: Faults.Subject? {
    switch self {
    case .ignoreHeadBeyondBatch, .chargeLateTwice, .declineThoughCovered, .splitLateGroup, .acceptReusedID,
      .takeOldStatement, .countUnshownChain, .removedChainKeepsRights, .forgetWaiting, .recallWhatIsSpent, .loseVerdict,
      .offerToSecondBank, .payVoucherTwice, .payClaimAfterAdoption, .refundTwice, .payReceiptTwice, .frozenBankGrants,
      .forgetProof:
      .money
    case .mergeAncestorsAsStrangers, .pruneWhereDevicesAre: .documents
    default: nil
    }
  }
}
