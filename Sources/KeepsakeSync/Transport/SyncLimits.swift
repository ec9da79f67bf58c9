/// How much is taken from a cloud, and how long it is waited for, each with its reason.
enum SyncLimits {
  /// An answer to an exchange: 500 changes with 64 KiB of metadata each stay below. A server that sends more isn't ours.
  static let answerBytes = 48 << 20
  /// A content's frame, as the server limits it, too.
  static let contentBytes = 256 << 20
  /// Answers about accounts are a few identifiers; errors a sentence.
  static let accountBytes = 64 << 10
  /// A line of an event stream: ours have thirty bytes.
  static let eventLineBytes = 4 << 10
  /// A request on which nothing moves for this long has failed.
  static let idleSeconds = 30.0
  /// The server says something on an event stream every 15 seconds; three are missed before the connection counts as dead.
  static let eventIdleSeconds = 45.0
  /// The longest pause that a server may ask for and get: longer ones are a mistake.
  static let longestRetryAfterMilliseconds: Int64 = 3_600_000
  /// The pauses between tries of the event stream: from about one second, doubling, up to a minute.
  static let firstEventPauseMilliseconds: Int64 = 1_000
  static let longestEventPauseMilliseconds: Int64 = 60_000
  /// The pause after the store failed (a full disk): long enough not to hammer it.
  static let storePauseMilliseconds: Int64 = 5_000
  /// News that a listener hasn't taken: beyond these the oldest are dropped. The store always holds the truth.
  static let waitingNews = 1_024
}
