/// A device's side of the sync, one decision at a time: what happened goes in, what is to be done comes out.
///
/// The engine holds only what may be forgotten. Run each step in one transaction of the storage, commit, and only then carry
/// out the effects. If a step throws or its transaction fails, roll back, throw the engine away and start a new one: it is
/// as if the process had crashed there, which everything here is made for.
///
/// One request is in flight at a time. An answer to another one changes nothing.
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
    package var page = 500
    /// What one exchange takes from the outbox, unless the first group alone is more.
    package var maximumCells = 1000
    package var maximumVersions = 200
    package var maximumBytes = 512 * 1024
    /// Contents that travel inside the exchange, all together; others are put before it.
    package var inlineBytes = 256 * 1024
    /// A content with more bases than this is too slow to decode to be a base itself.
    package var maximumDepth = 20

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

  let options: Options
  let planted: Set<PlantedBug>

  enum Flight: Sendable {
    case exchange(SentExchange)
    case upload(ContentHash, depth: Int, base: ContentHash?)
    case download(ContentHash)
  }
  var flight: (request: UInt64, what: Flight)?
  var lastRequest: UInt64?
  var phase = EngineStatus.Phase.stopped
  var attempts = 0

  /// An exchange is due whether or not there is something to send.
  var exchangeDue = false
  /// How far the cloud said that it has come, as long as no exchange has looked since; 0 for nothing said.
  var announced: UInt64 = 0
  /// The last answer said that there is more.
  var paging = false
  /// The last answer said that this is all, so what is staged may be shown.
  var complete = false
  /// After a download, the outbox goes first.
  var sendFirst = false
  /// Groups go one by one, because the cloud rejected several together.
  var single = false
  /// The cloud rejected an exchange for its wallet's sake, or so it looks.
  var walletPaused = false
  var missingRounds = 0
  /// Contents to be sent without a base, because the cloud lacked the one they had.
  var sendFull: Set<ContentHash> = []

  /// What staged versions need and isn't here, in the order of asking; nil when it has to be worked out again.
  var needs: [ContentHash]?
  /// Of these, what only serves to merge better.
  var optional: Set<ContentHash> = []
  /// Contents that came before their bases, outermost first.
  var held: [EncodedContent] = []
  var troubles: [ContentHash: Int] = [:]
  var givenUp: Set<ContentHash> = []

  package init(options: Options = Options()) {
    self.init(options: options, planted: [])
  }

  /// For tests of the tests: an engine with faults.
  package init(options: Options, planted: Set<PlantedBug>) {
    self.options = options
    self.planted = planted
  }

  package var status: EngineStatus { EngineStatus(phase: phase, attempts: attempts) }

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
    switch event {
    case .started, .sendNow:
      if phase == .stopped, case .sendNow = event { return [] }
      try forgive(in: &storage)
      phase = flight == nil ? .idle : .busy
      attempts = 0
      exchangeDue = true
    case .committed:
      break
    case .announced(let cloud):
      announced = max(announced, cloud.seq)
    case .woke:
      if case .waiting = phase { phase = .idle }
      exchangeDue = exchangeDue || flight == nil
    case .answered(let request, let response):
      guard case .exchange(let sent)? = land(request) else { return [] }
      try answered(response, to: sent, now: now, &effects, in: &storage, using: &random)
    case .uploaded(let request, let hash):
      guard case .upload(let expected, let depth, _)? = land(request) else { return [] }
      attempts = 0
      if hash == expected {
        try storage.setCloudDepth(depth, of: hash)
        sendFull.remove(hash)
      }
    case .downloaded(let request, let hash, let content):
      guard case .download(let expected)? = land(request) else { return [] }
      attempts = 0
      if hash == expected { try downloaded(hash, content, &effects, in: &storage) }
    case .failed(let request, let failure):
      guard let what = land(request) else { return [] }
      try failed(what, failure, &effects, in: &storage, using: &random)
    }
    try proceed(now: now, &effects, in: &storage, using: &random)
    return effects
  }

  /// Takes the request of this number out of flight; nil if it isn't the one.
  private mutating func land(_ request: UInt64) -> Flight? {
    guard let flight, flight.request == request else { return nil }
    self.flight = nil
    if phase == .busy { phase = .idle }
    return flight.what
  }

  /// A new start: what was refused or given up may have lost its cause.
  private mutating func forgive(in storage: inout some DeviceStorage) throws {
    for var group in try storage.outbox(limit: Self.outboxRead) where !group.refusals.isEmpty {
      group.refusals = []
      try storage.updateOutbox(group)
    }
    walletPaused = false
    single = false
    troubles = [:]
    givenUp = []
    needs = nil
  }

  // MARK: What next

  private mutating func proceed(
    now: Int64, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws {
    guard flight == nil, phase == .idle else { return }
    // What an answer has brought already, this device's own changes above all, needs no exchange.
    if announced > 0, try announced <= storage.facts().cursor.seq { announced = 0 }
    if paging {
      if planted.contains(.showHalfPages) { try showIfComplete(&effects, in: &storage) }
      let facts = try storage.facts()
      let request = ExchangeRequest(cursor: facts.cursor, limit: options.page)
      launch(.exchange(SentExchange(cursor: facts.cursor)), &effects, using: &random) { .exchange(request: $0, request) }
      return
    }
    if complete {
      try showIfComplete(&effects, in: &storage)
      let outboxFirst = try sendFirst && hasWork(in: storage)
      let download = try nextDownload(&effects, in: &storage)
      if download == nil { try showIfComplete(&effects, in: &storage) }
      if !outboxFirst, let hash = download {
        sendFirst = true
        launch(.download(hash), &effects, using: &random) { .download(request: $0, hash) }
        return
      }
    }
    switch try nextSending(&effects, in: &storage) {
    case .upload(let content, let depth):
      launch(.upload(content.hash, depth: depth, base: content.base), &effects, using: &random) { .upload(request: $0, content) }
    case .exchange(let request, let sent):
      exchangeDue = false
      sendFirst = false
      var sent = sent
      sent.announced = announced
      launch(.exchange(sent), &effects, using: &random) { .exchange(request: $0, request) }
    case nil:
      if complete, let hash = try nextDownload(&effects, in: &storage) {
        launch(.download(hash), &effects, using: &random) { .download(request: $0, hash) }
      } else {
        effects.append(.wake(afterMilliseconds: options.pollMilliseconds))
      }
    }
  }

  private mutating func launch(
    _ what: Flight, _ effects: inout [EngineEffect], using random: inout some RandomNumberGenerator,
    effect: (UInt64) -> EngineEffect
  ) {
    // Begins anywhere, so that answers to an earlier engine of the same store are strangers here.
    let request = (lastRequest ?? random.next()) &+ 1
    lastRequest = request
    flight = (request, what)
    phase = .busy
    effects.append(effect(request))
  }

  // MARK: Failure

  private mutating func failed(
    _ what: Flight, _ failure: TransportFailure, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    if case .exchange(let sent) = what {
      exchangeDue = true
      if failure.kind == .unreachable { try unmarkOffered(sent.newlyOffered, in: &storage) }
    }
    switch failure.kind {
    case .unauthorized:
      phase = .halted(failure)
    case .rejected:
      try rejected(what, failure, &effects, in: &storage)
    case .server(let retryAfter):
      pause(failure, atLeast: retryAfter ?? 0, &effects, using: &random)
    case .unreachable, .interrupted:
      pause(failure, atLeast: 0, &effects, using: &random)
    }
  }

  /// Waits before the next try: longer after each failure, and not in step with other devices.
  mutating func pause(
    _ failure: TransportFailure, atLeast minimum: Int64, _ effects: inout [EngineEffect],
    using random: inout some RandomNumberGenerator
  ) {
    attempts += 1
    var delay = options.firstBackoffMilliseconds
    for _ in 1..<max(2, min(attempts, 32)) where attempts > 1 && delay < options.maximumBackoffMilliseconds { delay *= 2 }
    delay = min(delay, options.maximumBackoffMilliseconds)
    delay -= Int64(random.next() % UInt64(delay / 2 + 1))
    delay = max(delay, min(max(0, minimum), options.maximumRetryAfterMilliseconds))
    phase = .waiting(failure)
    effects.append(.wake(afterMilliseconds: delay))
  }

  /// The cloud won't take a request as it is: finds out what of it is to blame, so that the rest goes on.
  private mutating func rejected(
    _ what: Flight, _ failure: TransportFailure, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    switch what {
    case .download(let hash):
      giveUp(hash, &effects)
    case .upload(let hash, _, let base?):
      // The cloud lost the base, most likely: alone the content needs none.
      try storage.setCloudDepth(nil, of: base)
      sendFull.insert(hash)
    case .upload(let hash, _, nil):
      try refuse(groupsWith: hash, failure.message, &effects, in: &storage)
    case .exchange(let sent):
      if sent.groups.count > 1 {
        single = true
      } else if sent.hasWallet {
        walletPaused = true
      } else if let group = sent.groups.first {
        try refuse(group.id, [Refusal(item: "all", reason: .invalid, message: failure.message)], &effects, in: &storage)
      } else {
        phase = .halted(failure)
      }
    }
  }
}

/// An exchange under way, as it was sent.
struct SentExchange: Sendable {
  var cursor: Cursor
  /// The outbox groups as they stood then.
  var groups: [OutboxGroup] = []
  /// Versions that went, and versions that didn't because one of those replaces them.
  var versions: [VersionID] = []
  var skipped: [VersionID] = []
  /// Of `versions`, what nobody could have known before.
  var newlyOffered: [VersionID] = []
  /// Contents that went along.
  var contents: [EncodedContent] = []
  var hasWallet = false
  /// What had been announced when it was sent.
  var announced: UInt64 = 0
}
