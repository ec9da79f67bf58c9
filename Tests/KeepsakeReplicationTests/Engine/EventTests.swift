import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite("Changes in the event stream")
struct EventTests {
  /// Makes a change on the first device, and returns the event with which the cloud announces it.
  private func told(_ lab: inout Lab, _ change: (inout Lab) throws -> Void) throws -> CloudEvent {
    let before = lab.cloud.position()
    try change(&lab)
    try lab.settle(0, .committed)
    return CloudEvent(seq: lab.cloud.position().seq, step: try CloudAcceptance.step(since: before, in: lab.cloud))
  }

  private func ready() throws -> Lab {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    try lab.settle(1)
    lab.devices[1].exchanges = 0
    return lab
  }

  @Test("a value and a save arrive in events without an exchange, one after the other")
  func inOneStep() throws {
    var lab = try ready()
    let value = try told(&lab) { try $0.commit(0, Lab.level(3)) }
    try lab.settle(1, .announced(value))
    #expect(lab.level(1) == .max(.int(3)))
    let save = try told(&lab) { try $0.save(0, "hello", over: .everyHead) }
    #expect(save.step?.contents.count == 1)
    try lab.settle(1, .announced(save))
    #expect(lab.devices[1].storage.heads(of: "main") == lab.devices[0].storage.heads(of: "main"))
    #expect(lab.devices[1].storage.heads(of: "main").count == 1)
    #expect(lab.devices[1].storage.facts().cursor == lab.cloud.position())
    #expect(lab.devices[1].exchanges == 0)
    #expect(lab.devices[1].notifications.contains(.slots(["main"])))
  }

  @Test("events out of order, repeated or of another history aren't applied; one exchange fetches the changes")
  func onlyTheNext() throws {
    var lab = try ready()
    let missed = try told(&lab) { try $0.commit(0, Lab.level(3)) }
    let next = try told(&lab) { try $0.commit(0, Lab.level(4)) }
    var strange = missed
    strange.step?.after.mark ^= 1
    try lab.step(1, .announced(strange))
    #expect(lab.level(1) == nil)
    try lab.settle(1, .announced(next))
    #expect(lab.level(1) == .max(.int(4)))
    #expect(lab.devices[1].exchanges == 1)
    // The event that was missed arrives after all.
    try lab.settle(1, .announced(missed))
    try lab.settle(1, .announced(next))
    #expect(lab.devices[1].storage.facts().cursor == lab.cloud.position())
    #expect(lab.devices[1].exchanges == 1)
  }

  @Test("changes in an event that arrives during an exchange are left to the exchange")
  func notBesideAnExchange() throws {
    var lab = try ready()
    try lab.step(1, .sync)
    let asked = lab.takeRequest(1)
    let event = try told(&lab) { try $0.commit(0, Lab.level(3)) }
    try lab.step(1, .announced(event))
    #expect(lab.level(1) == nil)
    if let asked, let answer = try lab.answer(to: asked, cloud: &lab.cloud, using: &lab.random) {
      try lab.step(1, answer)
    }
    #expect(lab.level(1) == .max(.int(3)))
  }

  @Test("a queued commit is still sent if another device's change of the same value arrives in an event")
  func besideTheOutbox() throws {
    var lab = try ready()
    try lab.commit(1, Lab.level(9))
    let event = try told(&lab) { try $0.commit(0, Lab.level(3)) }
    try lab.settle(1, .announced(event))
    #expect(lab.level(1) == .max(.int(9)))
    #expect(lab.devices[1].exchanges == 1)
    #expect(lab.devices[1].storage.outboxCount() == 0)
    try lab.settle(0)
    #expect(lab.level(0) == .max(.int(9)))
  }

  @Test("a conflict shows the same heads whether the other device's save came in an event or in an exchange")
  func conflict() throws {
    var lab = try ready()
    let first = try lab.save(0, "common", over: .everyHead)
    try lab.settle(0, .committed)
    try lab.settle(1)
    try lab.save(1, "yours", over: .versions([first.id]))
    let event = try told(&lab) { try $0.save(0, "mine", over: .versions([first.id])) }
    try lab.settle(1, .announced(event))
    #expect(lab.devices[1].storage.heads(of: "main").count == 2)
    try lab.settle(0)
    #expect(lab.devices[0].storage.heads(of: "main") == lab.devices[1].storage.heads(of: "main"))
  }

  @Test("an event with an impossible cursor, invalid changes or too many changes isn't applied")
  func hostile() throws {
    var lab = try ready()
    let event = try told(&lab) { try $0.commit(0, Lab.level(3)) }
    let step = try #require(event.step)
    var forms: [CloudEvent.Step] = []
    func form(_ change: (inout CloudEvent.Step) -> Void) {
      var other = step
      change(&other)
      forms.append(other)
    }
    form { $0.cursor.seq = 0 }
    form { $0.cursor.seq = .max }
    form { $0.cursor.ahead = Cursor.Mark(seq: 5, mark: 5) }
    form { $0.changes[0].seq = 0 }
    form { $0.changes[0].seq = 77 }
    form {
      $0.changes[0].item = .cell(
        CellUpdate(key: CellKey(collection: "", key: ""), state: CellState(value: .max(.int(1)))))
    }
    form { $0.changes = Array(repeating: $0.changes[0], count: ExchangeRules.maximumChanges + 1) }
    for (index, form) in forms.enumerated() {
      // Each comes to a device that is idle: beside an exchange no event would be applied.
      var other = lab
      try other.step(1, .announced(CloudEvent(seq: event.seq, step: form)))
      #expect(other.level(1) == nil, "form \(index)")
    }
    try lab.settle(1, .announced(event))
    #expect(lab.level(1) == .max(.int(3)))
  }

  @Test("an event carries no changes if they are too many or too large, or if only the bank has changed")
  func bounded() throws {
    var lab = try ready()
    let many = try told(&lab) { lab in
      try lab.commit(
        0,
        CommitDraft(cells: (0..<65).map { CellDraft(CellKey(collection: "progress", key: "key \($0)"), .max(.int(1))) })
      )
    }
    #expect(many.step == nil)
    let large = try told(&lab) { lab in
      try lab.commit(
        0,
        CommitDraft(cells: [
          CellDraft(CellKey(collection: "progress", key: "long"), .max(.string(String(repeating: "x", count: 40_000))))
        ]))
    }
    #expect(large.step == nil)
    var before = lab.cloud.position()
    before.epoch += 1
    #expect(try CloudAcceptance.step(since: before, in: lab.cloud) == nil)
    #expect(try CloudAcceptance.step(since: lab.cloud.position(), in: lab.cloud) == nil)
    // A change of the bank has a seq of its own, but no item.
    let moved = lab.cloud.position()
    lab.cloud.advance(to: Cursor(epoch: moved.epoch, seq: moved.seq + 1, mark: 5))
    #expect(try CloudAcceptance.step(since: moved, in: lab.cloud) == nil)
  }
}
