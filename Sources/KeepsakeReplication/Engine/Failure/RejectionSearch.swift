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
  /// The wallet is left out until the next start: it seems to be why the cloud rejected an exchange, or the cloud has
  /// no bank.
  private var isWalletRefused = false
  private var missingRounds = 0
  /// Since when the wallet is left out because the bank replies without an effect; nil if it isn't.
  private var walletPausedMilliseconds: Int64?
  /// Consecutive replies of the bank that changed nothing although there was something to report.
  private var idleReplies = 0
  /// Whether the bank has asked for what it had granted, since the wallet was last left out.
  private var wasAskedToProve = false

  var skipsWallet: Bool { isWalletRefused || walletPausedMilliseconds != nil }

  /// Starts afresh: the cause of a rejection may be gone.
  mutating func reset() {
    (isSingle, isWalletRefused, walletPausedMilliseconds) = (false, false, nil)
    (idleReplies, wasAskedToProve) = (0, false)
  }

  /// Sends groups together again, because the outbox is empty.
  mutating func outboxIsEmpty() { isSingle = false }

  /// Sends groups one by one: several were refused together, and each may be accepted alone.
  mutating func sendSingly() { isSingle = true }

  /// Leaves the wallet out, because the cloud has no bank: asking again immediately would never end. What waits is
  /// offered at the next start.
  mutating func skipWallet() { isWalletRefused = true }

  /// Counts a reply of the bank. Two in a row that change nothing leave the wallet out for a while: the same offer
  /// would follow, and the same reply, without a pause. So does a bank that asks once more for what it had granted, as
  /// it could without end.
  mutating func countWallet(isProgress: Bool, asksToProve: Bool = false, now: Int64) {
    idleReplies = isProgress ? 0 : idleReplies + 1
    if idleReplies >= 2 || asksToProve && wasAskedToProve { walletPausedMilliseconds = now }
    wasAskedToProve = wasAskedToProve || asksToProve
  }

  /// Offers the wallet again after it was left out for at least so long: by now, other devices may have returned money,
  /// or may have shown the bank what it lost. One more reply without an effect leaves it out again.
  mutating func resumeWallet(now: Int64, after pause: Int64 = 0) {
    guard let since = walletPausedMilliseconds else {
      wasAskedToProve = false
      return
    }
    // A clock that was set back says nothing about how long it was.
    guard now < since || now.addingClamped(-since) >= pause else { return }
    (walletPausedMilliseconds, idleReplies, wasAskedToProve) = (nil, 1, false)
  }

  /// Decides what to do about an exchange that the cloud won't accept as it is.
  mutating func rejected(_ sent: SentExchange) -> Verdict {
    if sent.groups.count > 1 {
      isSingle = true
    } else if sent.hasWallet {
      isWalletRefused = true
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
