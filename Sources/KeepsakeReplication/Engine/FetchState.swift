/// What the engine knows about how far the cloud has come, and whether an exchange has to be run.
struct FetchState: Sendable {
  /// An exchange is due, whether or not there is something to send.
  var isDue = false
  /// How far the cloud has announced that it has come, until an exchange has looked since; 0 if nothing was announced.
  private(set) var announced: UInt64 = 0
  /// The last response said that more changes follow.
  private(set) var hasMorePages = false
  /// The last response contained all remaining changes, so what is staged may be shown.
  private(set) var isComplete = false

  var isExchangeDue: Bool { isDue || announced > 0 }

  /// Handles an event that says that the cloud has come this far.
  mutating func announce(_ seq: UInt64) { announced = max(announced, seq) }

  /// Clears the announcement if the cursor has reached it: what was announced up to there needs no exchange. A response
  /// may have contained it already, above all this device's own changes.
  mutating func reached(_ seq: UInt64) {
    if announced <= seq { announced = 0 }
  }

  /// Handles the response to an exchange.
  ///
  /// - Parameters:
  ///   - announcedBefore: What had been announced when it was sent. If nothing was announced since, the announcement is
  ///     settled, even if a restored cloud never gets that far.
  ///   - hasMore: More pages follow.
  ///   - showsHalfPages: A fault: each page counts as the last one.
  mutating func answered(announcedBefore: UInt64, hasMore: Bool, showsHalfPages: Bool) {
    if announced == announcedBefore { announced = 0 }
    hasMorePages = hasMore
    isComplete = !hasMore || showsHalfPages
  }

  /// Handles an event that contained everything between the cursor and the cloud's position.
  mutating func appliedEvent() { isComplete = true }

  /// Starts over with a cloud that isn't the one that was known: everything is fetched from its start.
  mutating func restart() { self = FetchState(isDue: true) }
}
