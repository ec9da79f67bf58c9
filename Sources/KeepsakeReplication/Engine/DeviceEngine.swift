/// A device's side of the sync, one decision at a time: what happened goes in, what is to be done comes out.
///
/// The engine holds only what may be forgotten. Run each step in one transaction of the storage, commit, and only then
/// carry out the effects. If a step throws or its transaction fails, roll back, throw the engine away and start a new
/// one: it is as if the process had crashed there, which everything here is made for.
///
/// At most one exchange is in flight, and beside it some contents on their way up and down. Each has a number; an
/// answer to any other number changes nothing.
package struct DeviceEngine: Sendable {
  /// Times and sizes; the defaults are for players.
  package struct Options: Hashable, Sendable {
    /// The first pause after a failure; each further one doubles it.
    package var firstBackoffMilliseconds: Int64 = 500
    package var maximumBackoffMilliseconds: Int64 = 5 * 60_000
    /// The longest that a server may ask to be left alone.
    package var maximumRetryAfterMilliseconds: Int64 = 60 * 60_000
    /// How often to ask though nothing was announced: the event stream may be broken without anyone noticing.
    package var pollMilliseconds: Int64 = 60_000
    /// The most changes that an answer may carry.
    package var page = ExchangeRules.maximumChanges
    /// What one exchange takes from the outbox, unless the first group alone is more: all that a month offline makes,
    /// most likely.
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
    /// How long what the cloud refused for want of room stays refused, if nothing says that there is room again; and
    /// how long a content that was put because the cloud asked for it isn't put once more.
    package var secondTryMilliseconds: Int64 = 10 * 60_000
    /// A content that isn't larger starts beside a large one whatever that takes.
    package var smallTransferBytes = 1 << 20

    package init() {}
  }

  /// Groups that are read from the outbox at once.
  static let outboxRead = 256

  let options: Options
  /// What comes is kept back until `deliver(in:)` shows it. May change from step to step.
  package var holdsArrivals = false

  enum State: Sendable {
    case stopped, running
    case halted(TransportFailure)
  }
  var state = State.stopped
  var inFlight = InFlight()
  var backoff: Backoff
  var wakeUps = WakeUps()
  var fetching = FetchState()
  var restartOffer = RestartOffer()
  var rejections = RejectionSearch()
  var refusals = OutboxRefusals()
  var repair = CloudRepair()
  var uploads: UploadPlanner
  var downloads: DownloadPlanner
  /// This step's time.
  var now: Int64 = 0

  /// A stopped engine, which knows nothing but its options.
  package init(options: Options = Options()) {
    self.options = options
    backoff = Backoff(options)
    uploads = UploadPlanner(options)
    downloads = DownloadPlanner(options)
  }

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
    uploads.beginStep()
    self.now = now
    if !holdsArrivals { try showArrivals(&effects, in: &storage) }
    switch event {
    case .started, .sync:
      if case .stopped = state, case .sync = event { return [] }
      try resetFailures(in: &storage)
      fetching.isDue = true
    case .committed:
      // What the game saved while others' saves are kept back has other ancestors in common with them, which history
      // must not lose. And a head beside a save of which only the record is here is a conflict, which needs both; one
      // that replaces it leaves nothing to wait for.
      let isWaiting = holdsArrivals && !downloads.stagedSlots.isEmpty || downloads.hasNotDownloaded
      if try isWaiting || !storage.notDownloadedVersions().isEmpty { downloads.invalidate() }
    case .announced(let cloud):
      if let cursor = cloud.unknown, try restartIfCurrent(cursor, &effects, in: &storage) { break }
      fetching.announce(cloud.seq)
      if let step = cloud.step { try apply(step, &effects, in: &storage) }
    case .woke:
      woke()
    case .answered(let request, let response):
      guard let sent = inFlight.finishExchange(request, orAny: storage.faults.takesLateAnswers) else { return [] }
      try answered(response, to: sent, &effects, in: &storage, using: &random)
    case .uploaded(let request, let hash):
      guard let transfer = inFlight.finishTransfer(request, isUpload: true) else { return [] }
      backoff.succeeded(.content(transfer.hash))
      if hash == transfer.hash {
        try storage.setCloudDepth(transfer.depth, of: hash)
        uploads.uploaded(hash)
        repair.drop(hash)
      }
    case .downloaded(let request, let hash, let content):
      guard let transfer = inFlight.finishTransfer(request, isUpload: false) else { return [] }
      backoff.succeeded(.content(transfer.hash))
      if hash == transfer.hash { record(try downloads.received(hash, content, in: &storage), &effects) }
    case .failed(let request, let failure):
      if let sent = inFlight.finishExchange(request) {
        try failed(sent, failure, &effects, in: &storage, using: &random)
      } else if let transfer = inFlight.finishTransfer(request) {
        try failed(transfer, failure, &effects, in: &storage, using: &random)
      } else {
        return []
      }
    }
    try proceed(&effects, in: &storage, using: &random)
    return effects
  }

  private mutating func woke() {
    if wakeUps.woke() { return }
    backoff.endPauses()
    restartOffer.stopWaiting()
    fetching.isDue = fetching.isDue || inFlight.exchange == nil
  }

  /// A new start: what was refused or given up may have lost its cause.
  private mutating func resetFailures(in storage: inout some DeviceStorage) throws {
    for var group in try storage.outbox(limit: Self.outboxRead) where !group.refusals.isEmpty {
      group.refusals = []
      try storage.updateOutbox(group)
    }
    state = .running
    backoff.reset()
    restartOffer.stopWaiting()
    wakeUps.replace()
    rejections.reset()
    downloads.reset()
    refusals.reset()
    repair.reset()
  }

  // MARK: What next

  private mutating func proceed(
    _ effects: inout [EngineEffect], in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    guard case .running = state, backoff.exchangeFailure == nil else { return }
    if fetching.announced > 0 { fetching.reached(try storage.facts().cursor.seq) }
    if fetching.isComplete {
      try takeHeld(&effects, in: &storage)
      try showIfComplete(&effects, in: &storage)
      let slots = try downloads.finishDeferred(in: &storage)
      if !slots.isEmpty { effects.append(.notify(.slots(slots.sorted()))) }
    }
    // What is to be fetched, and what is sent without an upload, never waits for a content that is on its way.
    var planned: [PlannedUpload] = []
    if inFlight.exchange == nil, fetching.hasMorePages {
      let cursor = try storage.facts().cursor
      let request = inFlight.begin(SentExchange(cursor: cursor, gone: downloads.failures.gone), using: &random)
      effects.append(.exchange(request: request, ExchangeRequest(cursor: cursor, limit: options.page)))
    } else if inFlight.exchange == nil {
      let plan = try planSending(&effects, in: &storage, using: &random)
      planned = plan.uploads + repair.uploads
      let isHeldBack = restartOffer.waitsForUploads && plan.isOfferWaiting && backoff.isReached && backoff.contentFailure == nil
      if try !isHeldBack && (fetching.isExchangeDue || !plan.groups.isEmpty || hasWalletToSend(in: storage)) {
        let (message, sent) = try assemble(plan, in: &storage)
        fetching.isDue = false
        restartOffer.stopWaiting()
        let request = inFlight.begin(sent, using: &random)
        effects.append(.exchange(request: request, message))
      }
    }
    if backoff.contentFailure == nil, backoff.isReached {
      try startTransfers(planned, &effects, in: &storage, using: &random)
      if fetching.isComplete, downloads.isSatisfied { try showIfComplete(&effects, in: &storage) }
    }
    if uploads.hasPostponed { wakeUps.requestStep() }
    let wait = wakeUps.next(
      isPaused: backoff.contentFailure != nil, isExchanging: inFlight.exchange != nil, poll: options.pollMilliseconds)
    if let wait { effects.append(.wake(afterMilliseconds: wait)) }
  }
}
