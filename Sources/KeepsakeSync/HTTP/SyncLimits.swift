import Synchronization

/// How much is accepted from a cloud, and how long to wait for it, each with its reason.
package enum SyncLimits {
  /// The response to an exchange: 4 MiB of changes, six times as much if JSON escapes all of it, and 1 MiB of contents.
  /// A server that sends more isn't ours.
  static let answerBytes = 48 << 20
  /// A content's frame; the server has the same limit.
  static let contentBytes = 256 << 20
  /// Frames above this are uploaded in parts. Smaller ones are sent again sooner than they are resumed.
  static let wholeUploadBytes = 256 << 10
  /// One part of an upload: what a buffering proxy accepts by default, and the most that is sent twice.
  static let uploadPartBytes = 1 << 20
  /// An interrupted transfer is resumed immediately if it has made this much progress since it was last resumed; else
  /// the engine's pause comes first.
  static let leastProgressBytes = 64 << 10
  /// How often an upload may be set back (the server lost what it had of it) before it counts as failed.
  static let uploadSetbacks = 3
  /// Interrupted uploads that are remembered, so that their next attempt first asks how far they came. An app that was
  /// restarted sends one part and finds out from the response.
  static let rememberedUploads = 256
  /// Bytes that are kept of interrupted downloads until their next attempt. A device's own contents have at most 4 MiB
  /// each.
  static let keptDownloadBytes = 32 << 20
  /// Connections to one server, with URLSession: four transfers, an exchange, and some in reserve. libcurl opens as
  /// many as there are requests, which are no more.
  static let connections = 8
  /// How long a connection is kept for the next request, with libcurl. A connection may be lost without a sign, when
  /// the device moves to another network, and then the next request over it waits in vain: so not long.
  static let keptConnectionSeconds = 20
  /// Responses about accounts are a few identifiers; errors are a sentence.
  static let accountBytes = 64 << 10
  /// The reply of a bank that is left: its decisions, and a voucher with at most 20,000 claims of 300 bytes.
  static let leavingBytes = 16 << 20
  /// A list of devices with the versions that each of them has: 64 versions take two kilobytes per device.
  static let deviceBytes = 1 << 20
  /// A line of an event stream: ours have thirty bytes, or 32 KiB of changes and as much of contents, in base64.
  static let eventLineBytes = 128 << 10
  /// Events that wait to be read. A reader that misses one fetches its changes.
  static let waitingEvents = 8
  /// A request without any progress for this long has failed.
  static var idleSeconds: Double { idle.withLock { $0 } }
  /// Makes the limit of all requests of this process longer from now on. For tests that share the processors with so
  /// much else that a cloud beside them may get none for as long as a player waits.
  package static func waitLonger() { idle.withLock { $0 = 600 } }
  private static let idle = Mutex(30.0)
  /// The server sends something on an event stream every 15 seconds; three are missed before the connection counts as
  /// dead.
  static let eventIdleSeconds = 45.0
  /// After this many consecutive streams without an event, though the cloud was reached, something in between holds
  /// them back, and the device polls instead.
  static let silentStreams = 2
  /// Polls before a stream is tried again, of at most fifteen seconds each while nothing happens: about ten minutes.
  static let pollsForAStream = 40
  /// The longest pause that a server may ask for; longer ones are a mistake, and cut to this.
  static let longestRetryAfterMilliseconds: Int64 = 3_600_000
  /// The pauses between attempts to open the event stream: from about one second, doubling, up to a minute.
  static let firstEventPauseMilliseconds: Int64 = 1_000
  static let longestEventPauseMilliseconds: Int64 = 60_000
  /// The pauses between attempts to settle what is left with the bank of a player that the device belonged to before:
  /// from about one second, doubling, up to five minutes.
  static let firstLeavingPauseMilliseconds: Int64 = 1_000
  static let longestLeavingPauseMilliseconds: Int64 = 300_000
  /// Exchanges about one former wallet in a row: thousands of operations. The rest waits for the next attempt, so that
  /// a bank that never comes to an end isn't asked for ever.
  static let leavingExchanges = 100
  /// The pause after the store failed (a full disk): long enough not to overload it.
  static let storePauseMilliseconds: Int64 = 5_000
  /// Notifications that a reader hasn't taken: beyond this number the oldest are dropped. The store always has the
  /// truth.
  static let waitingNews = 1_024
}
