import Foundation
import KeepsakeReplication

// What happens between devices and the cloud, and in the cloud itself.
extension World {
  func perform(_ effects: [EngineEffect], of index: Int) {
    let opening = devices[index].opening
    let underWay = devices[index].engine?.status.transfers.count ?? 0
    for effect in effects {
      switch effect {
      case .exchange(let number, let request):
        report.statistics.exchanges += 1
        if underWay > 0 { report.statistics.exchangesBeside += 1 }
        devices[index].exchanges += 1
        trace(
          4, UInt64(index), number, UInt64(request.cells.count), UInt64(request.versions.count), request.cursor.seq,
          words: """
            device \(index) exchanges #\(number & 0xFFFF) from \(request.cursor.seq) cells \
            \(request.cells.map(\.key.key)) versions \(request.versions.map { short($0.id) }) wallet \
            \(request.wallet.map { "\(short($0.chain)) +\($0.operations.count) late \($0.late.count)" } ?? "-")
            """)
        send(.exchange(number, request, era: devices[index].era, sent: now), number, from: index)
      case .upload(let number, let content):
        report.statistics.uploads += 1
        if underWay > 1 { report.statistics.transfersBeside += 1 }
        trace(5, UInt64(index), number, words: "device \(index) uploads \(content.hash.description.prefix(6))")
        send(.upload(number, content), number, from: index)
      case .download(let number, let hash):
        report.statistics.downloads += 1
        if underWay > 1 { report.statistics.transfersBeside += 1 }
        trace(6, UInt64(index), number, words: "device \(index) downloads \(hash.description.prefix(6))")
        send(.download(number, hash), number, from: index)
      case .wake(let delay):
        devices[index].wake += 1
        schedule(after: delay, .wake(device: index, opening: opening, number: devices[index].wake))
      case .notify(let notification):
        handle(notification, on: index)
      }
    }
  }

  private func send(_ call: Call, _ number: UInt64, from index: Int) {
    let opening = devices[index].opening
    func fail(after delay: Int64, _ kind: TransportFailure.Kind) {
      schedule(
        after: delay,
        .toDevice(device: index, opening: opening, .failed(request: number, TransportFailure(kind, "simulated"))))
    }
    // A request arrives before the cloud forgets what replaced versions it has got: nothing is under way for 90 days.
    func arrive(after delay: Int64, opening: Int) {
      let longest = pruningRules.map { $0.rememberedMilliseconds - 1 } ?? .max
      schedule(after: min(delay, longest), .toCloud(device: index, opening: opening, call))
    }
    guard calm || devices[index].online else { return fail(after: 10, .unreachable) }
    if !calm, swarm.isAboutMoney, isBeginning(call, of: index) {
      // It arrives when the store has forgotten the chain that it begins, and has begun another one.
      report.statistics.lateAnswers += 1
      schedule(after: 500, .setBack(device: index, opening: opening))
      fail(after: Self.timeoutMilliseconds, .interrupted)
      return arrive(after: Int64.random(in: 4_000...15_000, using: &random), opening: -1)
    }
    let arrival = Int64.random(in: 5...swarm.latencyMilliseconds * call.weight, using: &random)
    guard !calm, random.may(swarm.lossOdds) else {
      if !calm, random.may(swarm.doublingOdds) {
        report.statistics.doubled += 1
        arrive(after: arrival + Int64.random(in: 0...8_000, using: &random), opening: opening)
      }
      return arrive(after: arrival, opening: opening)
    }
    switch Int.random(in: 0..<5, using: &random) {
    case 0:
      fail(after: 50, .unreachable)
    case 1:
      report.statistics.lostRequests += 1
      fail(after: Self.timeoutMilliseconds, .interrupted)
    case 2:
      // The response arrives too late: the request's number is no longer in flight.
      report.statistics.lateAnswers += 1
      fail(after: Self.timeoutMilliseconds, .interrupted)
      arrive(after: Int64.random(in: 4_000...15_000, using: &random), opening: opening)
    case 3:
      report.statistics.lostAnswers += 1
      fail(after: Self.timeoutMilliseconds, .interrupted)
      arrive(after: arrival, opening: -1)
    default:
      fail(after: arrival, .server(retryAfterMilliseconds: random.once(in: 2) ? 2_000 : nil))
    }
  }

  /// Whether a request is the first one on a chain that a backup doesn't know.
  private func isBeginning(_ call: Call, of index: Int) -> Bool {
    guard case .exchange(_, let request, _, _) = call, let offer = request.wallet, let old = offer.follows else {
      return false
    }
    return offer.statement == 0 && devices[index].backup?.storage.wallet()?.chain == old
  }

  /// The cloud receives a call. An opening below zero means that the response gets lost.
  func receive(_ call: Call, from index: Int, _ opening: Int) {
    let delay = Int64.random(in: 5...swarm.latencyMilliseconds, using: &random)
    func answer(_ event: EngineEvent) {
      schedule(after: delay, .toDevice(device: index, opening: opening, event))
    }
    switch call {
    case .upload(let number, let content):
      if let base = content.base, !cloud.hasContent(base) {
        return answer(.failed(request: number, TransportFailure(.rejected, "the base is missing")))
      }
      cloud.putContent(content)
      answer(.uploaded(request: number, content.hash))
    case .download(let number, let hash):
      answer(.downloaded(request: number, hash, cloud.content(hash)))
    case .exchange(let number, let request, let era, let sent):
      let before = cloud
      let contested = contested(in: request)
      do {
        let response = try respond(to: request, from: index, era, sent)
        count(response)
        checkLifted(contested)
        checkCloud(after: request)
        checkDeclined(request, before)
        if response.wallet != nil { checkRestored(request, before) }
        checkVouchers(request.wallet, response.wallet, before)
        trace(
          7, UInt64(index), number, response.cursor.seq, UInt64(response.changes.count), response.cursor.mark,
          words: "the cloud responds to device \(index) #\(number & 0xFFFF): \(short(response.outcome)) "
            + "\(response.restart ? "RESTART " : "")changes \(response.changes.map(short)) to \(response.cursor.seq)"
            + "\(response.more ? " more" : "") wallet \(response.wallet.map { short($0.state) } ?? "-")")
        answer(.answered(request: number, response))
      } catch {
        violation("the cloud refuses what device \(index) sent: \(error)")
      }
      if cloud.position().seq > before.position().seq { announce(since: before.position(), from: index) }
    }
  }

  /// Returns the response of the acceptance. A cloud without room accepts no saves, nor what came with them, but
  /// reports what is new.
  private func respond(to request: ExchangeRequest, from index: Int, _ era: Int, _ sent: Int64) throws
    -> ExchangeResponse
  {
    let reached = cloud.reached()[Device.id(index)] ?? 0
    // As a server does: over what was loaded for the request.
    let reads = try CloudAcceptance.reads(of: request, from: Device.id(index), hasQuota: isFull)
    let now = now
    if isFull { lastFull = now }
    let response = try cloud.decide(reading: reads, using: &random) { cloud, random in
      try cloud.recordVisit(
        WriteSet.Visit(player: PlayerID(high: 0, low: 1), app: Data(), milliseconds: now), of: Device.id(index),
        every: 0)
      return try CloudAcceptance.exchange(
        request, from: Device.id(index), now: now, quota: isFull ? 0 : nil, rules: bankRules, in: &cloud,
        using: &random)
    }
    noteSetBack(request, response, of: index, era, after: reached)
    // It takes longer to restore a store from a backup than a request is under way: its own report comes last.
    if era < devices[index].era { reportSetBack(index) }
    checkRecall(response.wallet, of: request.wallet)
    if sent >= lastAsked[index]?.sent ?? sent { lastAsked[index] = (sent, request.hasStaged) }
    if !response.restart, request.cursor.ahead == nil, !request.hasStaged {
      words[index] = Word(era: era, sent: sent, newest: max(sent, words[index]?.newest ?? sent))
    }
    try checkSeen(by: index, after: reached)
    if case .refused = response.outcome { report.statistics.refusals += 1 }
    if cloud.usedBytes() != cloud.recountedBytes() {
      violation("the cloud counts \(cloud.usedBytes()) bytes, but has \(cloud.recountedBytes())")
    }
    return response
  }

  /// Notifies every device, including the one that made the change, which may be notified before its response arrives.
  func announce(since before: Cursor, from sender: Int?) {
    let seq = cloud.position().seq
    var step: CloudEvent.Step?
    do {
      if swarm.tellsSteps { step = try CloudAcceptance.step(since: before, in: cloud) }
    } catch {
      violation("the cloud can't read what changed: \(error)")
    }
    for index in devices.indices {
      guard calm || (devices[index].online && !random.may(swarm.deafnessOdds)) else { continue }
      schedule(
        after: Int64.random(in: 1...300, using: &random),
        .toDevice(
          device: index, opening: devices[index].opening,
          .announced(CloudEvent(seq: seq, step: index == sender ? nil : step))))
    }
  }

  /// Sends the first event of an event stream.
  func listen(_ index: Int) {
    guard calm || devices[index].online else { return }
    let cursor = devices[index].storage.facts().cursor
    do {
      let isKnown = try cursor.ahead != nil || CloudAcceptance.isOfThisHistory(cursor, in: cloud)
      trace(
        32, UInt64(index), isKnown ? 1 : 0,
        words: "device \(index) waits for events from \(cursor.seq)\(isKnown ? "" : ", which the cloud doesn't know")")
      schedule(
        after: Int64.random(in: 1...300, using: &random),
        .toDevice(
          device: index, opening: devices[index].opening,
          .announced(CloudEvent(seq: cloud.position().seq, unknown: isKnown ? nil : cursor))))
    } catch {
      violation("the cloud can't check whether it knows a cursor: \(error)")
    }
  }

  private func count(_ response: ExchangeResponse) {
    if response.restart { report.statistics.restarts += 1 }
    if response.more { report.statistics.pages += 1 }
    if case .missing = response.outcome { report.statistics.missingContents += 1 }
    if case .held = response.outcome { report.statistics.partsHeld += 1 }
    if case .refused(let refusals) = response.outcome, !isFull {
      violation("a correct device was refused: \(refusals)")
    }
    switch response.wallet?.state {
    case .closed?, .from?: report.statistics.forks += 1
    case .accepted?, .restored?, nil: break
    }
    if response.wallet?.decisions.contains(where: { $0.verdict == .waiting }) == true { report.statistics.waits += 1 }
    if response.wallet?.recalled.isEmpty == false { report.statistics.recalls += 1 }
  }

  func handle(_ notification: EngineNotification, on index: Int) {
    switch notification {
    case .acknowledged(let ids):
      for id in ids where cloud.version(id) == nil && !cloud.isCovered(id) && !cloudWasRestored {
        if !isReplaced(id, among: { cloud.version($0) != nil || cloud.isCovered($0) }) {
          violation("\(short(id)) was confirmed to device \(index) as being in the cloud, but it isn't")
        }
      }
    case .refused(let refusals) where swarm.cloudFillOdds == 0: violation("device \(index) was refused: \(refusals)")
    case .damaged(let hash): violation("device \(index) found \(hash) damaged or missing")
    case .moneyLost(let lost): violation("device \(index) lost money from another bank: \(lost.amounts)")
    case .decisions(let decisions):
      for decided in decisions where decided.verdict == .declined {
        let operation = decided.operation
        if operation.effect == .claim { report.statistics.claimsDeclined += 1 } else { report.statistics.declined += 1 }
        if let held = cloud.decision(on: operation.id)?.verdict, held != .declined, !cloudWasRestored {
          violation("\(operation.id) was declined to device \(index), but it was charged")
        }
      }
    case .slots, .cells, .wallet, .caughtUp, .refused, .moneyOutOfReach: break
    }
  }

  // MARK: Words

  func short(_ id: Identifier<some Any>) -> String { String(id.description.prefix(6)) }

  private func short(_ change: CloudChange) -> String {
    switch change.item {
    case .cell(let update): "\(change.seq):\(update.key.key)"
    case .version(let record): "\(change.seq):\(short(record.id))"
    }
  }

  private func short(_ outcome: ExchangeOutcome?) -> String {
    switch outcome {
    case nil: "nothing"
    case .accepted(let seq): "accepted at \(seq)"
    case .missing(let hashes): "missing \(hashes.count)"
    case .refused(let refusals): "refused \(refusals.count)"
    case .held(let parts): "held \(parts)"
    }
  }

  func short(_ state: WalletReply.State) -> String {
    switch state {
    case .accepted(let head): "accepted \(head.count)"
    case .closed(let common): "closed \(common.count)"
    case .from(let head, let common): "from \(head.count) common \(common.map { "\($0.count)" } ?? "-")"
    case .restored: "restored"
    }
  }
}
