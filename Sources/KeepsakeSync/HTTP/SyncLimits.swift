/// How much is taken from a cloud, and how long it is waited for, each with its reason.
enum SyncLimits {
  /// An answer to an exchange: 4 MiB of changes, six times as much where JSON escapes all of it, and 1 MiB of contents. A server that sends
  /// more isn't ours.
  static let answerBytes = 48 << 20
  /// A content's frame, as the server limits it, too.
  static let contentBytes = 256 << 20
  /// Frames above this go in parts. Smaller ones are sent again sooner than they are gone on with.
  static let wholeUploadBytes = 256 << 10
  /// One part of an upload: what a proxy that collects bodies lets through by default, and what is sent twice at most.
  static let uploadPartBytes = 1 << 20
  /// A transfer that broke off goes on at once if it came this much further since it last did; else the engine's pause comes first.
  static let leastProgressBytes = 64 << 10
  /// How often an upload may be set back (the server lost what it had of it) before it counts as failed.
  static let uploadSetbacks = 3
  /// Uploads that broke off and are remembered, so that their next try asks first how far they came. An app that was started anew sends
  /// one part and learns it from the answer.
  static let rememberedUploads = 256
  /// What is kept of downloads that broke off, until their next try. A device's own contents have at most 4 MiB each.
  static let keptDownloadBytes = 32 << 20
  /// Connections to one server: four transfers, an exchange, and room.
  static let connections = 8
  /// Answers about accounts are a few identifiers; errors a sentence.
  static let accountBytes = 64 << 10
  /// A list of devices with what each of them has: 64 versions take two kilobytes of a device's lines.
  static let deviceBytes = 1 << 20
  /// A line of an event stream: ours have thirty bytes, or 32 KiB of changes and as much of contents, in base64.
  static let eventLineBytes = 128 << 10
  /// Events that wait to be read. Whoever misses one asks for what it said.
  static let waitingEvents = 8
  /// A request on which nothing moves for this long has failed.
  static let idleSeconds = 30.0
  /// The server says something on an event stream every 15 seconds; three are missed before the connection counts as dead.
  static let eventIdleSeconds = 45.0
  /// So many streams in a row without a word, though the cloud was reached, are held back by something in between: then the device asks instead.
  static let silentStreams = 2
  /// Questions, of at most fifteen seconds each while nothing happens, before a stream is tried again: some ten minutes.
  static let pollsForAStream = 40
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
