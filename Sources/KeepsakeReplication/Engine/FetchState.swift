/// How far the cloud has come as far as the engine knows, and whether an exchange has to look.
struct FetchState: Sendable {
  /// An exchange is due whether or not there is something to send.
  var isDue = false
  /// How far the cloud said that it has come, as long as no exchange has looked since; 0 for nothing said.
  private(set) var announced: UInt64 = 0
  /// The last answer said that there is more.
  private(set) var hasMorePages = false
  /// The last answer said that this is all, so what is staged may be shown.
  private(set) var isComplete = false

  var isExchangeDue: Bool { isDue || announced > 0 }

  /// The event stream says that the cloud has come this far.
  mutating func announce(_ seq: UInt64) { announced = max(announced, seq) }

  /// The cursor is here: what was announced up to it needs no exchange. What an answer has brought already is that,
  /// this device's own changes above all.
  mutating func reached(_ seq: UInt64) {
    if announced <= seq { announced = 0 }
  }

  /// An exchange was answered.
  ///
  /// - Parameters:
  ///   - announcedBefore: What had been announced when it was sent. If that is all, it is answered, even if a restored
  ///     cloud never comes so far.
  ///   - hasMore: More pages follow.
  ///   - showsHalfPages: A fault: each page counts as the last one.
  mutating func answered(announcedBefore: UInt64, hasMore: Bool, showsHalfPages: Bool) {
    if announced == announcedBefore { announced = 0 }
    hasMorePages = hasMore
    isComplete = !hasMore || showsHalfPages
  }

  /// An event brought all that there was between the cursor and the cloud.
  mutating func appliedEvent() { isComplete = true }

  /// The cloud isn't the one that was known: everything is fetched from its start.
  mutating func restart() { self = FetchState(isDue: true) }
}
