#if Cloud
/// How long and how often events are sent, and how many are kept. Smaller in tests.
struct WebhookLimits: Sendable {
  /// Requests to one endpoint at a time, at most one for each player.
  var requests = 16
  /// How long an answer may take.
  var answerSeconds = 10
  /// After a failure, an event is sent again after a second, then two, four and so on, up to an hour.
  var firstPauseMilliseconds: Int64 = 1_000
  var longestPauseMilliseconds: Int64 = 3_600_000
  /// An event that an endpoint has refused for this long, and so often between events that it took, is a dead letter.
  var giveUpMilliseconds: Int64 = 86_400_000
  var giveUpRefusals = 12
  /// After so many failures without a success between, one request at a time tries the endpoint, at most every five
  /// minutes.
  var failuresUntilTrying = 8
  var longestTryMilliseconds: Int64 = 300_000
  /// After so long without a success, or after 410, one request an hour tries it.
  var stopMilliseconds: Int64 = 86_400_000
  var stoppedTryMilliseconds: Int64 = 3_600_000
  /// Events that wait for one endpoint, and how long: the oldest beyond it become dead letters, first those of players
  /// who have more than a sixteenth. An event has at most two KiB, so that they take 200 MiB at most.
  var waiting = 100_000
  var waitingMilliseconds: Int64 = 7 * 86_400_000
  /// Dead letters of one endpoint, and how long they are kept. The oldest beyond it are dropped, and counted.
  var dead = 10_000
  var deadMilliseconds: Int64 = 30 * 86_400_000
  /// A clock that is set forward by more than this makes nothing too old for so long: somebody may set it back.
  var clockStepMilliseconds: Int64 = 300_000
  var clockRestMilliseconds: Int64 = 3_600_000
  /// How often these are looked at, and after how many new events.
  var sweepMilliseconds: Int64 = 60_000
  var sweepEvents = 4_096
  /// Rows that one transaction moves or removes.
  var rowsAtOnce = 1_024
  /// Delivered events are removed together: so many, or after so long.
  var removedTogether = 256
  var removalMilliseconds: Int64 = 1_000
  /// Events that are looked up at a time.
  var scanned = 256
  /// A pause in which events and answers gather, in real time.
  var gatherMilliseconds = 25
  /// A pause after the database has failed.
  var restMilliseconds: Int64 = 10_000
  /// How long a slot has to show several versions before a backend is told.
  var conflictMilliseconds: Int64 = 600_000
  var conflictSweepSeconds = 30
  /// How often what is left of webhooks that aren't configured any more is looked at.
  var cleaningSeconds = 86_400
  /// Of several servers with one database: how long the one that delivers an endpoint's events may be silent before
  /// another one does, how often it says that it is there, and how often the others look.
  var leaseMilliseconds: Int64 = 30_000
  var claimMilliseconds: Int64 = 5_000
  /// How often it looks for events that the others have written.
  var lookMilliseconds: Int64 = 500
  /// After so long it leaves an endpoint that doesn't answer to the others: the way there may be its own fault.
  var handOverMilliseconds: Int64 = 60_000
}
#endif
