import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What becomes of groups of the outbox that were sent.
@Suite struct SendingTests {
  private func ready() throws -> Lab {
    var lab = try Lab(devices: 2)
    for index in 0..<2 { try lab.settle(index) }
    return lab
  }

  private func next(_ lab: inout Lab) throws -> EngineEffect {
    let request = lab.takeRequest(0)
    return try #require(request)
  }

  /// Both devices and the cloud have this save alone, and nothing waits.
  private func expectHead(_ save: VersionRecord, _ lab: inout Lab) throws {
    for index in [0, 1] { try lab.settle(index) }
    #expect(lab.cloud.heads(of: save.slot) == [save.id])
    for device in lab.devices {
      #expect(device.storage.heads(of: save.slot) == [save.id] && device.storage.outboxCount() == 0)
      #expect(try !Resolution.view(of: save.slot, in: device.storage).isConflict)
    }
  }

  @Test("a value that is committed while other values are being sent is sent after them")
  func growsWhileItIsSent() throws {
    var lab = try ready()
    let coins = CellKey(collection: "progress", key: "coins")
    try lab.commit(0, Lab.level(1))
    try lab.step(0, .committed)
    let sent = try next(&lab)
    try lab.commit(0, CommitDraft(cells: [CellDraft(coins, .max(.int(5)))]))
    #expect(lab.devices[0].storage.outboxCount() == 1, "the value isn't part of the group that is being sent")
    let response = try lab.answer(to: sent, of: 0, cloud: &lab.cloud, using: &lab.random)
    try lab.step(0, #require(response))
    for index in [0, 1] { try lab.settle(index) }
    #expect(lab.cloud.cell(coins)?.update.state.value == .max(.int(5)))
    #expect(lab.level(1) == .max(.int(1)) && lab.devices[1].storage.cell(coins)?.value == .max(.int(5)))
    #expect(lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("a save whose response was lost is covered by those after it, because the cloud may have it")
  func interrupted() throws {
    var lab = try ready()
    let first = try lab.save(0, "first", over: .everyHead)
    try lab.step(0, .committed)
    let sent = try next(&lab)
    _ = try lab.answer(to: sent, of: 0, cloud: &lab.cloud, using: &lab.random)
    try lab.step(0, .failed(request: #require(sent.request), TransportFailure(.interrupted, "cut")))
    let second = try lab.save(0, "second", over: .versions([first.id]))
    let third = try lab.save(0, "third", over: .versions([second.id]))
    #expect(third.covers.contains(first.id))
    try expectHead(third, &lab)
  }

  @Test("if one of two groups is refused, the other one is sent")
  func refusedBesideAnother() throws {
    var lab = try ready()
    let large = try lab.save(0, "large", slot: "large", over: .everyHead)
    try lab.step(0, .committed)
    let cut = try next(&lab).request
    // The first group was offered, so this save gets one of its own.
    let small = try lab.save(0, "small", slot: "small", over: .everyHead)
    try lab.step(0, .failed(request: #require(cut), TransportFailure(.interrupted, "cut")))
    try lab.step(0, .woke)
    guard case .exchange(let number, let request) = try next(&lab) else {
      Issue.record("no exchange is requested")
      return
    }
    #expect(request.versions.map(\.id) == [large.id, small.id])
    let refusal = Refusal(item: ExchangeRules.item(large.id), reason: .tooLarge, message: "too large")
    let response = ExchangeResponse(
      outcome: .refused([refusal]), changes: [], contents: [], wallet: nil, cursor: request.cursor, more: false,
      serverTimeMilliseconds: 0)
    try lab.step(0, .answered(request: number, response))
    let again = try next(&lab)
    let accepted = try lab.answer(to: again, of: 0, cloud: &lab.cloud, using: &lab.random)
    try lab.step(0, #require(accepted))
    #expect(lab.cloud.heads(of: "small") == [small.id] && lab.cloud.version(large.id) == nil)
    #expect(lab.devices[0].engine.status.refusals == [EngineRefusal(slot: "large", refusal: refusal)])
    // Starting afresh sends it, too.
    try expectHead(large, &lab)
  }
}
