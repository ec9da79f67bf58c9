/// What a simulated world did and found.
package struct WorldReport: Hashable, Sendable {
  package var seed: UInt64
  /// A hash over everything that happened, in order: the same seed gives the same.
  package var trace: UInt64 = 0xCBF2_9CE4_8422_2325
  /// What happened, in words, if asked for.
  package var lines: [String] = []
  /// What must never be, and was.
  package var violations: [String] = []
  package var statistics = WorldStatistics()
}

/// How often the rare paths were taken: a simulation that never gets there proves nothing about them.
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
  /// Times that a device learned by an event that the cloud was restored, and parts of offers that the cloud kept.
  package var restartsHeard = 0
  package var partsHeld = 0
  package var refusals = 0
  package var pages = 0
  package var steps = 0
  /// Times that a game took what had been kept back.
  package var deliveries = 0
  package var uploads = 0
  package var downloads = 0
  /// Contents that began while another one of the device was under way, and exchanges that went beside contents.
  package var transfersBeside = 0
  package var exchangesBeside = 0
  /// Crashes with three contents or more under way.
  package var crashesInFlight = 0
  package var missingContents = 0
  package var forks = 0
  package var fences = 0
  package var recalls = 0
  package var spends = 0
  package var spendsRefused = 0
  package var declined = 0
  package var claimsDeclined = 0
  package var provisional = 0
  package var deletes = 0
  package var resets = 0
  /// Of the set, and what stayed in though a device took it out that hadn't heard of it.
  package var takenOut = 0
  /// Loads of documents, those that merged several, of these those that lacked an ancestor, and those that had several and lacked none.
  package var documents = 0
  package var merges = 0
  package var mergesUncertain = 0
  package var mergesCrossed = 0
  /// Versions of which devices let go of all but the record.
  package var pruned = 0
  package var additionsKept = 0
  package var skewedClocks = 0
  /// Loads of what was left in the cloud, what was asked for and came, and what was let go of.
  package var leftInTheCloud = 0
  package var askedFor = 0
  package var evicted = 0
  /// Times that a device that was said to have a save was looked at.
  package var seen = 0
  /// The most exchanges that one device needed after the last save of anybody, polls apart; over several worlds, the sum of that.
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
      \.serverRestores, \.restarts, \.restartsHeard, \.partsHeld, \.refusals, \.pages, \.steps, \.deliveries, \.uploads, \.downloads,
      \.transfersBeside, \.exchangesBeside,
      \.crashesInFlight, \.missingContents, \.forks, \.fences, \.recalls,
      \.spends, \.spendsRefused, \.declined, \.claimsDeclined, \.provisional, \.deletes, \.resets, \.takenOut, \.documents, \.merges,
      \.mergesUncertain, \.mergesCrossed, \.pruned, \.additionsKept, \.skewedClocks, \.leftInTheCloud,
      \.askedFor, \.evicted, \.seen,
      \.mostExchangesAfterLastWrite, \.mostExchangesForMoney,
    ]
  }
}
