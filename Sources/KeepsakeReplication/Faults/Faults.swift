/// The bugs planted in a storage, to check that tests find them; there are none in any production storage.
///
/// Code that decides anything based on a storage consults its faults. Each predicate names the misbehaviour of the code
/// while it is true, and is false immediately if nothing is planted.
package struct Faults: Hashable, Sendable {
  private let planted: Set<PlantedBug>

  /// Creates no faults.
  package init() { planted = [] }

  /// Creates the faults for these bugs.
  ///
  /// - Parameter bugs: What a test is expected to find.
  package init(planting bugs: Set<PlantedBug>) { planted = bugs }

  /// Whether nothing is planted.
  package var isEmpty: Bool { planted.isEmpty }

  /// What a simulated world can be mostly about.
  package enum Subject: Sendable {
    case money
    case documents
  }

  /// What a world has to be about for the planted bugs to have effects often; nil if any world will do.
  package var subject: Subject? { planted.lazy.compactMap(\.subject).first }

  // MARK: The device's engine

  package var acknowledgesBeforeCommit: Bool { planted.contains(.acknowledgeBeforeCommit) }
  package var showsHalfPages: Bool { planted.contains(.showHalfPages) }
  package var showsWithoutContents: Bool { planted.contains(.showWithoutContents) }
  package var takesLateAnswers: Bool { planted.contains(.takeLateAnswer) }
  package var takesEventsPastGaps: Bool { planted.contains(.eventPastGap) }
  package var forgetsWhenSent: Bool { planted.contains(.forgetWhenSent) }
  package var dropsRefused: Bool { planted.contains(.dropRefused) }
  package var refusesWholeGroups: Bool { planted.contains(.refuseWhole) }
  package var splitsGroups: Bool { planted.contains(.splitGroup) }
  package var ignoresForks: Bool { planted.contains(.ignoreFork) }
  package var offersOnlyUnacknowledged: Bool { planted.contains(.restartUnacknowledged) }
  package var offersInPieces: Bool { planted.contains(.restartInPieces) }

  // MARK: What a device commits, opens and prunes

  package var coversUnloaded: Bool { planted.contains(.coverUnloaded) }
  package var reusesWriters: Bool { planted.contains(.reuseWriter) }
  package var dropsStagedAtOpening: Bool { planted.contains(.dropStagedAtOpening) }
  package var ranksAllSavesAlike: Bool { planted.contains(.neverProvisional) }
  package var stampsByClockAlone: Bool { planted.contains(.stampByClock) }
  package var prunesAncestors: Bool { planted.contains(.thinAncestors) }
  package var evictsUnsent: Bool { planted.contains(.evictUnsent) }

  // MARK: The cloud's acceptance

  package var swallowsEchoes: Bool { planted.contains(.swallowEcho) }
  package var takesPartsAsTheyCome: Bool { planted.contains(.takePartsAsTheyCome) }
  package var acceptsWithoutContents: Bool { planted.contains(.acceptWithoutContents) }
  package var ignoresMarks: Bool { planted.contains(.ignoreMark) }
  package var prunesWhereDevicesAre: Bool { planted.contains(.pruneWhereDevicesAre) }
  /// Whether the bugs have an effect only where a cloud prunes.
  package var isAboutPruning: Bool { prunesWhereDevicesAre || prunesWithoutHeirs }
  package var prunesWithoutHeirs: Bool { planted.contains(.pruneWithoutHeir) }
  package var liftsProvisional: Bool { planted.contains(.liftProvisional) }
  package var countsAnsweredAsReached: Bool { planted.contains(.reachedWhenAnswered) }
  package var countsStagedAsReached: Bool { planted.contains(.reachedWhileStaged) }
  package var forgetsSetBacks: Bool { planted.contains(.forgetSetBack) }
  package var countsLateAsSetBack: Bool { planted.contains(.lateIsSetBack) }

  // MARK: Joins, heads and merges

  package var joinsResetsLikeValues: Bool { planted.contains(.resetLikeValue) }
  package var addsCounters: Bool { planted.contains(.addCounters) }
  package var replacesUnions: Bool { planted.contains(.replaceUnion) }
  package var hidesBesideTombstones: Bool { planted.contains(.tombstoneHides) }
  package var showsFirstArrival: Bool { planted.contains(.winnerByArrival) }
  package var mergesWithoutAncestors: Bool { planted.contains(.mergeWithoutAncestor) }
  package var mergesAncestorsAsStrangers: Bool { planted.contains(.mergeAncestorsAsStrangers) }
  package var choosesInsteadOfMerging: Bool { planted.contains(.chooseInsteadOfMerge) }

  // MARK: The wallet and its bank

  package var ignoresHeadsBeyondBatch: Bool { planted.contains(.ignoreHeadBeyondBatch) }
  package var takesOldStatements: Bool { planted.contains(.takeOldStatement) }
  package var forgetsWaiting: Bool { planted.contains(.forgetWaiting) }
  package var losesVerdicts: Bool { planted.contains(.loseVerdict) }
  package var acceptsReusedIDs: Bool { planted.contains(.acceptReusedID) }
  package var chargesLateTwice: Bool { planted.contains(.chargeLateTwice) }
  package var declinesThoughCovered: Bool { planted.contains(.declineThoughCovered) }
  package var splitsLateGroups: Bool { planted.contains(.splitLateGroup) }
  package var countsUnshownChains: Bool { planted.contains(.countUnshownChain) }
  package var keepsRightsOfRemoved: Bool { planted.contains(.removedChainKeepsRights) }
  package var recallsWhatIsSpent: Bool { planted.contains(.recallWhatIsSpent) }
  package var offersToSecondBanks: Bool { planted.contains(.offerToSecondBank) }
  package var paysVouchersTwice: Bool { planted.contains(.payVoucherTwice) }
  package var paysClaimsAfterAdoption: Bool { planted.contains(.payClaimAfterAdoption) }
  /// Whether the bugs have an effect only where money moves between banks.
  package var isAboutVouchers: Bool { offersToSecondBanks || paysVouchersTwice || paysClaimsAfterAdoption }
  package var refundsTwice: Bool { planted.contains(.refundTwice) }
  package var paysReceiptsTwice: Bool { planted.contains(.payReceiptTwice) }
  package var grantsWhileFrozen: Bool { planted.contains(.frozenBankGrants) }
  package var forgetsProofs: Bool { planted.contains(.forgetProof) }
}

extension CellState {
  /// Returns the join, or what faults turn it into.
  ///
  /// - Parameters:
  ///   - other: The state to join with.
  ///   - faults: The faults planted in the storage.
  /// - Returns: The joined state.
  func joined(with other: CellState, under faults: Faults) -> CellState {
    guard !faults.isEmpty else { return joined(with: other) }
    if faults.joinsResetsLikeValues, generation != other.generation {
      return CellState(generation: max(generation, other.generation), value: value.joined(with: other.value))
    }
    switch (value, other.value) {
    case (.counter(let left), .counter(let right)) where faults.addsCounters && self != other:
      let sums = left.merging(right) { CounterEntry(plus: $0.plus &+ $1.plus, minus: $0.minus &+ $1.minus) }
      return CellState(generation: max(generation, other.generation), value: .counter(sums))
    case (.union, .union) where faults.replacesUnions: return other
    default: return joined(with: other)
    }
  }
}
