import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A device whose store went back to an older state.
@Suite struct SetBackTests {
  /// A lab whose first device has reported more than its store has now.
  private func setBack(_ policy: SetBackPolicy = .flag) throws -> Lab {
    var lab = try Lab(devices: 2)
    lab.setBackPolicy = policy
    try lab.save(0, "first", over: .everyHead)
    try lab.settle(0)
    let old = lab.devices[0].storage
    for number in 0..<3 {
      try lab.save(0, "save \(number)", over: .everyHead)
      try lab.settle(0)
    }
    try lab.settle(0, .woke)
    lab.requests = []
    try reopen(old, in: &lab)
    return lab
  }

  private func reopen(_ storage: SimulatedDevice, in lab: inout Lab) throws {
    lab.devices[0] = try LabDevice(writer: 3)
    lab.devices[0].storage = storage
    try DeviceCommit.opened(in: &lab.devices[0].storage, using: &lab.random)
  }

  private func mark(_ lab: Lab) -> DeviceSetBacks.Mark? { lab.cloud.setBacks(of: Lab.id(0)).mark }

  /// Sends the next request of the first device, and has the response arrive, or not.
  @discardableResult
  private func exchange(_ event: EngineEvent, isLost: Bool = false, in lab: inout Lab) throws -> ExchangeRequest {
    try lab.step(0, event)
    let taken = lab.takeRequest(0)
    let effect = try #require(taken)
    guard case .exchange(let number, let request) = effect else {
      throw CancellationError()
    }
    let answered = try lab.answer(to: effect, of: 0, cloud: &lab.cloud, using: &lab.random)
    let failure = TransportFailure(.interrupted, "lost")
    try lab.step(0, isLost ? .failed(request: number, failure) : try #require(answered))
    return request
  }

  @Test("what the cloud tells a set-back store survives its closing, and is sent until a response to it arrives")
  func sentUntilAnswered() throws {
    var lab = try setBack()
    let low = lab.devices[0].storage.facts().cursor.seq
    #expect(try exchange(.started, isLost: true, in: &lab).setBack == nil)
    #expect(lab.devices[0].storage.facts().setBack == nil)
    // Nobody knows that the response was lost: the cloud tells it again.
    try exchange(.sync, in: &lab)
    let told = try #require(lab.devices[0].storage.facts().setBack)
    #expect(told.to == low && told.from > low && mark(lab) == nil)

    let facts = try JSONDecoder().decode(
      DeviceFacts.self, from: JSONEncoder().encode(lab.devices[0].storage.facts()))
    #expect(facts.setBack == told)
    try reopen(lab.devices[0].storage, in: &lab)
    #expect(try exchange(.started, isLost: true, in: &lab).setBack == told)
    #expect(mark(lab)?.count == 1 && lab.devices[0].storage.facts().setBack == told)
    #expect(try exchange(.sync, in: &lab).setBack == told)
    #expect(lab.devices[0].storage.facts().setBack == nil)
    #expect(try exchange(.sync, in: &lab).setBack == nil)
    #expect(mark(lab)?.count == 1 && mark(lab)?.to == low)
  }

  @Test("a store that was never set back sends and keeps nothing about it, even if its requests arrive late")
  func untouched() throws {
    var lab = try Lab(devices: 1)
    try lab.save(0, "first", over: .everyHead)
    try lab.settle(0)
    try lab.step(0, .sync)
    let taken = lab.takeRequest(0)
    let late = try #require(taken)
    guard case .exchange(let number, _) = late else {
      Issue.record("\(late)")
      return
    }
    try lab.step(0, .failed(request: number, TransportFailure(.interrupted, "lost")))
    try lab.save(0, "second", over: .everyHead)
    try lab.settle(0)
    try lab.settle(0)
    let answered = try lab.answer(to: late, of: 0, cloud: &lab.cloud, using: &lab.random)
    guard case .answered(_, let response) = answered else {
      Issue.record("\(String(describing: answered))")
      return
    }
    #expect(response.setBack != nil, "it looks like one of a set-back store")
    try lab.step(0, try #require(answered))
    for _ in 0..<2 { try lab.settle(0) }
    #expect(lab.devices[0].storage.facts().setBack == nil && lab.requests.allSatisfy { $0.setBack == nil })
    #expect(mark(lab) == nil)
  }

  @Test(
    "a game is told only if the operator wants that, and until the mark is removed", arguments: SetBackPolicy.allCases)
  func told(policy: SetBackPolicy) throws {
    var lab = try setBack(policy)
    for _ in 0..<2 { try lab.settle(0) }
    let shown = lab.devices[0].storage.facts().setBackMark
    #expect(shown?.isRefused == (policy == .flag ? nil : policy == .refuse))
    let save = try lab.save(0, "after", slot: "other", over: .everyHead)
    try lab.settle(0, .committed)
    #expect((lab.cloud.version(save.id) != nil) == (policy != .refuse))
    try lab.settle(1)
    try CloudAcceptance.clearSetBack(of: Lab.id(0), in: &lab.cloud)
    try lab.settle(0, .woke)
    #expect(lab.devices[0].storage.facts().setBackMark == nil)
    #expect(lab.cloud.heads(of: "other") == [save.id] && lab.devices[0].storage.outboxCount() == 0)
  }

  /// A save and a value of one checkpoint.
  private func checkpoint(_ lab: inout Lab) throws -> VersionID {
    let contents = [lab.devices[0].storage.addContent(Data("both".utf8))]
    let draft = SaveDraft(
      id: VersionID(using: &lab.random), slot: "other", parents: .everyHead, contents: contents, length: 4,
      metadata: SaveMetadata(), savedAtMilliseconds: lab.now, tombstone: false)
    return try lab.commit(0, CommitDraft(saves: [draft], cells: Lab.level(7).cells))[0].id
  }

  private func news(_ lab: Lab) -> Int {
    lab.devices[0].notifications.count { if case .refused = $0 { true } else { false } }
  }

  @Test("what comes with the confirmation is refused whole, and is sent at the exchange after the mark was removed")
  func refused() throws {
    var lab = try setBack(.refuse)
    try lab.settle(0)
    let save = try checkpoint(&lab)
    try lab.settle(0, .committed)
    #expect(lab.cloud.version(save) == nil)
    let groups = lab.devices[0].storage.outbox(limit: 9)
    #expect(groups.map { $0.refusals.map(\.reason) } == [[.setBack]])
    #expect(groups.contains { !$0.cells.isEmpty && $0.versions.contains(save) }, "a checkpoint stays together")
    try CloudAcceptance.clearSetBack(of: Lab.id(0), in: &lab.cloud)
    lab.requests = []
    try lab.settle(0, .woke)
    #expect(lab.requests.count == 2, "one to learn of it, and one to send")
    #expect(lab.cloud.heads(of: "other") == [save] && lab.devices[0].storage.outboxCount() == 0)
    #expect(lab.cloud.cell(CellKey(collection: "progress", key: "level")) != nil && news(lab) == 1)
  }

  @Test("while everything is refused nothing is sent, what waits has one refusal, and the rest arrives")
  func waits() throws {
    var lab = try setBack(.refuse)
    for _ in 0..<2 { try lab.settle(0) }
    lab.requests = []
    _ = try checkpoint(&lab)
    try lab.settle(0, .committed)
    let save = try lab.save(0, "second", slot: "other", over: .everyHead)
    try lab.settle(0, .committed)
    try lab.settle(0, .woke)
    #expect(news(lab) == 1, "the game is told once, until it asks for a sync itself")
    try lab.settle(0, .sync)
    #expect(lab.requests.allSatisfy { $0.cells.isEmpty && $0.versions.isEmpty } && lab.level(0) != nil)
    #expect(save.contents.allSatisfy { !lab.cloud.hasContent($0) })
    #expect(lab.devices[0].engine.status.refusals.map(\.refusal.reason) == [.setBack])
    #expect(lab.devices[0].engine.status.phase == .idle)
    let other = try lab.save(1, "of another device", slot: "third", over: .everyHead)
    try lab.settle(1)
    try lab.settle(0, .announced(CloudEvent(seq: lab.cloud.position().seq)))
    #expect(lab.devices[0].storage.heads(of: "third") == [other.id])

    try CloudAcceptance.clearSetBack(of: Lab.id(0), in: &lab.cloud)
    try lab.settle(0, .woke)
    #expect(lab.cloud.heads(of: "other") == [save.id] && lab.devices[0].storage.outboxCount() == 0)
    #expect(lab.cloud.cell(CellKey(collection: "progress", key: "level")) != nil)
    #expect(lab.devices[0].engine.status.refusals.isEmpty)
  }

  @Test("a cloud's numbers that can't be are handled like any other damaged response")
  func misbehavingCloud() throws {
    var lab = try setBack()
    let low = lab.devices[0].storage.facts().cursor.seq
    for numbers in [SetBack(from: low, to: low), SetBack(from: low + 9, to: low + 1), SetBack(from: .max, to: low)] {
      try lab.step(0, lab.devices[0].engine.status.phase == .stopped ? .started : .sync)
      guard case .exchange(let number, let request)? = lab.takeRequest(0) else {
        Issue.record("there is no request")
        return
      }
      let response = ExchangeResponse(
        outcome: nil, changes: [], contents: [], wallet: nil, cursor: request.cursor, more: false,
        serverTimeMilliseconds: 5, setBack: numbers)
      try lab.step(0, .answered(request: number, response))
      #expect(lab.devices[0].storage.facts().setBack == nil)
      guard case .waiting = lab.devices[0].engine.status.phase else {
        Issue.record("\(lab.devices[0].engine.status.phase)")
        return
      }
    }
  }
}
