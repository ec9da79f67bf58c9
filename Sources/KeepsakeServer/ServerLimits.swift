#if Cloud
/// How much a server takes from outside, each with its reason.
enum ServerLimits {
  /// An exchange: the fullest group that a device sends, fifty versions with all the metadata they may have, takes half of it.
  static let exchangeBytes = 16 << 20
  /// Changes in one answer, by what they take in the database: a page of fewer changes where these are large.
  static let pageBytes = 8 << 20
  /// Registering and pairing send a name and a code.
  static let accountBytes = 16 << 10
  /// One content, plain or encoded: no save that we know of comes near (the biggest measured is 2.5 MB).
  static let contentBytes = 256 << 20
  /// Contents up to this size lie in the database, which is fastest for small ones; larger ones lie in files of their own, so
  /// that they are never in memory as a whole.
  static let inlineContentBytes = 1 << 20
  /// Large uploads at a time: bounds what half-received bodies take of the disk.
  static let concurrentUploads = 64
  /// A device's name as people see it.
  static let nameBytes = 200
  /// A request's headers: ours are a token and a few numbers.
  static let headerBytes = 16 << 10
  static let headerCount = 64
  /// Open connections: each costs a few KiB and a file descriptor.
  static let connections = 10_000
  /// Event streams of one container: more devices than any player has.
  static let streamsPerContainer = 64
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
