import Testing

@testable import KeepsakeReplication

/// The value from which the decision code learns which bugs are planted.
struct FaultsTests {
  static var predicates: [PlantedBug: KeyPath<Faults, Bool>] {
    [
      .acknowledgeBeforeCommit: \.acknowledgesBeforeCommit,
      .showHalfPages: \.showsHalfPages,
      .showWithoutContents: \.showsWithoutContents,
      .takeLateAnswer: \.takesLateAnswers,
      .eventPastGap: \.takesEventsPastGaps,
      .forgetWhenSent: \.forgetsWhenSent,
      .dropRefused: \.dropsRefused,
      .refuseWhole: \.refusesWholeGroups,
      .splitGroup: \.splitsGroups,
      .ignoreFork: \.ignoresForks,
      .restartUnacknowledged: \.offersOnlyUnacknowledged,
      .restartInPieces: \.offersInPieces,
      .coverUnloaded: \.coversUnloaded,
      .reuseWriter: \.reusesWriters,
      .dropStagedAtOpening: \.dropsStagedAtOpening,
      .neverProvisional: \.ranksAllSavesAlike,
      .stampByClock: \.stampsByClockAlone,
      .thinAncestors: \.prunesAncestors,
      .evictUnsent: \.evictsUnsent,
      .swallowEcho: \.swallowsEchoes,
      .takePartsAsTheyCome: \.takesPartsAsTheyCome,
      .acceptWithoutContents: \.acceptsWithoutContents,
      .ignoreMark: \.ignoresMarks,
      .pruneWhereDevicesAre: \.prunesWhereDevicesAre, .pruneWithoutHeir: \.prunesWithoutHeirs,
      .liftProvisional: \.liftsProvisional,
      .reachedWhenAnswered: \.countsAnsweredAsReached,
      .reachedWhileStaged: \.countsStagedAsReached,
      .forgetSetBack: \.forgetsSetBacks,
      .lateIsSetBack: \.countsLateAsSetBack,
      .resetLikeValue: \.joinsResetsLikeValues,
      .addCounters: \.addsCounters,
      .replaceUnion: \.replacesUnions,
      .tombstoneHides: \.hidesBesideTombstones,
      .winnerByArrival: \.showsFirstArrival,
      .mergeWithoutAncestor: \.mergesWithoutAncestors,
      .mergeAncestorsAsStrangers: \.mergesAncestorsAsStrangers,
      .chooseInsteadOfMerge: \.choosesInsteadOfMerging,
      .ignoreHeadBeyondBatch: \.ignoresHeadsBeyondBatch,
      .takeOldStatement: \.takesOldStatements,
      .forgetWaiting: \.forgetsWaiting,
      .loseVerdict: \.losesVerdicts,
      .acceptReusedID: \.acceptsReusedIDs,
      .chargeLateTwice: \.chargesLateTwice,
      .declineThoughCovered: \.declinesThoughCovered,
      .splitLateGroup: \.splitsLateGroups,
      .countUnshownChain: \.countsUnshownChains,
      .removedChainKeepsRights: \.keepsRightsOfRemoved,
      .recallWhatIsSpent: \.recallsWhatIsSpent,
      .offerToSecondBank: \.offersToSecondBanks,
      .payVoucherTwice: \.paysVouchersTwice,
      .payClaimAfterAdoption: \.paysClaimsAfterAdoption,
      .refundTwice: \.refundsTwice,
      .payReceiptTwice: \.paysReceiptsTwice,
      .frozenBankGrants: \.grantsWhileFrozen,
      .forgetProof: \.forgetsProofs,
    ]
  }

  @Test("without a planted bug every predicate is false")
  func none() {
    #expect(Faults().isEmpty)
    for (bug, predicate) in Self.predicates { #expect(!Faults()[keyPath: predicate], "\(bug)") }
  }

  @Test("a planted bug makes its own predicate true, and no other", arguments: PlantedBug.allCases)
  func one(bug: PlantedBug) {
    let faults = Faults(planting: [bug])
    #expect(!faults.isEmpty)
    let trueOnes = Self.predicates.filter { faults[keyPath: $0.value] }.map(\.key)
    #expect(trueOnes == [bug])
  }

  @Test("several bugs can be planted together")
  func several() {
    let faults = Faults(planting: [.showHalfPages, .evictUnsent])
    #expect(faults.showsHalfPages && faults.evictsUnsent && !faults.splitsGroups)
  }

  @Test("without faults, or with unrelated ones, a join gives its normal result")
  func join() {
    let (left, right) = (counter(2, by: 1), counter(3, by: 2))
    #expect(left.joined(with: right, under: Faults()) == left.joined(with: right))
    #expect(left.joined(with: right, under: Faults(planting: [.showHalfPages])) == left.joined(with: right))
  }

  @Test("counters are added instead of joined if that bug is planted")
  func addedCounters() {
    let state = counter(2, by: 1)
    let later = counter(3, by: 1)
    #expect(state.joined(with: later) == later)
    #expect(state.joined(with: later, under: Faults(planting: [.addCounters])) == counter(5, by: 1))
  }

  @Test("a reset is joined like any other value if that bug is planted")
  func joinedReset() {
    let state = counter(7, by: 1)
    let reset = CellState(generation: state.generation + 1, value: .counter([:]))
    #expect(state.joined(with: reset) == reset)
    #expect(state.joined(with: reset, under: Faults(planting: [.resetLikeValue])).value == state.value)
  }

  private func counter(_ plus: UInt64, by device: UInt64) -> CellState {
    CellState(generation: 0, value: .counter([WriterID(device): CounterEntry(plus: plus, minus: 0)]))
  }
}
