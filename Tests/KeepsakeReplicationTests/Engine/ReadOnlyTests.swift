import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A device that may only read in its container.
@Suite struct ReadOnlyTests {
  /// A lab with two devices that have synced, and whose first one may only read from then on.
  private func readOnly() throws -> Lab {
    var lab = try Lab(devices: 2)
    try lab.save(1, "first", over: .everyHead)
    for index in 0..<2 { try lab.settle(index) }
    lab.access = .readOnly
    try lab.settle(0, .woke)
    lab.requests = []
    return lab
  }

  private func news(_ lab: Lab) -> [[Refusal.Reason]] {
    lab.devices[0].notifications.compactMap {
      if case .refused(let refusals) = $0 { refusals.map(\.reason) } else { nil }
    }
  }

  @Test("a device that may only read sends nothing, keeps what waits, and receives what others save")
  func sendsNothing() throws {
    var lab = try readOnly()
    #expect(lab.devices[0].storage.facts().isReadOnly)
    let save = try lab.save(0, String(repeating: "x", count: 9), slot: "own", over: .everyHead)
    try lab.commit(0, Lab.level(7))
    try lab.perform(0, .earn, 5)
    try lab.settle(0, .committed)
    try lab.settle(0, .woke)
    try lab.settle(0, .sync)
    let isEmpty = lab.requests.allSatisfy { $0.cells.isEmpty && $0.versions.isEmpty && $0.wallet == nil }
    #expect(isEmpty && !lab.requests.isEmpty)
    #expect(lab.cloud.version(save.id) == nil && save.contents.allSatisfy { !lab.cloud.hasContent($0) })
    #expect(lab.devices[0].storage.heads(of: "own") == [save.id] && lab.devices[0].storage.outboxCount() > 0)
    #expect(lab.devices[0].engine.status.refusals.map(\.refusal.reason) == [.readOnly])
    #expect(lab.devices[0].engine.status.phase == .idle)
    let other = try lab.save(1, "of another device", slot: "third", over: .everyHead)
    try lab.settle(1)
    try lab.settle(0, .announced(CloudEvent(seq: lab.cloud.position().seq)))
    #expect(lab.devices[0].storage.heads(of: "third") == [other.id])
  }

  @Test("what a device kept while it could only read is sent when it may write, also its money, in the same run")
  func mayWriteAgain() throws {
    var lab = try readOnly()
    let save = try lab.save(0, "own", slot: "own", over: .everyHead)
    try lab.commit(0, Lab.level(7))
    try lab.perform(0, .earn, 5)
    try lab.settle(0, .committed)
    lab.access = .readWrite
    try lab.settle(0, .woke)
    #expect(!lab.devices[0].storage.facts().isReadOnly && lab.devices[0].storage.outboxCount() == 0)
    #expect(lab.cloud.heads(of: "own") == [save.id])
    #expect(lab.cloud.cell(CellKey(collection: "progress", key: "level")) != nil)
    #expect(!lab.wallet(0).hasQuestions && lab.requests.contains { $0.wallet != nil })
    #expect(lab.devices[0].engine.status.refusals.isEmpty)
  }

  @Test("what was sent before the device knew is refused whole, and its wallet's offer stays its own")
  func learnsWhileSending() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    lab.access = .readOnly
    let contents = [lab.devices[0].storage.addContent(Data("both".utf8))]
    let draft = SaveDraft(
      id: VersionID(using: &lab.random), slot: "own", parents: .everyHead, contents: contents, length: 4,
      metadata: SaveMetadata(), savedAtMilliseconds: lab.now, tombstone: false)
    let save = try lab.commit(0, CommitDraft(saves: [draft], cells: Lab.level(7).cells))[0].id
    try lab.perform(0, .earn, 5)
    try lab.settle(0, .committed)
    #expect(lab.requests.contains { $0.wallet != nil } && news(lab) == [[.readOnly]])
    let groups = lab.devices[0].storage.outbox(limit: 9)
    #expect(groups.map { $0.refusals.map(\.reason) } == [[.readOnly]])
    #expect(groups.contains { !$0.cells.isEmpty && $0.versions.contains(save) }, "a checkpoint stays together")
    #expect(lab.wallet(0).hasQuestions && lab.cloud.version(save) == nil)
    lab.access = .readWrite
    try lab.settle(0, .woke)
    #expect(lab.cloud.heads(of: "own") == [save] && !lab.wallet(0).hasQuestions)
    #expect(lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("a restart says that the device may only read, and so does each other response")
  func everyResponse() throws {
    var lab = try readOnly()
    let now = lab.now
    let foreign = ExchangeRequest(cursor: Cursor(epoch: 8, seq: 3, mark: 4), limit: 9)
    let restart = try CloudAcceptance.exchange(
      foreign, now: now, access: .readOnly, in: &lab.cloud, using: &lab.random)
    #expect(restart.restart && restart.isReadOnly)
    let request = ExchangeRequest(cursor: lab.cloud.position(), limit: 9)
    let plain = try CloudAcceptance.exchange(request, now: now, access: .readOnly, in: &lab.cloud, using: &lab.random)
    #expect(plain.isReadOnly && plain.outcome == nil)
    #expect(try !CloudAcceptance.exchange(request, now: now, in: &lab.cloud, using: &lab.random).isReadOnly)
    let body = try ExchangeBody.encode(plain)
    #expect(try ExchangeBody.decode(ExchangeResponse.self, from: body) == plain)
  }

  @Test("a device that may only read uploads nothing that the cloud has lost")
  func noRepairs() throws {
    var lab = try readOnly()
    let held = try #require(lab.devices[0].storage.version(lab.devices[0].storage.heads(of: "main")[0]))
    var response = ExchangeResponse(
      outcome: nil, changes: [], contents: [], wallet: nil, cursor: lab.cloud.position(), more: false,
      serverTimeMilliseconds: lab.now, wanted: held.record.contents, isReadOnly: true)
    for isReadOnly in [true, false] {
      response.isReadOnly = isReadOnly
      try lab.step(0, .woke)
      let taken = lab.takeRequest(0)
      guard case .exchange(let number, _) = taken else {
        Issue.record("\(String(describing: taken))")
        return
      }
      try lab.step(0, .answered(request: number, response))
      let uploads = lab.takeRequests().filter { if case .upload = $0 { true } else { false } }
      #expect(uploads.isEmpty == isReadOnly)
    }
  }
}
