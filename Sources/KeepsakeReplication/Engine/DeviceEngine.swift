/// A device's side of sync, one decision at a time: each step takes an event and returns the effects to carry out.
///
/// The engine holds only state that may be lost. Run each step in one transaction of the storage, commit, and only then
/// carry out the effects. If a step throws or its transaction fails, roll back, discard the engine and start a new one:
/// that is equivalent to a crash of the process at that point, which everything here is designed to survive.
///
/// At most one exchange is in flight, and beside it some contents being uploaded and downloaded. Each request has a
/// number; a response with any other number changes nothing.
package struct DeviceEngine: Sendable {
  /// Times and sizes; the defaults are meant for players.
  package struct Options: Hashable, Sendable {
    /// The first pause after a failure; each further one doubles it.
    package var firstBackoffMilliseconds: Int64 = 500
    package var maximumBackoffMilliseconds: Int64 = 5 * 60_000
    /// The longest pause that a server may ask for.
    package var maximumRetryAfterMilliseconds: Int64 = 60 * 60_000
    /// How often to run an exchange although nothing was announced: the event stream may be broken without anyone
    /// noticing.
    package var pollMilliseconds: Int64 = 60_000
    /// The most changes that a response may carry.
    package var page = ExchangeRules.maximumChanges
    /// What one exchange takes from the outbox, unless the first group alone is larger: most likely everything that a
    /// month offline produces.
    package var maximumCells = ExchangeRules.maximumCells
    package var maximumVersions = ExchangeRules.maximumVersions
    package var maximumBytes = 1024 * 1024
    /// Bytes of the contents inside one exchange, in total; other contents are uploaded before it.
    package var inlineBytes = 256 * 1024
    /// A content with this many bases or more is too slow to decode to serve as a base itself.
    package var maximumDepth = 20
    /// After the bank has replied without an effect: how long an event makes the device ask nothing more than what is
    /// new. The next poll asks in any case.
    package var walletPauseMilliseconds: Int64 = 1_000
    /// The most operations of the wallet in one exchange, of the chain and late ones each.
    package var walletBatch = Wallet.maximumBatch
    /// Limits of the groups in which all that a store holds waits to be offered: small, since the cloud may refuse one
    /// of them.
    package var pieceCells = DeviceCommit.maximumGroupCells
    package var pieceVersions = DeviceCommit.maximumGroupVersions
    package var pieceBytes = DeviceCommit.maximumGroupBytes
    /// How long the device waits when the cloud has no room for a part of an offer: until another device's offer is
    /// done.
    package var offerPauseMilliseconds: Int64 = 30_000
    /// Contents in flight at the same time, uploads and downloads together.
    package var parallelTransfers = 4
    /// Their bytes in total, as far as they are known in advance; a single one may be larger. They are held in memory.
    package var maximumTransferBytes = 32 << 20
    /// How long a refusal for lack of room holds if nothing reports that there is room again; how long a content that
    /// was uploaded because the cloud asked for it isn't uploaded again; and how long a game that isn't entitled to a
    /// shared container asks nothing.
    package var secondTryMilliseconds: Int64 = 10 * 60_000
    /// A content of at most this size starts regardless of the bytes that are in flight.
    package var smallTransferBytes = 1 << 20

    package init() {}
  }

  /// Groups read from the outbox at a time.
  static let outboxRead = 256

  let options: Options
  /// Received changes are kept back until `deliver(in:)` shows them. May change from step to step.
  package var holdsArrivals = false
  /// Whether the cloud has a bank. A cloud without one is offered no wallet, so that its operations stay free for the
  /// bank that the store meets later.
  package var hasBank = true

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
  /// The time of the current step.
  var now: Int64 = 0

  /// Creates a stopped engine, which knows nothing but its options.
  package init(options: Options = Options()) {
    self.options = options
    backoff = Backoff(options)
    uploads = UploadPlanner(options)
    downloads = DownloadPlanner(options)
  }

  /// Handles an event.
  ///
  /// - Parameters:
  ///   - now: The device's clock, in milliseconds since 1970; it may jump.
  /// - Returns: The effects to carry out once the transaction has committed.
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
      rejections.resumeWallet(now: now)
      // What the game saves while other devices' saves are kept back shares other ancestors with them, which pruning
      // must not remove. And a new head beside a version that isn't downloaded is a conflict, which needs the contents
      // of both; a head that replaces that version leaves nothing to wait for.
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
    rejections.resumeWallet(now: now)
    fetching.isDue = fetching.isDue || inFlight.exchange == nil
  }

  /// Starts afresh: the cause of a refusal or of giving up may be gone.
  private mutating func resetFailures(in storage: inout some DeviceStorage) throws {
    for var group in try refusedGroups(in: storage) {
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

  /// Returns the groups of the outbox with refusals. They are near its front, because groups are sent in order and the
  /// accepted ones leave it: where as many as are read at once have none, none follow.
  private func refusedGroups(in storage: some DeviceStorage) throws -> [OutboxGroup] {
    var limit = Self.outboxRead
    while true {
      let groups = try storage.outbox(limit: limit)
      let isAll = groups.count < limit || groups.suffix(Self.outboxRead).allSatisfy(\.refusals.isEmpty)
      if isAll { return groups.filter { !$0.refusals.isEmpty } }
      limit *= 2
    }
  }

  // MARK: What next

  private mutating func proceed(
    _ effects: inout [EngineEffect], in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws {
    guard case .running = state, backoff.exchangeFailure == nil else { return }
    if fetching.announced > 0 { fetching.reached(try storage.facts().cursor.seq) }
    // An exchange follows anyway, and what was announced may be what the bank waited for.
    if fetching.announced > 0 { rejections.resumeWallet(now: now, after: options.walletPauseMilliseconds) }
    if fetching.isComplete {
      try takeHeld(&effects, in: &storage)
      try showIfComplete(&effects, in: &storage)
      let slots = try downloads.finishDeferred(in: &storage)
      if !slots.isEmpty { effects.append(.notify(.slots(slots.sorted()))) }
    }
    // Fetching, and sending what needs no upload, never wait for a content in flight.
    var planned: [PlannedUpload] = []
    if inFlight.exchange == nil, fetching.hasMorePages {
      let facts = try storage.facts()
      let request = inFlight.begin(
        SentExchange(cursor: facts.cursor, gone: downloads.failures.gone, setBack: facts.setBack), using: &random)
      effects.append(
        .exchange(
          request: request, ExchangeRequest(cursor: facts.cursor, limit: options.page, setBack: facts.setBack)))
    } else if inFlight.exchange == nil {
      let plan = try planSending(&effects, in: &storage, using: &random)
      // None would be taken from a device that may only read.
      planned = try isReadOnly(in: storage) ? [] : plan.uploads + repair.uploads
      let isHeldBack =
        restartOffer.waitsForUploads && plan.isOfferWaiting && backoff.isReached && backoff.contentFailure == nil
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
