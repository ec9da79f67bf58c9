import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

extension Lab {
  /// Sends an event to the device, and delivers its requests to a cloud that takes nothing from an exchange, until the
  /// device waits.
  ///
  /// - Parameters:
  ///   - limit: After so many exchanges the device counts as one that never ends.
  ///   - respond: Changes the cloud's empty response to what it says instead.
  /// - Returns: How many exchanges the device ran.
  mutating func countExchanges(
    _ index: Int = 0, after event: EngineEvent, atMost limit: Int = 50,
    _ respond: (ExchangeRequest, inout ExchangeResponse) -> Void
  ) throws -> Int {
    try step(index, event)
    var count = 0
    while count < limit, let effect = takeRequest(index) {
      guard case .exchange(let number, let request) = effect else {
        if let event = try answer(to: effect, of: index, cloud: &cloud, using: &random) { try step(index, event) }
        continue
      }
      count += 1
      var response = ExchangeResponse(
        outcome: nil, changes: [], contents: [], wallet: nil, cursor: request.cursor, more: false,
        serverTimeMilliseconds: 0)
      respond(request, &response)
      try step(index, .answered(request: number, response))
    }
    return count
  }

  /// Whether the device pauses after a failure.
  func isPausing(_ index: Int = 0) -> Bool {
    if case .waiting = devices[index].engine.status.phase { true } else { false }
  }
}

/// A cloud whose responses make no sense: whatever it says, a device doesn't ask it endlessly, and loses nothing.
struct MisbehavingCloudTests {
  private func ready() throws -> Lab {
    var lab = try Lab()
    try lab.settle(0)
    return lab
  }

  /// Once the cloud behaves again, it has the save, and nothing else waits.
  private func expectSent(_ save: VersionRecord, after event: EngineEvent, _ lab: inout Lab) throws {
    try lab.settle(0, event)
    #expect(lab.cloud.heads(of: save.slot) == [save.id])
    #expect(lab.devices[0].storage.outboxCount() == 0 && lab.devices[0].engine.status.phase == .idle)
    #expect(try !Resolution.view(of: save.slot, in: lab.devices[0].storage).isConflict)
  }

  @Test("if the cloud keeps asking for contents that it was sent, a device tries again after growing pauses")
  func asksForWhatWasSent() throws {
    var lab = try ready()
    let save = try lab.save(0, "save", over: .everyHead)
    for (number, event) in [EngineEvent.committed, .woke, .woke].enumerated() {
      let count = try lab.countExchanges(after: event) { request, response in
        if !request.versions.isEmpty { response.outcome = .missing(save.contents) }
      }
      #expect(count == RejectionSearch.maximumMissingRounds + 1 && lab.isPausing())
      #expect(lab.devices[0].engine.status.attempts == number + 1, "exchanges between count as successes")
    }
    try expectSent(save, after: .woke, &lab)
    #expect(lab.devices[0].engine.status.attempts == 0)
  }

  @Test("if the cloud reports room for a save that it refuses, the save is sent again only when the numbers change")
  func hasRoomAndRefuses() throws {
    var lab = try ready()
    let save = try lab.save(0, "save", over: .everyHead)
    var use = QuotaUse(limit: 1_000_000, used: 0)
    func refuse(_ request: ExchangeRequest, _ response: inout ExchangeResponse) {
      response.quota = use
      guard !request.versions.isEmpty else { return }
      let shortage = QuotaShortage(limit: 1_000_000, used: 0, needed: 100)
      response.outcome = .refused([
        Refusal(item: ExchangeRules.item(save.id), reason: .quota, message: "full", quota: shortage)
      ])
    }
    let first = try lab.countExchanges(after: .committed, refuse)
    #expect(first == 1)
    let same = try lab.countExchanges(after: .woke, refuse)
    #expect(same == 1, "it is sent again although the numbers are the same")
    use.used = 1
    let other = try lab.countExchanges(after: .woke, refuse)
    #expect(other == 2)
    try expectSent(save, after: .sync, &lab)
  }

  @Test("a device that has nothing of the cloud yet pauses if it is told to start over")
  func restartsTheFirstRequest() throws {
    var lab = try Lab()
    let save = try lab.save(0, "save", over: .everyHead)
    let count = try lab.countExchanges(after: .started) { $1.restart = true }
    #expect(count == 1 && lab.isPausing())
    try expectSent(save, after: .woke, &lab)
  }

  @Test("a device stops if the cloud rejects even a request that carries nothing, until the next start")
  func rejectsEverything() throws {
    var lab = try ready()
    var count = 0
    try lab.step(0, .woke)
    while count < 50, let number = lab.takeRequest(0)?.request {
      count += 1
      try lab.step(0, .failed(request: number, TransportFailure(.rejected, "no")))
    }
    // Once with the wallet, and once without.
    #expect(count == 2)
    #expect(lab.devices[0].engine.status.phase == .halted(TransportFailure(.rejected, "no")))
    let save = try lab.save(0, "save", over: .everyHead)
    try expectSent(save, after: .started, &lab)
  }
}
