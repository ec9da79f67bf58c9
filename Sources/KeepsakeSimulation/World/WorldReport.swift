/// What a simulated world did and found.
package struct WorldReport: Hashable, Sendable {
  package var seed: UInt64
  /// A hash of everything that happened, in order: the same seed gives the same hash.
  package var trace: UInt64 = 0xCBF2_9CE4_8422_2325
  /// What happened, in words, if requested.
  package var lines: [String] = []
  /// What must never happen, and did.
  package var violations: [String] = []
  package var statistics = WorldStatistics()
}

/// How often the rare paths were taken: a simulation that never reaches them proves nothing about them.
package struct WorldStatistics: Hashable, Sendable {
  package var worlds = 0
  package var devices = 0
  package var operations = 0
  package var saves = 0
  package var exchanges = 0
  package var conflicts = 0
  package var crashesBeforeCommit = 0
  package var crashesAfterCommit = 0
  package var reopened = 0
  package var copies = 0
  package var rollbacks = 0
  package var partitions = 0
  package var lostRequests = 0
  package var lostAnswers = 0
  package var doubled = 0
  package var lateAnswers = 0
  package var serverRestores = 0
  package var restarts = 0
  /// Times that a device learned from an event that the cloud was restored, and parts of offers that the cloud kept.
  package var restartsAnnounced = 0
  package var partsHeld = 0
  package var refusals = 0
  package var pages = 0
  package var steps = 0
  /// Times that a game applied what had been held back.
  package var deliveries = 0
  package var uploads = 0
  package var downloads = 0
  /// Content transfers that began while the device had another one in progress, and exchanges that ran beside content
  /// transfers.
  package var transfersBeside = 0
  package var exchangesBeside = 0
  /// Crashes with three or more content transfers in progress.
  package var crashesInFlight = 0
  package var missingContents = 0
  package var forks = 0
  package var recalls = 0
  package var spends = 0
  package var spendsRefused = 0
  /// Operations performed again under their ids, by themselves or with another amount; purchases that the bank was
  /// asked for; replies with spends that had to wait.
  package var repeats = 0
  package var needs = 0
  package var waits = 0
  package var removals = 0
  /// Orders of the game's own servers, with those that were repeated.
  package var orders = 0
  /// Times that a guest's wallet was adopted or a guest's store joined the devices, and vouchers that were paid.
  package var moves = 0
  package var vouchers = 0
  package var declined = 0
  package var claimsDeclined = 0
  package var provisional = 0
  package var deletes = 0
  package var resets = 0
  /// Removals from the set. Additions that stayed, because the device that removed the element hadn't seen them, are
  /// counted in `additionsKept`.
  package var takenOut = 0
  /// Loads of documents; of these, those that merged several; of these, those that lacked an ancestor; and those that
  /// had several and lacked none.
  package var documents = 0
  package var merges = 0
  package var mergesUncertain = 0
  package var mergesCrossed = 0
  /// Versions of which devices kept only the record; versions that the cloud removed, and ids that it forgot.
  package var pruned = 0
  package var prunedInCloud = 0
  package var forgottenInCloud = 0
  package var additionsKept = 0
  package var skewedClocks = 0
  /// Loads of saves that were left in the cloud, saves that were requested and arrived, and saves that were evicted.
  package var leftInTheCloud = 0
  package var askedFor = 0
  package var evicted = 0
  /// Checks of a device that was reported to have a save.
  package var seen = 0
  /// The most exchanges that one device needed after the last save of any device, not counting polls; over several
  /// worlds, the sum of these.
  package var mostExchangesAfterLastWrite = 0
  /// The same for the last earning.
  package var mostExchangesForMoney = 0

  package init() {}

  /// Every count with its name, in the order of declaration.
  package var counts: [(name: String, count: Int)] {
    Mirror(reflecting: self).children.compactMap { child in
      guard let name = child.label, let count = child.value as? Int else { return nil }
      return (name, count)
    }
  }

  package static func + (left: Self, right: Self) -> Self {
    var sum = left
    for path in paths { sum[keyPath: path] += right[keyPath: path] }
    return sum
  }

  private static var paths: [WritableKeyPath<Self, Int>] {
    [
      \.worlds, \.devices, \.operations, \.saves, \.exchanges, \.conflicts, \.crashesBeforeCommit, \.crashesAfterCommit,
      \.reopened, \.copies, \.rollbacks, \.partitions, \.lostRequests, \.lostAnswers, \.doubled, \.lateAnswers,
      \.serverRestores, \.restarts, \.restartsAnnounced, \.partsHeld, \.refusals, \.pages, \.steps, \.deliveries,
      \.uploads,
      \.downloads,
      \.transfersBeside, \.exchangesBeside,
      \.crashesInFlight, \.missingContents, \.forks, \.recalls,
      \.spends, \.spendsRefused, \.repeats, \.needs, \.waits, \.removals, \.orders, \.moves, \.vouchers, \.declined,
      \.claimsDeclined, \.provisional,
      \.deletes, \.resets, \.takenOut,
      \.documents, \.merges,
      \.mergesUncertain, \.mergesCrossed, \.pruned, \.prunedInCloud, \.forgottenInCloud,
      \.additionsKept, \.skewedClocks, \.leftInTheCloud,
      \.askedFor, \.evicted, \.seen,
      \.mostExchangesAfterLastWrite, \.mostExchangesForMoney,
    ]
  }
}
