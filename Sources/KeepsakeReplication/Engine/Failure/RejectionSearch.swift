/// Finds out what of an exchange the cloud doesn't take, so that the rest goes on: exchanges get smaller until one is
/// left to blame.
struct RejectionSearch: Sendable {
  /// Answers in a row that name missing contents before it counts as the cloud's failure.
  static let maximumMissingRounds = 8

  /// What is to be done about a rejected exchange.
  enum Verdict: Hashable, Sendable {
    /// The next one is smaller.
    case tryAgain
    /// This group is to blame.
    case refuse(group: Int64)
    /// There is nothing in it that could be to blame: the cloud doesn't take this device's requests.
    case halt
  }

  /// Groups are sent one by one, because the cloud rejected several together.
  private(set) var isSingle = false
  /// The wallet stays out: the cloud rejected an exchange for its sake, or so it looks; or it has no bank.
  private(set) var skipsWallet = false
  private var missingRounds = 0

  /// A new start: what was to blame may have lost its cause.
  mutating func reset() { (isSingle, skipsWallet) = (false, false) }

  /// The outbox has nothing to send.
  mutating func outboxIsEmpty() { isSingle = false }

  /// Several groups were refused together, of which each may be taken alone.
  mutating func sendSingly() { isSingle = true }

  /// The cloud has no bank: asking again at once would never end. What waits is offered at the next start.
  mutating func skipWallet() { skipsWallet = true }

  /// The cloud won't take an exchange as it is.
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

  /// The cloud says that it lacks contents.
  mutating func countMissing() { missingRounds += 1 }

  /// Whether it has said so too often in a row; then it counts from the beginning.
  mutating func hasMissedTooOften() -> Bool {
    guard missingRounds > Self.maximumMissingRounds else { return false }
    missingRounds = 0
    return true
  }

  /// What was sent is taken, or goes on without what was missing.
  mutating func endMissing() { missingRounds = 0 }
}
