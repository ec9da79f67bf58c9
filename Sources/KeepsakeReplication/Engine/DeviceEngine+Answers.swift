// How the response to an exchange is handled.
extension DeviceEngine {
  /// Handles the response to an exchange, in this order: facts about the cloud, what is new there, the outcome of what
  /// was sent, and the wallet.
  mutating func answered(
    _ response: ExchangeResponse, to sent: SentExchange, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    if let fault = response.fault(answering: sent, limit: options.page) {
      fetching.isDue = true
      pause(
        TransportFailure(.server(retryAfterMilliseconds: nil), fault), of: .exchange, atLeast: 0, &effects,
        using: &random)
      return
    }
    settle(sent)
    var facts = try storage.facts()
    facts.serverOffsetMilliseconds = response.serverTimeMilliseconds.addingClamped(-now)
    facts.lastFetchedMilliseconds = now
    facts.isRefused = false
    try learnTaking(from: response, answering: sent, &facts, in: storage)
    if response.restart {
      try storage.setFacts(facts)
      if response.isBehind { return try fetchAnew(from: response.cursor.epoch, &effects, in: &storage) }
      return try beginEpoch(response.cursor.epoch, &effects, in: &storage)
    }
    try stage(response, facts, in: &storage)
    try planRepairs(response.wanted, in: &storage)
    fetching.answered(
      announcedBefore: sent.announced, hasMore: response.more, showsHalfPages: storage.faults.showsHalfPages)
    try take(response.contents, &effects, in: &storage)
    try apply(response.outcome, of: sent, isLastPage: !response.more, &effects, in: &storage, using: &random)
    if let use = response.quota { try learnedRoom(use, in: storage) }
    try receiveWallet(
      response.wallet, answering: sent, isReadOnly: response.isReadOnly, &effects, in: &storage, using: &random)
  }

  /// Records that the cloud was reached and has received what was reported to it, whatever the response contains.
  private mutating func settle(_ sent: SentExchange) {
    backoff.succeeded(.exchange)
    wakeUps.restartPoll()
    downloads.looked(for: sent.gone)
    repair.reported(sent.damaged)
  }

  /// Stages the changes, together with the cursor that they lead to.
  private mutating func stage(
    _ response: ExchangeResponse, _ known: DeviceFacts, in storage: inout some DeviceStorage
  ) throws {
    var facts = known
    facts.cursor = response.cursor
    if !response.changes.isEmpty { facts.hasArrivals = false }
    try storage.setFacts(facts)
    guard !response.changes.isEmpty else { return }
    try storage.stage(response.changes)
    downloads.invalidate()
    downloads.reconsider(response.changes)
  }

  /// Plans uploads of contents that are damaged in the cloud and intact on this device.
  private mutating func planRepairs(_ hashes: [ContentHash], in storage: inout some DeviceStorage) throws {
    let planned = try repair.plan(hashes, now: now, interval: options.secondTryMilliseconds, in: &storage)
    for hash in planned { uploads.sendInFull(hash) }
  }

  /// Applies what the cloud did with what was sent.
  private mutating func apply(
    _ outcome: ExchangeOutcome?, of sent: SentExchange, isLastPage: Bool, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    switch outcome {
    case nil: break
    case .accepted:
      rejections.endMissing()
      backoff.succeeded(.missingContents)
      uploads.accepted(sent.contents)
      // A cloud that doesn't know offer parts accepts each one by itself.
      guard sent.part?.isLast ?? true else { return restartOffer.tookPart() }
      restartOffer.dropParts()
      try accepted(sent, isLastPage: isLastPage, &effects, in: &storage)
    case .held(let parts):
      keptParts(parts, of: sent.part, &effects, using: &random)
    case .missing(let hashes):
      rejections.countMissing()
      // The save that needs such a content was replaced by one that was committed after the first part was sent. Both
      // are sent together, in a new offer.
      if try hashes.contains(where: { try !storage.hasContent($0) }) { restartOffer.dropParts() }
      try missing(hashes, of: sent, &effects, in: &storage)
      if rejections.hasMissedTooOften() {
        let failure = TransportFailure(
          .server(retryAfterMilliseconds: nil), "the cloud keeps asking for contents that were already sent")
        pause(failure, of: .missingContents, atLeast: 0, &effects, using: &random)
      }
    case .refused(let refusals):
      try refused(refusals, of: sent, &effects, in: &storage)
    }
  }

  /// Applies the bank's decisions. A device that may only read gets none: its offer stays its own, and is made again
  /// once it may write.
  private mutating func receiveWallet(
    _ reply: WalletReply?, answering sent: SentExchange, isReadOnly: Bool, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws {
    guard let reply else {
      if sent.hasWallet, !isReadOnly { rejections.skipWallet() }
      return
    }
    guard let state = try storage.wallet() else { return }
    if case .closed = reply.state, storage.faults.ignoresForks { return }
    var wallet = Wallet(state, faults: storage.faults)
    let change = try wallet.receive(
      reply, using: &random, acknowledged: storage.acknowledgedOperations, settled: storage.settledOperations)
    if wallet.state != state { try storage.setWallet(wallet.state) }
    var goods = try storage.goods()
    if case .restored = reply.state, goods.number != 0 {
      // Its changes are numbered anew.
      goods.number = 0
      try storage.setGoods(goods)
    }
    let hasNewGoods = reply.goods.map { goods.take($0) } ?? false
    if hasNewGoods { try storage.setGoods(goods) }
    if !change.decisions.isEmpty, !storage.faults.losesVerdicts { try storage.recordDecisions(change.decisions) }
    if !change.orders.isEmpty { try storage.recordOrders(change.orders, areNews: change.areOrdersNews) }
    if change.balancesChanged || hasNewGoods || !change.orders.isEmpty { effects.append(.notify(.wallet)) }
    if !change.decisions.isEmpty { effects.append(.notify(.decisions(change.decisions))) }
    if !change.declinedVouchers.isEmpty {
      effects.append(.notify(.moneyLost(LostMoney(change.declinedVouchers))))
    }
    if change.hasMore || hasNewGoods && reply.goods?.isPart == true { fetching.isDue = true }
    let asksToProve = if case .restored = reply.state { true } else { false }
    rejections.countWallet(
      isProgress: change.isProgress || !wallet.hasQuestions, asksToProve: asksToProve, now: now)
  }
}

extension ExchangeResponse {
  /// Checks a response.
  ///
  /// - Parameters:
  ///   - sent: The exchange that it responds to.
  ///   - limit: The most changes that were asked for.
  /// - Returns: What is wrong with it, as a sentence for people; nil if nothing is.
  func fault(answering sent: SentExchange, limit: Int) -> String? {
    guard cursor.seq <= Cursor.maximumSeq, cursor.epoch <= Cursor.maximumSeq,
      cursor.ahead.map({ (cursor.seq...Cursor.maximumSeq).contains($0.seq) }) ?? true
    else { return "the cursor is out of range" }
    guard abs(Int128(serverTimeMilliseconds)) <= Int128(ExchangeRules.maximumMilliseconds) else {
      return "the server's time is out of range"
    }
    if let setBack {
      guard setBack.to == sent.cursor.seq, setBack.to > 0, setBack.to < setBack.from,
        setBack.from <= Cursor.maximumSeq
      else { return "the numbers of a set-back store are out of range" }
    }
    if let setBackMark, abs(Int128(setBackMark.atMilliseconds)) > Int128(ExchangeRules.maximumMilliseconds) {
      return "the time of a set-back is out of range"
    }
    if case .held = outcome, sent.part == nil { return "it keeps only a part of what was sent as a whole" }
    if restart { return sent.cursor.seq == 0 ? "it responds to a first request with a restart" : nil }
    guard cursor.seq >= sent.cursor.seq, !more || cursor.seq > sent.cursor.seq else {
      return "the cursor doesn't advance"
    }
    guard changes.count <= limit else { return "there are more changes than requested" }
    for change in changes {
      guard change.seq > sent.cursor.seq, change.seq <= cursor.seq else { return "a change is out of order" }
      switch change.item {
      case .cell(let update):
        if let objection = ExchangeRules.objection(to: update) { return "\(objection.item): \(objection.message)" }
      case .version(let record):
        if let objection = ExchangeRules.objection(to: record) { return "\(objection.item): \(objection.message)" }
      }
    }
    return nil
  }
}
