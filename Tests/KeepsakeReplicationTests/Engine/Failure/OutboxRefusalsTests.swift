import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// What the cloud refuses, and when it is sent again.
struct OutboxRefusalsTests {
  private let quota = Refusal(item: "a", reason: .quota, message: "full")
  private let invalid = Refusal(item: "b", reason: .invalid, message: "wrong")

  @Test("a refused group is sent again only when it is retried, and not after it was refused once more")
  func retry() {
    var refusals = OutboxRefusals()
    let group = Samples.group(1, refusals: [quota])
    #expect(!refusals.isSendable(group) && refusals.isSendable(Samples.group(2)))
    refusals.retry(group, now: 5)
    #expect(refusals.isSendable(group) && refusals.hasTried)
    _ = refusals.refused(group, now: 6)
    #expect(!refusals.isSendable(group))
  }

  @Test("a refusal for lack of room is reported once until a reset, other refusals each time")
  func reporting() {
    var refusals = OutboxRefusals()
    let group = Samples.group(1, refusals: [quota, invalid])
    #expect(refusals.refused(group, now: 1) == [quota, invalid])
    #expect(refusals.refused(group, now: 2) == [invalid])
    refusals.reset()
    #expect(refusals.refused(group, now: 3) == [quota, invalid])
  }

  @Test("a retry is due after the interval, or if the clock was set back, and only after a lack of room")
  func secondTry() {
    var refusals = OutboxRefusals()
    _ = refusals.refused(Samples.group(1, refusals: [invalid]), now: 100)
    #expect(!refusals.hasTried && !refusals.isSecondTryDue(now: 1_000, after: 10))
    _ = refusals.refused(Samples.group(1, refusals: [quota]), now: 100)
    #expect(refusals.hasTried && !refusals.isSecondTryDue(now: 109, after: 10))
    #expect(refusals.isSecondTryDue(now: 110, after: 10) && refusals.isSecondTryDue(now: 99, after: 10))
    _ = refusals.refused(Samples.group(1, refusals: [quota]), now: .min)
    #expect(refusals.isSecondTryDue(now: .max, after: .max))
  }

  @Test("the same quota numbers twice aren't news")
  func room() {
    var refusals = OutboxRefusals()
    #expect(refusals.learned(QuotaUse(limit: 10, used: 5)) == true)
    #expect(refusals.learned(QuotaUse(limit: 10, used: 5)) == false)
    #expect(refusals.learned(QuotaUse(limit: 10, used: 4)) == true)
  }

  @Test("a reset forgets what was retried, and keeps what the status shows")
  func reset() {
    var refusals = OutboxRefusals()
    refusals.current = [EngineRefusal(slot: "main", refusal: quota)]
    #expect(refusals.lacksRoom)
    let group = Samples.group(1, refusals: [quota])
    refusals.retry(group, now: 1)
    _ = refusals.learned(QuotaUse(limit: 10, used: 5))
    refusals.reset()
    #expect(!refusals.isSendable(group) && !refusals.hasTried && refusals.learned(QuotaUse(limit: 10, used: 5)))
    #expect(refusals.current.count == 1)
  }

  @Test(
    "a save that is too large isn't sent again after the interval, inside an exchange or not", arguments: [1_000, 0])
  func tooLarge(inlineBytes: Int) throws {
    var options = DeviceEngine.Options()
    options.inlineBytes = inlineBytes
    var lab = try Lab(options: options)
    try lab.settle(0)
    let save = try lab.save(0, "a large one", over: .everyHead)
    let refusal = Refusal(item: ExchangeRules.item(save.id), reason: .tooLarge, message: "too large")
    var sent = 0
    for event in [EngineEvent.committed, .woke, .woke] {
      try lab.step(0, event)
      for _ in 0..<10 {
        guard let effect = lab.takeRequest(0) else { break }
        switch effect {
        case .upload(let number, _):
          sent += 1
          try lab.step(0, .failed(request: number, TransportFailure(.rejected, "too large")))
        case .exchange(let number, let request):
          if !request.versions.isEmpty { sent += 1 }
          try lab.step(
            0,
            .answered(
              request: number,
              ExchangeResponse(
                outcome: request.versions.isEmpty ? nil : .refused([refusal]), changes: [], contents: [], wallet: nil,
                cursor: request.cursor, more: false, serverTimeMilliseconds: 0)))
        default: break
        }
      }
      lab.now += options.secondTryMilliseconds + 1
    }
    #expect(sent == 1)
    #expect(lab.devices[0].engine.status.refusals.map(\.refusal) == [refusal])
  }

  @Test("at the next start every refused group is tried again, however many there are")
  func retriesAll() throws {
    var lab = try Lab()
    for number in 0..<700 {
      let cell = CellUpdate(
        key: CellKey(collection: "progress", key: "\(number)"), state: CellState(value: .max(.int(1))))
      var group = OutboxGroup(isPiece: false)
      group.cells = [cell]
      if number < 600 { group.refusals = [quota] }
      lab.devices[0].storage.appendToOutbox(group)
    }
    try lab.step(0, .started)
    let groups = lab.devices[0].storage.outbox(limit: 1_000)
    #expect(groups.count == 700 && groups.allSatisfy(\.refusals.isEmpty))
  }
}
