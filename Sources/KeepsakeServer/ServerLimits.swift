#if Cloud
/// Limits on what a server accepts from outside, each with its reason.
enum ServerLimits {
  /// An exchange. The largest group that a device sends, fifty versions with the most metadata allowed, takes half of
  /// it.
  static let exchangeBytes = 16 << 20
  /// Registering and pairing, which send a name and a code.
  static let accountBytes = 16 << 10
  /// An order of the bank: the most goods, with the longest names and reason, take half of it.
  static let orderBytes = 32 << 10
  /// A receipt of a shop: those of the large ones grow with each purchase, to tens of KiB.
  static let receiptBytes = 1 << 20
  /// One content, plain or encoded. No known save comes near (the largest measured has 2.5 MB).
  static let contentBytes = 256 << 20
  /// Contents up to this size are kept in the database, which is fastest for small ones. Larger ones are kept in files
  /// of their own, so that they are never in memory as a whole.
  static let inlineContentBytes = 1 << 20
  /// Large uploads at a time: limits the disk space that half-received bodies take.
  static let concurrentUploads = 64
  /// Unfinished uploads of one player: a few for each device. More are a mistake, or an attempt to fill the disk.
  static let uploadsPerPlayer = 64
  /// The total size of these, as declared: two of the largest contents.
  static let uploadBytesPerPlayer = 512 << 20
  /// An upload without progress for ten minutes makes room for another one of the same player. If the device comes
  /// back, it begins again.
  static let uploadIdleMilliseconds: Int64 = 600_000
  /// An upload without progress for this long makes room for those of other players, when all together have none.
  static let uploadPauseMilliseconds: Int64 = 10_000
  /// An upload without progress for a day is removed.
  static let uploadLifetimeMilliseconds: Int64 = 86_400_000
  static let uploadSweepSeconds = 3_600
  /// While parts arrive, uploads are searched for old ones at most this often.
  static let uploadLookMilliseconds: Int64 = 60_000
  /// How long a device is asked to wait while its player has too many uploads, or the disk is full.
  static let uploadRetrySeconds = 60
  static let diskFullRetrySeconds = 60
  /// The same when a budget that all requests share is used up.
  static let busyRetrySeconds = 5
  /// A request's headers: Keepsake's are a token and a few numbers.
  static let headerBytes = 16 << 10
  static let headerCount = 64
  /// Damaged contents that one exchange examines: limits what a device that reports all of them as damaged can cost.
  static let suspectsAtOnce = 1_024
  /// The newest operations of a wallet whose details a container keeps, for exports and for questions to the operator:
  /// those with goods are kept besides, and of the others only what decides about a repeated one.
  static let detailedDecisions: Int64 = 10_000
  /// Open connections, if the process may have more than twice as many descriptors: each costs a few KiB, and up to two
  /// descriptors.
  static let connections = 10_000
  /// Descriptors that no connection gets: for the database, its readers, uploads, logs.
  static let reservedDescriptors = 256
  /// Connections from one address: a quarter of all, but at least this many.
  static let leastConnectionsPerAddress = 64
  /// What is read of a connection at a time, the most, at first and the least: it grows while all of it is used. Ten
  /// such pieces are in memory while the server doesn't take them, and one while the connection is idle.
  static let readAtOnceBytes = 16 << 10
  static let readFirstBytes = 2 << 10
  static let readAtLeastBytes = 1 << 10
  /// What the system buffers for a connection in each direction: 2.5 MB/s over a tenth of a second's way, and little
  /// enough that somebody who doesn't read is soon noticed.
  static let socketBufferBytes = 256 << 10
  /// A new connection that sends no request for this long is closed.
  static let requestSeconds = 10
  /// Longer than any transaction should take.
  static let probeSeconds = 2
  /// Connections of an operator's machines to the port for monitoring.
  static let monitoringConnections = 64
  /// A database up to this size is written anew when the studio deletes a player: a few seconds in which nobody saves.
  static let vacuumedBytes: Int64 = 256 << 20
  /// Connections of the studio to the port for it.
  static let adminConnections = 64
  /// Event streams of one container: more than any player has devices.
  static let streamsPerContainer = 64
  /// Events that wait for a listener that doesn't read: limits what a slow listener holds to a few hundred KiB.
  static let noticesPerStream = 8
  /// A connection that receives nothing for this long, while the server waits for something, is closed.
  static let idleSeconds = 30
  /// From a connection to the end of its TLS handshake: two round trips, also over a bad network.
  static let handshakeSeconds = 15
  /// In any `slowGraceSeconds`, a body must arrive and a response be read at least this fast, or the connection is
  /// closed. GPRS is faster. Time in which the server itself doesn't go on isn't counted.
  static let minimumBytesPerSecond = 512
  static let slowGraceSeconds = 30
  /// A body up to this size arrives in memory, if there is room for it; any other arrives in a file.
  static let bodyMemoryBytes = 128 << 10
  /// A response up to this size is sent from memory, if there is room for it; any other from a file.
  static let responseMemoryBytes = 256 << 10
  /// A response is sent in parts of this size, each when the one before is almost sent. This much, and what the system
  /// buffers, is what an unread response costs.
  static let responsePartBytes = 32 << 10
  /// Messages up to this size are decoded and encoded where they are: faster than handing them to another thread.
  static let decodedAtOnceBytes = 8 << 10
  /// The memory of all bodies that arrive, of those being decoded (with what becomes of them), of responses being put
  /// together, and of those being sent: 320 MiB together, to which a connection adds at most 256 KiB. One body with the
  /// most values takes two thirds of the second part.
  static let bodiesBytes = 32 << 20
  static let decodingBytes = 160 << 20
  static let buildingBytes = 96 << 20
  static let responsesBytes = 32 << 20
  /// The disk of bodies and responses in files.
  static let spooledBytes = 2 << 30
  /// Messages that wait for memory or for a thread: beyond that, the server reports that it is busy.
  static let waitingMessages = 1_000
  /// The memory that a response of one byte takes while it is put together: its records, their JSON, and a copy.
  static let buildingFactor = 3
  /// Values and keys in the JSON of one request, each of which costs up to a hundred bytes of memory. A checkpoint that
  /// is as large as it may be, and all small values of a set, has 620,000.
  static let jsonTokens = 1 << 20
  /// Arrays and objects inside each other: Keepsake's own messages have ten.
  static let jsonDepth = 64
  /// Bytes of a body, and values and keys of its JSON, that cost as much as one unit of work: to receive, and to
  /// decode. Measured; the largest body alone isn't much work, so that no turn lasts as long as a body takes to arrive.
  static let bytesPerWork = 4_096
  static let tokensPerWork = 16
  /// A request with more work than this waits until no other such is being handled: some 30 ms.
  static let lightWork = 4_096
  /// After a request with much work, the next one has to wait this many times as long as it took, but not longer than
  /// half a minute: all of them together take a twentieth of the time.
  static let heavyPauseFactor: Int64 = 19
  static let longestHeavyPauseMilliseconds: Int64 = 30_000
  /// Devices, players, addresses and apps whose rates are remembered, each: 10 MB a table. Only those that have used
  /// nothing for long are forgotten.
  static let rememberedBuckets = 100_000
  /// Bytes of events that wait for listeners that don't read them. Beyond that, listeners only learn that there is
  /// something.
  static let waitingEventBytes = 16 << 20
  /// Exports that are sent at a time: each is a walk over everything that a player has.
  static let concurrentExports = 4
  /// Connections to the database that read at a time, each with a cache of 2 MB; and how many reads wait for one of
  /// them.
  static let readers = 5
  static let waitingReads = 10_000
  /// Transactions waiting for the writer: ten seconds of work at a thousand per second. Beyond that, the server reports
  /// that it is busy.
  static let waitingTransactions = 10_000
  /// Those of one player: a few for each device.
  static let waitingTransactionsPerPlayer = 256
  /// Transactions in one commit: limits how long readers of the newest state, and the write-ahead log, wait.
  static let transactionsPerCommit = 256
  /// Rows that the transactions of one commit write together, unless the first alone writes more: some 50 ms of work.
  static let workPerCommit = 8_192
  /// Items that a decision looks at on the threads that all requests share: about a millisecond of work.
  static let lightDecision = 512
  /// How often a decision begins anew because another one about the same player was committed first.
  static let decisionConflicts = 256
  /// A device's last visit is written again after this long: often enough to be useful, too seldom to cost much.
  static let visitMilliseconds: Int64 = 60_000
  /// Containers are searched for what is due for pruning this often, so many at a time, with a pause after each step.
  static let pruningSweepSeconds = 900
  static let containersLookedAtOnce = 1_000
  static let pruningPauseMilliseconds = 20
  /// Marks that one step forgets in one range.
  static let marksForgottenAtOnce = 4_096
  /// Event streams emit something at least this often, so that both ends notice a dead connection.
  static let heartbeatSeconds = 15
  /// How long a pairing code is valid: time to type eight characters on another device.
  static let pairingSeconds = 600
  /// Wrong codes from one peer in `pairingSeconds`.
  static let guessesPerPeer = 10
  /// Wrong codes with one app key in `pairingSeconds`. There are 31^8 = 8.5e11 codes: even with a thousand valid ones
  /// at a time, this many guesses find one in fewer than one of eight thousand such windows.
  static let guessesPerApp = 100_000
  /// Proofs of identities that are checked at a time, and how long a check may wait for another service.
  static let identityChecks = 64
  static let identitySeconds = 10
  /// Those of one device: of a request, and of those before it whose responses were lost.
  static let identityChecksPerDevice = 4
  /// Refused proofs of one device in `pairingSeconds`: a game that shows an expired token again and again.
  static let refusedProofsPerDevice = 10
  /// Identities of one player: more than there are services to sign in with.
  static let identitiesPerPlayer = 16
  /// Players of whom is remembered what their last save has left, so that the next one needn't load it from PostgreSQL.
  /// Each takes some 5 KB, and at most some 40.
  static let rememberedContainers = 8_192
  /// The same for SQLite, which loads faster, on a machine that may be small.
  static let rememberedContainersInSQLite = 2_048
  /// Peers whose wrong guesses are remembered.
  static let rememberedPeers = 10_000
}
#endif
