import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeStore
import Testing

@Suite("Holding back received changes until the game delivers them")
struct HoldingTests {
  /// Two devices that have fetched everything; from now on the second one holds back what it receives.
  private func ready(page: Int = ExchangeRules.maximumChanges) throws -> Lab {
    var options = DeviceEngine.Options()
    options.page = page
    var lab = try Lab(devices: 2, options: options)
    try lab.settle(0)
    try lab.settle(1)
    lab.devices[1].engine.holdsArrivals = true
    (lab.devices[1].exchanges, lab.devices[1].notifications) = (0, [])
    return lab
  }

  private func deliver(_ lab: inout Lab) throws -> [EngineNotification] {
    try DeviceEngine.deliver(in: &lab.devices[1].storage)
  }

  @Test("changes are held back while the engine is idle, and are shown all at once when they are delivered")
  func showsAtOnce() throws {
    var lab = try ready()
    try lab.commit(0, Lab.level(3))
    try lab.save(0, "hello", over: .everyHead)
    try lab.settle(0, .committed)
    try lab.settle(1)
    #expect(
      lab.level(1) == nil && lab.devices[1].storage.heads(of: "main").isEmpty && lab.devices[1].notifications.isEmpty)
    #expect(lab.devices[1].storage.facts().hasArrivals)
    #expect(lab.devices[1].engine.status.phase == .idle && lab.devices[1].engine.status.fetching == .idle)
    let notifications = try deliver(&lab)
    #expect(notifications == [.slots(["main"]), .cells([CellKey(collection: "progress", key: "level")])])
    #expect(lab.level(1) == .max(.int(3)))
    #expect(lab.devices[1].storage.heads(of: "main") == lab.devices[0].storage.heads(of: "main"))
    let again = try deliver(&lab)
    #expect(again.isEmpty && !lab.devices[1].storage.facts().hasArrivals)
    // And goes on from there.
    try lab.commit(0, Lab.level(4))
    try lab.settle(0, .committed)
    try lab.settle(1)
    #expect(lab.level(1) == .max(.int(3)))
    let later = try deliver(&lab)
    #expect(later.count == 1)
    #expect(lab.level(1) == .max(.int(4)))
  }

  @Test("no page is delivered before the last one has arrived")
  func notByHalves() throws {
    var lab = try ready(page: 1)
    for number in 0..<3 {
      try lab.commit(
        0, CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: "key \(number)"), .max(.int(1)))]))
    }
    try lab.settle(0, .committed)
    try lab.step(1, .sync)
    for _ in 0..<2 {
      guard let request = lab.takeRequest(1),
        let event = try lab.answer(to: request, cloud: &lab.cloud, using: &lab.random)
      else {
        Issue.record("no further page is requested")
        return
      }
      try lab.step(1, event)
      let notifications = try deliver(&lab)
      #expect(!lab.devices[1].storage.staged().isEmpty && notifications.isEmpty)
    }
    try lab.settle(1)
    let whole = try deliver(&lab)
    #expect(whole == [.cells((0..<3).map { CellKey(collection: "progress", key: "key \($0)") })])
  }

  @Test("a save isn't delivered before its contents have arrived")
  func notWithoutContents() throws {
    var options = DeviceEngine.Options()
    options.inlineBytes = 0
    var lab = try Lab(devices: 2, options: options)
    try lab.settle(0)
    try lab.settle(1)
    lab.devices[1].engine.holdsArrivals = true
    let save = try lab.save(0, "a large one", over: .everyHead)
    try lab.settle(0, .committed)
    try lab.step(1, .sync)
    guard let exchange = lab.takeRequest(1),
      case .answered(let number, var answer)? = try lab.answer(to: exchange, cloud: &lab.cloud, using: &lab.random)
    else {
      Issue.record("no exchange is requested")
      return
    }
    answer.contents = []
    try lab.step(1, .answered(request: number, answer))
    let early = try deliver(&lab)
    #expect(early.isEmpty)
    try lab.settle(1)
    let shown = try deliver(&lab)
    #expect(shown == [.slots(["main"])])
    #expect(lab.devices[1].storage.hasContent(try #require(save.contents.first)))
  }

  @Test("changes in events are held back without an exchange, one event after the other")
  func takesEvents() throws {
    var lab = try ready()
    for level in [3, 4] as [Int64] {
      let before = lab.cloud.position()
      try lab.commit(0, Lab.level(level))
      try lab.settle(0, .committed)
      try lab.settle(
        1,
        .announced(
          CloudEvent(seq: lab.cloud.position().seq, step: try CloudAcceptance.step(since: before, in: lab.cloud))))
    }
    #expect(lab.devices[1].exchanges == 0 && lab.level(1) == nil)
    #expect(lab.devices[1].storage.facts().cursor == lab.cloud.position())
    let shown = try deliver(&lab)
    #expect(shown.count == 1)
    #expect(lab.level(1) == .max(.int(4)))
  }

  @Test("what an earlier run held back is shown by a delivery without a network, or once nothing is held back")
  func afterRestart() throws {
    for byHand in [true, false] {
      var lab = try ready()
      try lab.commit(0, Lab.level(3))
      try lab.settle(0, .committed)
      try lab.settle(1)
      lab.devices[1].engine = DeviceEngine()
      try DeviceCommit.opened(in: &lab.devices[1].storage, using: &lab.random)
      if byHand {
        let shown = try deliver(&lab)
        #expect(shown.count == 1)
      } else {
        // The response to this never arrives.
        try lab.step(1, .started)
        #expect(lab.devices[1].notifications.count == 1)
      }
      #expect(lab.level(1) == .max(.int(3)))
    }
  }

  @Test("a device has caught up only after it delivered what it holds back, or if there was nothing to hold back")
  func catchesUp() throws {
    var lab = try Lab(devices: 2)
    lab.devices[1].engine.holdsArrivals = true
    try lab.settle(1)
    #expect(lab.devices[1].storage.facts().caughtUp)
    lab = try Lab(devices: 2)
    try lab.commit(0, Lab.level(3))
    try lab.settle(0)
    lab.devices[1].engine.holdsArrivals = true
    try lab.settle(1)
    #expect(!lab.devices[1].storage.facts().caughtUp)
    let shown = try deliver(&lab)
    #expect(shown.contains(.caughtUp))
    #expect(lab.devices[1].storage.facts().caughtUp)
  }

  @Test("held changes are shown and offered to a restored cloud, since the device that made them may be gone")
  func restoredCloud() throws {
    var lab = try ready()
    let backup = lab.cloud
    try lab.commit(0, Lab.level(3))
    let save = try lab.save(0, "theirs", over: .everyHead)
    try lab.settle(0, .committed)
    try lab.settle(1)
    #expect(lab.devices[1].storage.facts().hasArrivals && lab.devices[1].notifications.isEmpty)
    lab.cloud = backup
    try lab.settle(1)
    #expect(lab.level(1) == .max(.int(3)) && lab.devices[1].storage.heads(of: "main") == [save.id])
    #expect(
      lab.devices[1].notifications.starts(with: [
        .slots(["main"]), .cells([CellKey(collection: "progress", key: "level")]),
      ]))
    #expect(!lab.devices[1].storage.facts().hasArrivals && lab.devices[1].storage.staged().isEmpty)
    // In place of the device that made them, which was lost.
    lab.devices[0] = try LabDevice(writer: 9)
    try DeviceCommit.opened(in: &lab.devices[0].storage, using: &lab.random)
    try lab.settle(0)
    #expect(lab.level(0) == .max(.int(3)) && lab.devices[0].storage.heads(of: "main") == [save.id])
    #expect(lab.devices[0].storage.hasContent(save.contents[0]))
  }

  @Test("incomplete pages are dropped when the cloud is restored, and half of a change is never shown")
  func restoredBetweenPages() throws {
    var lab = try ready(page: 1)
    let backup = lab.cloud
    for number in 0..<3 {
      try lab.commit(
        0, CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: "key \(number)"), .max(.int(1)))]))
    }
    try lab.settle(0, .committed)
    try lab.step(1, .sync)
    guard let request = lab.takeRequest(1),
      let event = try lab.answer(to: request, cloud: &lab.cloud, using: &lab.random)
    else {
      Issue.record("no exchange is requested")
      return
    }
    try lab.step(1, event)
    #expect(!lab.devices[1].storage.staged().isEmpty)
    lab.cloud = backup
    try lab.settle(1)
    #expect(
      lab.devices[1].notifications.isEmpty && lab.devices[1].storage.cells(in: nil).isEmpty
        && lab.devices[1].storage.staged().isEmpty)
    // The device that made the changes offers them again.
    try lab.settle(0)
    try lab.settle(1)
    let shown = try deliver(&lab)
    #expect(shown == [.cells((0..<3).map { CellKey(collection: "progress", key: "key \($0)") })])
  }

  @Test("the cloud's echo of a device's own first save isn't held back, and the device has caught up")
  func echoOfSave() throws {
    var lab = try Lab(devices: 2)
    lab.devices[1].engine.holdsArrivals = true
    let save = try lab.save(1, "first", over: .everyHead)
    try lab.settle(1)
    #expect(save.provisional && lab.devices[1].storage.version(save.id)?.record.provisional == false)
    let facts = lab.devices[1].storage.facts()
    #expect(!facts.hasArrivals && facts.caughtUp && lab.devices[1].storage.staged().isEmpty)
  }

  @Test("a received value that changes nothing on the device isn't held back; beside it one that does is")
  func echoOfValue() throws {
    var lab = try ready()
    try lab.commit(1, Lab.level(7))
    try lab.commit(0, Lab.level(5))
    try lab.settle(0, .committed)
    try lab.settle(1, .committed)
    #expect(
      !lab.devices[1].storage.facts().hasArrivals && lab.devices[1].storage.staged().isEmpty
        && lab.devices[1].notifications.isEmpty)
    try lab.commit(1, Lab.level(8))
    try lab.commit(0, CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: "coins"), .max(.int(1)))]))
    try lab.settle(0, .committed)
    try lab.settle(1, .committed)
    #expect(lab.devices[1].storage.facts().hasArrivals)
    let shown = try deliver(&lab)
    #expect(shown == [.cells([CellKey(collection: "progress", key: "coins")])])
  }

  @Test("a known save is held back if the received record makes it replace another save that is shown")
  func replacesAnother() throws {
    var lab = try ready()
    let first = try lab.save(1, "first", over: .versions([]))
    let second = try lab.save(1, "second", over: .versions([]))
    try lab.settle(1, .committed)
    let heads = [first.id, second.id].sorted()
    #expect(lab.devices[1].storage.heads(of: "main") == heads && !lab.devices[1].storage.facts().hasArrivals)
    var later = try #require(lab.devices[1].storage.version(second.id)?.record)
    later.covers = [first.id]
    let after = lab.devices[1].storage.facts().cursor
    let cursor = Cursor(epoch: after.epoch, seq: after.seq + 1, mark: after.mark &+ 1)
    let change = CloudChange(seq: cursor.seq, item: .version(later))
    try lab.step(
      1,
      .announced(
        CloudEvent(seq: cursor.seq, step: .init(after: after, cursor: cursor, changes: [change], contents: []))))
    #expect(lab.devices[1].storage.heads(of: "main") == heads && lab.devices[1].storage.facts().hasArrivals)
    let shown = try deliver(&lab)
    #expect(shown == [.slots(["main"])] && lab.devices[1].storage.heads(of: "main") == [second.id])
  }

  @Test("an ancestor that a merge would need is downloaded again after the game's own saves displaced it")
  func keepsAncestors() throws {
    var lab = try ready()
    lab.devices[1].storage.rules = HistoryRules(newest: 1, hourly: 0, daily: 0, weekly: 0)
    let first = try lab.save(0, "first", over: .everyHead)
    try lab.settle(0, .committed)
    try lab.settle(1)
    _ = try deliver(&lab)
    let theirs = try lab.save(0, "theirs", over: .everyHead)
    try lab.settle(0, .committed)
    try lab.settle(1)
    var (own, wasGone) = (first, false)
    for number in 0..<4 {
      own = try lab.save(1, "own \(number)", over: .versions([own.id]))
      _ = try lab.devices[1].storage.prune()
      wasGone = wasGone || !lab.devices[1].storage.hasContent(first.contents[0])
      try lab.settle(1, .committed)
    }
    #expect(wasGone && lab.devices[1].storage.hasContent(first.contents[0]))
    _ = try deliver(&lab)
    #expect(lab.devices[1].storage.heads(of: "main") == [theirs.id, own.id].sorted())
  }

  @Test("a save made while others are held back replaces only what the game has seen")
  func savesMeanwhile() throws {
    var lab = try ready()
    try lab.save(0, "first", over: .everyHead)
    try lab.settle(0, .committed)
    try lab.settle(1)
    _ = try deliver(&lab)
    let theirs = try lab.save(0, "theirs", over: .everyHead)
    try lab.settle(0, .committed)
    try lab.settle(1)
    let own = try lab.save(1, "own", over: .everyHead)
    try lab.settle(1, .committed)
    #expect(!own.covers.contains(theirs.id))
    #expect(lab.devices[1].storage.heads(of: "main") == [own.id])
    _ = try deliver(&lab)
    #expect(lab.devices[1].storage.heads(of: "main") == [theirs.id, own.id].sorted())
  }

  @Test("with several heads even the echo of a save is held back, because any detail may decide which head wins")
  func echoAmongSeveral() throws {
    var lab = try Lab(devices: 2)
    lab.devices[1].engine.holdsArrivals = true
    for text in ["first", "second"] { try lab.save(1, text, over: .versions([])) }
    try lab.settle(1)
    #expect(lab.devices[1].storage.heads(of: "main").count == 2 && lab.devices[1].storage.facts().hasArrivals)
    let shown = try deliver(&lab)
    #expect(shown.contains(.slots(["main"])))
  }
}
