/// A device's side of the sync, one decision at a time: what happened goes in, what is to be done comes out.
///
/// The engine holds only what may be forgotten. Run each step in one transaction of the storage, commit, and only then carry
/// out the effects. If a step throws or its transaction fails, roll back, throw the engine away and start a new one: it is
/// as if the process had crashed there, which everything here is made for.
///
/// At most one exchange is in flight, and beside it some contents on their way up and down. Each has a number; an answer to
/// any other number changes nothing.
package struct DeviceEngine: Sendable {
  /// Times and sizes; the defaults are for players.
  package struct Options: Hashable, Sendable {
    /// The first pause after a failure; each further one doubles it.
    package var firstBackoffMilliseconds: Int64 = 500
    package var maximumBackoffMilliseconds: Int64 = 5 * 60_000
    /// The longest that a server may ask to be left alone.
    package var maximumRetryAfterMilliseconds: Int64 = 60 * 60_000
    /// How often to ask though nothing was heard: the event stream may be broken without anyone noticing.
    package var pollMilliseconds: Int64 = 60_000
    /// The most changes that an answer may carry.
    package var page = ExchangeRules.maximumChanges
    /// What one exchange takes from the outbox, unless the first group alone is more: all that a month offline makes, most likely.
    package var maximumCells = ExchangeRules.maximumCells
    package var maximumVersions = ExchangeRules.maximumVersions
    package var maximumBytes = 1024 * 1024
    /// Contents that travel inside the exchange, all together; others are put before it.
    package var inlineBytes = 256 * 1024
    /// A content with more bases than this is too slow to decode to be a base itself.
    package var maximumDepth = 20
    /// Pieces in which all that a store holds waits to be offered: small, since the cloud may refuse one of them.
    package var pieceCells = DeviceCommit.maximumGroupCells
    package var pieceVersions = DeviceCommit.maximumGroupVersions
    package var pieceBytes = DeviceCommit.maximumGroupBytes
    /// How long the device waits when the cloud has no room for a part of an offer: until another device's is through.
    package var offerPauseMilliseconds: Int64 = 30_000
    /// Contents on their way at the same time, up and down together.
    package var parallelTransfers = 4
    /// Their bytes, all together, as far as they are known before; one alone may be more. They are in memory.
    package var maximumTransferBytes = 32 << 20
    /// How long what the cloud refused for want of room stays refused, if nothing tells that there is room again; and how long a content
    /// that was put because the cloud asked for it isn't put once more.
    package var secondTryMilliseconds: Int64 = 10 * 60_000
    /// A content that isn't larger starts beside a large one whatever that takes.
    package var smallTransferBytes = 1 << 20

    package init() {}
  }

  /// Groups that are read from the outbox at once.
  static let outboxRead = 256
  /// Answers in a row that name missing contents before it counts as the cloud's failure.
  static let maximumMissingRounds = 8
  /// Times that a content may come damaged, or not at all, before the device goes on without it.
  static let maximumDamaged = 3
  static let maximumGone = 3
  /// Bases that are followed for one content. Senders stop at `Options.maximumDepth` by what they know; where two devices sent
  /// the same content in different encodings the cloud's chain may be a few times as long.
  static let maximumChain = 256
  /// Versions of a lineage that are looked at for a base.
  static let maximumLookBack = 64
  /// Of contents that have more plain bytes than this, one is encoded in a step: no commit of the game gets through meanwhile.
  static let largeContentBytes = 4 << 20

  let options: Options
  /// What comes is kept back until `deliver(in:)` shows it. May change from step to step.
  package var holdsArrivals = false
  /// Which contents come by themselves. May change from step to step.
  package var downloads = DownloadRules() {
    didSet {
      guard downloads != oldValue else { return }
      needs = nil
      for slot in downloads.asked.subtracting(oldValue.asked) { unanswered.insert(slot) }
      unanswered.formIntersection(downloads.asked)
    }
  }

  enum Standing: Sendable {
    case stopped, running
    case halted(TransportFailure)
  }
  var standing = Standing.stopped
  var exchange: (request: UInt64, sent: SentExchange)?
  /// In the order in which they began.
  var transfers: [Transfer] = []
  var lastRequest: UInt64?

  /// Nothing begins until the pause is over.
  var paused: TransportFailure?
  /// No content begins its way; exchanges go on.
  var transfersPaused: TransportFailure?
  var lastPause: Int64 = 0
  var attempts = 0
  /// The cloud has answered since the last failure. Before, an exchange finds out, and no large content is begun in vain.
  package var isReached = false
  /// What failed, and didn't succeed since.
  var failing: Set<Source> = []
  /// The wake-up that is asked for is the poll.
  var pollIsSet = false
  /// The wake-up that is asked for is for another step, without a reason of its own.
  var continues = false

  /// An exchange is due whether or not there is something to send.
  var exchangeDue = false
  /// How far the cloud said that it has come, as long as no exchange has looked since; 0 for nothing said.
  var announced: UInt64 = 0
  /// The last answer said that there is more.
  var paging = false
  /// The last answer said that this is all, so what is staged may be shown.
  var complete = false
  /// What is offered in parts, from the first one until the last one is taken.
  var offering: Offering?
  /// A new epoch has begun, and no exchange yet: it waits until the contents that it needs are put, to be the only one.
  var awaitsPuts = false
  /// Groups go one by one, because the cloud rejected several together.
  var single = false
  /// The cloud rejected an exchange for its wallet's sake, or so it looks; or it has no bank.
  var walletPaused = false
  var missingRounds = 0
  /// Contents to be sent without a base, because the cloud lacked the one they had.
  var sendFull: Set<ContentHash> = []
  /// What is known of contents that are too large to go inside an exchange, so that nobody encodes them only to learn it again.
  var large: [ContentHash: LargeContent] = [:]
  /// This step has encoded a large content.
  var hasEncodedLarge = false

  /// What staged versions need and isn't here, in the order of asking; nil when it has to be worked out again.
  var needs: [Need]?
  /// Of these, what only serves to merge better.
  var optional: Set<ContentHash> = []
  /// There are heads of which only the record is here, as of when `needs` was worked out.
  var hasNotDownloaded = false
  /// Slots that were asked for since `needs` was worked out: what was given up of them gets another chance.
  var unanswered: Set<String> = []
  /// Slots of which versions are staged, when `needs` was worked out.
  var stagedSlots: Set<String> = []
  /// Contents that came before their bases.
  var held: [HeldContent] = []
  /// Contents that the cloud didn't have when they were asked for, as long as no exchange has looked since.
  var gone: Set<ContentHash> = []
  var troubles: [ContentHash: Int] = [:]
  var givenUp: Set<ContentHash> = []

  /// This step's time.
  var now: Int64 = 0
  /// Groups that the cloud refused for want of room, and that go once more.
  var retrying: Set<Int64> = []
  /// When that was last tried; nil if it never was.
  var roomTriedMilliseconds: Int64?
  /// What the cloud said of its room when it last decided whether to try.
  var roomKnown: QuotaUse?
  /// What of the outbox the cloud doesn't take.
  var refused: [EngineRefusal] = []
  /// Of this the game was told.
  var toldRefused: Set<String> = []
  /// Contents that are damaged in the cloud, which it is yet to hear of.
  var damagedThere: Set<ContentHash> = []
  /// What the cloud asks for and is here.
  var wanted: [PlannedUpload] = []
  /// When such a content was last put.
  var wantedTried: [ContentHash: Int64] = [:]

  package init(options: Options = Options()) { self.options = options }

  /// Takes an event, and returns what is to be done once the transaction has committed.
  ///
  /// - Parameters:
  ///   - now: The device's clock, in milliseconds since 1970; it may jump.
  /// - Throws: What the storage throws.
  package mutating func step(
    _ event: EngineEvent, now: Int64, in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws -> [EngineEffect] {
    var effects: [EngineEffect] = []
    hasEncodedLarge = false
    self.now = now
    if !holdsArrivals { try showArrivals(&effects, in: &storage) }
    switch event {
    case .started, .sync:
      if case .stopped = standing, case .sync = event { return [] }
      try forgive(in: &storage)
      exchangeDue = true
    case .committed:
      // What the game saved while others' saves are kept back has other ancestors in common with them, which history must not lose.
      // And what stands beside a save of which only the record is here is a conflict, which needs both; what replaces it leaves nothing to wait for.
      if try holdsArrivals && !stagedSlots.isEmpty || hasNotDownloaded || !storage.notDownloadedVersions().isEmpty { needs = nil }
    case .announced(let cloud):
      if let cursor = cloud.unknown, try heardUnknown(cursor, now: now, &effects, in: &storage) { break }
      announced = max(announced, cloud.seq)
      if let step = cloud.step { try heard(step, now: now, &effects, in: &storage) }
    case .woke:
      woke()
    case .answered(let request, let response):
      guard let landed = exchange, landed.request == request || storage.faults.takesLateAnswers else { return [] }
      exchange = nil
      try answered(response, to: landed.sent, now: now, &effects, in: &storage, using: &random)
    case .uploaded(let request, let hash):
      guard let transfer = land(request, isUpload: true) else { return [] }
      succeeded(.content(transfer.hash))
      if hash == transfer.hash {
        try storage.setCloudDepth(transfer.depth, of: hash)
        sendFull.remove(hash)
        large[hash] = nil
        wanted.removeAll { $0.hash == hash }
      }
    case .downloaded(let request, let hash, let content):
      guard let transfer = land(request, isUpload: false) else { return [] }
      succeeded(.content(transfer.hash))
      if hash == transfer.hash { try downloaded(hash, content, &effects, in: &storage) }
    case .failed(let request, let failure):
      if let landed = exchange, landed.request == request {
        exchange = nil
        try failed(landed.sent, failure, &effects, in: &storage, using: &random)
      } else if let transfer = land(request, isUpload: nil) {
        try failed(transfer, failure, &effects, in: &storage, using: &random)
      } else {
        return []
      }
    }
    try proceed(&effects, in: &storage, using: &random)
    return effects
  }

  /// Takes the transfer of this number out of flight; nil if it isn't one, or goes the other way.
  private mutating func land(_ request: UInt64, isUpload: Bool?) -> Transfer? {
    guard let index = transfers.firstIndex(where: { $0.request == request && isUpload ?? $0.isUpload == $0.isUpload }) else { return nil }
    return transfers.remove(at: index)
  }

  private mutating func woke() {
    pollIsSet = false
    if continues {
      continues = false
      return
    }
    (paused, transfersPaused) = (nil, nil)
    awaitsPuts = false
    exchangeDue = exchangeDue || exchange == nil
  }

  /// A new start: what was refused or given up may have lost its cause.
  private mutating func forgive(in storage: inout some DeviceStorage) throws {
    for var group in try storage.outbox(limit: Self.outboxRead) where !group.refusals.isEmpty {
      group.refusals = []
      try storage.updateOutbox(group)
    }
    standing = .running
    (paused, transfersPaused) = (nil, nil)
    awaitsPuts = false
    (attempts, failing) = (0, [])
    (pollIsSet, continues) = (false, false)
    walletPaused = false
    single = false
    troubles = [:]
    givenUp = []
    gone = []
    needs = nil
    (retrying, roomTriedMilliseconds, roomKnown) = ([], nil, nil)
    toldRefused = []
    (wanted, wantedTried) = ([], [:])
  }

  // MARK: What next

  private mutating func proceed(
    _ effects: inout [EngineEffect], in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    guard case .running = standing, paused == nil else { return }
    // What an answer has brought already, this device's own changes above all, needs no exchange.
    if announced > 0, try announced <= storage.facts().cursor.seq { announced = 0 }
    if complete {
      try takeHeld(&effects, in: &storage)
      try showIfComplete(&effects, in: &storage)
      try holdWhatCame(&effects, in: &storage)
    }
    // What is to be heard, and what goes without an upload, never waits for a content that is on its way.
    var uploads: [PlannedUpload] = []
    if exchange == nil, paging {
      let cursor = try storage.facts().cursor
      let request = nextRequest(using: &random)
      exchange = (request, SentExchange(cursor: cursor, gone: gone))
      effects.append(.exchange(request: request, ExchangeRequest(cursor: cursor, limit: options.page)))
    } else if exchange == nil {
      let plan = try planSending(&effects, in: &storage, using: &random)
      uploads = plan.uploads + wanted
      let isHeldBack = awaitsPuts && plan.isOfferWaiting && isReached && transfersPaused == nil
      if try !isHeldBack && (exchangeDue || announced > 0 || !plan.groups.isEmpty || hasWalletNews(in: storage)) {
        let (message, sent) = try assemble(plan, in: &storage)
        (exchangeDue, awaitsPuts) = (false, false)
        let request = nextRequest(using: &random)
        exchange = (request, sent)
        effects.append(.exchange(request: request, message))
      }
    }
    if transfersPaused == nil, isReached {
      try startTransfers(uploads, &effects, in: &storage, using: &random)
      if complete, needs?.allSatisfy(\.isAsked) == true { try showIfComplete(&effects, in: &storage) }
    }
    guard transfersPaused == nil else {
      // The wake-up that is coming is the end of the pause, and goes on with everything.
      continues = false
      return
    }
    if continues {
      effects.append(.wake(afterMilliseconds: 0))
    } else if exchange == nil, !pollIsSet {
      pollIsSet = true
      effects.append(.wake(afterMilliseconds: options.pollMilliseconds))
    }
  }

  // Begins anywhere, so that answers to an earlier engine of the same store are strangers here.
  mutating func nextRequest(using random: inout some RandomNumberGenerator) -> UInt64 {
    let request = (lastRequest ?? random.next()) &+ 1
    lastRequest = request
    return request
  }
}
