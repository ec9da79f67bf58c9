#if Cloud
/// How much a server takes from outside, each with its reason.
enum ServerLimits {
  /// An exchange: the fullest group that a device sends, fifty versions with all the metadata they may have, takes half of it.
  static let exchangeBytes = 16 << 20
  /// Registering and pairing send a name and a code.
  static let accountBytes = 16 << 10
  /// One content, plain or encoded: no save that we know of comes near (the biggest measured is 2.5 MB).
  static let contentBytes = 256 << 20
  /// Contents up to this size lie in the database, which is fastest for small ones; larger ones lie in files of their own, so
  /// that they are never in memory as a whole.
  static let inlineContentBytes = 1 << 20
  /// Large uploads at a time: bounds what half-received bodies take of the disk.
  static let concurrentUploads = 64
  /// Uploads of one player that are begun and not ended: a few for each device. More are a mistake, or meant to fill the disk.
  static let uploadsPerPlayer = 64
  /// What these have in all, as they declare it: two of the largest contents.
  static let uploadBytesPerPlayer = 512 << 20
  /// An upload that nobody went on with for ten minutes makes room for another one of the same player. The device begins again, if it comes back.
  static let uploadIdleMilliseconds: Int64 = 600_000
  /// An upload that nobody went on with for a day is removed.
  static let uploadLifetimeMilliseconds: Int64 = 86_400_000
  static let uploadSweepSeconds = 3_600
  /// While parts come, uploads are looked through for old ones at most this often.
  static let uploadLookMilliseconds: Int64 = 60_000
  /// How long a device is asked to wait while its player has too many uploads, or the disk is full.
  static let uploadRetrySeconds = 60
  static let diskFullRetrySeconds = 60
  /// A device's name as people see it.
  static let nameBytes = 200
  /// A request's headers: ours are a token and a few numbers.
  static let headerBytes = 16 << 10
  static let headerCount = 64
  /// Contents that no version names and that go in one transaction where room is wanted; the next one takes more.
  static let straysAtOnce = 1_000
  /// Damaged contents that are looked at in one exchange: bounds what a device that says so of everything costs.
  static let suspectsAtOnce = 1_024
  /// Open connections: each costs a few KiB and a file descriptor.
  static let connections = 10_000
  /// Event streams of one container: more devices than any player has.
  static let streamsPerContainer = 64
  /// Events that wait for a listener who doesn't read: bounds what a slow one holds to some hundred KiB.
  static let noticesPerStream = 8
  /// A connection on which nothing comes for this long, while we wait for something, is closed.
  static let idleSeconds = 30
  /// A body must come at least this fast after `slowGraceSeconds`, or its connection is closed: GPRS is faster.
  static let minimumBodyBytesPerSecond = 512
  static let slowGraceSeconds = 30
  /// Transactions waiting for the writer. At a thousand a second this is ten seconds of work; then the server says that it is busy.
  static let waitingTransactions = 10_000
  /// Transactions in one commit: bounds how long a reader of the newest state and the write-ahead log wait.
  static let transactionsPerCommit = 256
  /// Event streams say something at least this often, so that both ends notice a dead connection.
  static let heartbeatSeconds = 15
  /// How long a pairing code lives: time to type eight characters on another device.
  static let pairingSeconds = 600
  /// Wrong codes from one peer in `pairingSeconds`.
  static let guessesPerPeer = 10
  /// Wrong codes with one app key in `pairingSeconds`. There are 31^8 = 8.5e11 codes: even with a thousand of them alive at a
  /// time, this many guesses find one in fewer than one of eight thousand such windows.
  static let guessesPerApp = 100_000
  /// Peers that are remembered for their wrong guesses.
  static let rememberedPeers = 10_000
}
#endif
