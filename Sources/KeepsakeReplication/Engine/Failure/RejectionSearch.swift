/// Finds out which part of an exchange the cloud doesn't accept, so that the rest is sent: exchanges get smaller until
/// one group is left to blame.
struct RejectionSearch: Sendable {
  /// Consecutive responses that name missing contents before this counts as a failure of the cloud.
  static let maximumMissingRounds = 8

  /// How to proceed after a rejected exchange.
  enum Verdict: Hashable, Sendable {
    /// Send a smaller one.
    case tryAgain
    /// Refuse this group, which is to blame.
    case refuse(group: Int64)
    /// Stop. Nothing in the exchange could be to blame: the cloud doesn't accept this device's requests.
    case halt
  }

  /// Groups are sent one by one, because the cloud rejected several together.
  private(set) var isSingle = false
  /// The wallet is left out: it seems to be why the cloud rejected an exchange, the cloud has no bank, or its bank
  /// replies without an effect.
  private(set) var skipsWallet = false
  private var missingRounds = 0
  /// Consecutive replies of the bank that changed nothing although there was something to report.
  private var idleReplies = 0

  /// Starts afresh: the cause of a rejection may be gone.
  mutating func reset() { (isSingle, skipsWallet, idleReplies) = (false, false, 0) }

  /// Sends groups together again, because the outbox is empty.
  mutating func outboxIsEmpty() { isSingle = false }

  /// Sends groups one by one: several were refused together, and each may be accepted alone.
  mutating func sendSingly() { isSingle = true }

  /// Leaves the wallet out, because the cloud has no bank: asking again immediately would never end. What waits is
  /// offered at the next start.
  mutating func skipWallet() { skipsWallet = true }

  /// Counts a reply of the bank. Two in a row that change nothing leave the wallet out: the same offer would follow,
  /// and the same reply, without a pause.
  mutating func countWallet(isProgress: Bool) {
    idleReplies = isProgress ? 0 : idleReplies + 1
    if idleReplies == 2 { skipsWallet = true }
  }

  /// Decides what to do about an exchange that the cloud won't accept as it is.
  mutating func rejected(_ sent: SentExchange) -> Verdict {
    if sent.groups.count > 1 {
      isSingle = true
    } else if sent.hasWallet {
      skipsWallet = true
    } else if let group = sent.groups.first {
      return .refuse(group: group.id)
    } else {
      return .halt
    }
    return .tryAgain
  }

  /// Counts a response that says that the cloud lacks contents.
  mutating func countMissing() { missingRounds += 1 }

  /// Returns whether there were too many such responses in a row; if so, counts from the beginning.
  mutating func hasMissedTooOften() -> Bool {
    guard missingRounds > Self.maximumMissingRounds else { return false }
    missingRounds = 0
    return true
  }

  /// Resets the count: what was sent is accepted, or continues without what was missing.
  mutating func endMissing() { missingRounds = 0 }
}
