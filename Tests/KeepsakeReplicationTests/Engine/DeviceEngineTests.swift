import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite struct DeviceEngineTests {
  /// Returns the exchange that the device has just requested.
  func exchange(_ lab: inout Lab, _ index: Int = 0) -> (number: UInt64, request: ExchangeRequest)? {
    guard case .exchange(let number, let request)? = lab.takeRequest(index) else { return nil }
    return (number, request)
  }

  func delay(_ lab: Lab, _ index: Int = 0) -> Int64? {
    for case .wake(let delay) in lab.devices[index].pending.reversed() { return delay }
    return nil
  }

  @Test("A value reaches the other device with one exchange on each side")
  func oneWriteOneExchange() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    try lab.settle(1)
    try lab.commit(0, Lab.level(3))
    lab.devices[0].exchanges = 0
    lab.devices[1].exchanges = 0
    try lab.settle(0, .committed)
    try lab.settle(1, .announced(CloudEvent(seq: lab.cloud.position().seq)))
    #expect(lab.level(1) == .max(.int(3)))
    #expect(lab.devices[0].exchanges == 1)
    #expect(lab.devices[1].exchanges == 1)
    try lab.settle(0, .committed)
    try lab.settle(1, .announced(CloudEvent(seq: lab.cloud.position().seq)))
    #expect(lab.devices[0].exchanges + lab.devices[1].exchanges == 2)
    #expect(lab.devices[1].notifications.contains(.cells([CellKey(collection: "progress", key: "level")])))
    #expect(lab.devices[0].notifications.contains(.caughtUp))
  }

  @Test("An event about a device's own change causes no exchange, and one about a change that never comes only one")
  func ownAnnouncements() throws {
    var lab = try Lab()
    try lab.settle(0)
    try lab.commit(0, Lab.level(1))
    try lab.step(0, .committed)
    let (number, request) = try #require(exchange(&lab))
    let response = try CloudAcceptance.exchange(request, now: 0, in: &lab.cloud, using: &lab.random)
    // The event stream is faster than the response.
    try lab.step(0, .announced(CloudEvent(seq: lab.cloud.position().seq)))
    try lab.step(0, .answered(request: number, response))
    #expect(exchange(&lab) == nil)
    // A cloud that announces what it never sends causes one exchange, and not an endless number.
    try lab.step(0, .announced(CloudEvent(seq: 1_000)))
    lab.devices[0].exchanges = 0
    let asked = try #require(exchange(&lab))
    let answer = try CloudAcceptance.exchange(asked.request, now: 0, in: &lab.cloud, using: &lab.random)
    try lab.step(0, .answered(request: asked.number, answer))
    #expect(exchange(&lab) == nil)
  }

  @Test("A late response, or one to another request, changes nothing")
  func strangersChangeNothing() throws {
    var lab = try Lab()
    try lab.step(0, .started)
    let (number, request) = try #require(exchange(&lab))
    let response = try CloudAcceptance.exchange(request, now: 0, in: &lab.cloud, using: &lab.random)
    let before = lab.devices[0].storage.facts()
    try lab.step(0, .answered(request: number &- 1, response))
    try lab.step(0, .uploaded(request: number, ContentHash(of: Data())))
    #expect(lab.devices[0].storage.facts() == before)
  }

  @Test("A failing server is retried after growing pauses or the one that it asks for, and at once if the game syncs")
  func backoff() throws {
    var lab = try Lab()
    try lab.step(0, .started)
    var delays: [Int64] = []
    for _ in 0..<14 {
      let (number, _) = try #require(exchange(&lab))
      try lab.step(0, .failed(request: number, TransportFailure(.interrupted, "cut")))
      delays.append(try #require(delay(lab)))
      guard case .waiting = lab.devices[0].engine.status.phase else {
        Issue.record("not waiting: \(lab.devices[0].engine.status)")
        return
      }
      // A commit during the pause waits as well.
      lab.devices[0].pending = []
      try lab.commit(0, Lab.level(Int64(delays.count)))
      try lab.step(0, .committed)
      #expect(lab.devices[0].pending.isEmpty)
      try lab.step(0, .woke)
    }
    for (index, delay) in delays.enumerated() {
      let full = min(500 << Int64(index), 5 * 60_000)
      #expect(delay >= full / 2 && delay <= full, "attempt \(index): \(delay)")
    }
    let (number, _) = try #require(exchange(&lab))
    try lab.step(0, .failed(request: number, TransportFailure(.server(retryAfterMilliseconds: 900_000), "busy")))
    #expect(delay(lab) == 900_000)
    try lab.step(0, .sync)
    #expect(exchange(&lab)?.request.cells.map(\.key.key) == ["level"])
  }

  @Test("Changes that arrive in several pages are shown all at once")
  func pagesAreShownTogether() throws {
    var options = DeviceEngine.Options()
    options.page = 2
    var lab = try Lab(devices: 2, options: options)
    try lab.settle(0)
    for number in 0..<7 {
      try lab.commit(
        0, CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: "\(number)"), .max(.int(1)))]))
    }
    try lab.settle(0)
    try lab.step(1, .started)
    var rounds = 0
    while let (number, request) = exchange(&lab, 1) {
      let response = try CloudAcceptance.exchange(request, now: 0, in: &lab.cloud, using: &lab.random)
      try lab.step(1, .answered(request: number, response))
      rounds += 1
      let shown = lab.devices[1].storage.cells(in: nil).count
      #expect(shown == (response.more ? 0 : 7))
    }
    #expect(rounds == 4)
    #expect(lab.devices[1].storage.staged().isEmpty)
  }

  @Test("A save appears only after its contents have arrived")
  func contentsComeFirst() throws {
    var options = DeviceEngine.Options()
    options.inlineBytes = 10
    var lab = try Lab(devices: 2, options: options)
    try lab.settle(0)
    var last = try lab.save(0, String(repeating: "a", count: 70_000), over: .everyHead)
    for number in 0..<3 {
      try lab.settle(0)
      last = try lab.save(0, String(repeating: "b\(number)", count: 50_000), over: .versions([last.id]))
    }
    try lab.settle(0)
    try lab.step(1, .started)
    var downloads = 0
    for _ in 0..<20 {
      guard let effect = lab.takeRequest(1) else { break }
      if case .download = effect {
        downloads += 1
        #expect(lab.devices[1].storage.heads(of: "main").isEmpty)
      }
      if let event = try lab.answer(to: effect, cloud: &lab.cloud, using: &lab.random) { try lab.step(1, event) }
    }
    #expect(downloads >= 1)
    #expect(lab.devices[1].storage.heads(of: "main") == [last.id])
    #expect(lab.devices[1].storage.content(last.contents[0])?.count == 100_000)
  }

  @Test("A new device downloads the common ancestor of two heads, even if there is a third, unrelated one")
  func ancestorOfSomeHeads() throws {
    // Texts that are sent in full: with a delta, its base would be downloaded as well.
    func whole(_ name: String) -> String {
      (0..<100).map { "\(name) \($0)" }.first { ContentHash(of: Data($0.utf8)).bytes.first.map { $0 & 3 } == 0 } ?? name
    }
    var lab = try Lab(devices: 4)
    // Too large to be sent inside a response.
    let text = String(repeating: "base", count: 20_000)
    let base = try lab.save(0, text, over: .versions([]))
    try lab.settle(0)
    try lab.settle(1)
    try lab.save(0, whole("mine"), over: .versions([base.id]))
    try lab.save(1, whole("theirs"), over: .versions([base.id]))
    try lab.save(2, whole("begun anew"), over: .versions([]))
    for device in [0, 1, 2, 3] { try lab.settle(device) }
    #expect(lab.devices[3].storage.heads(of: "main").count == 3)
    #expect(lab.devices[3].storage.hasContent(ContentHash(of: Data(text.utf8))))
  }

  @Test("A content that arrives damaged or is gone is given up after three attempts, and doesn't hold up the rest")
  func badContentsAreGivenUp() throws {
    for damaged in [true, false] {
      var options = DeviceEngine.Options()
      options.inlineBytes = 10
      var lab = try Lab(devices: 2, options: options)
      try lab.settle(0)
      let save = try lab.save(0, String(repeating: "a", count: 70_000), over: .everyHead)
      try lab.commit(0, Lab.level(4))
      try lab.settle(0)
      try lab.step(1, .started)
      var downloads = 0
      for _ in 0..<40 {
        guard let effect = lab.takeRequest(1) else { break }
        guard case .download(let number, let hash) = effect else {
          if let event = try lab.answer(to: effect, cloud: &lab.cloud, using: &lab.random) { try lab.step(1, event) }
          continue
        }
        downloads += 1
        let bad = EncodedContent(hash: hash, length: 3, base: nil, bytes: Data([1, 2, 3]))
        try lab.step(1, .downloaded(request: number, hash, damaged ? bad : nil))
      }
      #expect(downloads == 3)
      #expect(lab.devices[1].notifications.contains(.damaged(save.contents[0])))
      #expect(lab.level(1) == .max(.int(4)))
      #expect(lab.devices[1].engine.status.phase == .idle)
    }
  }

  @Test("A content with an endless chain of bases is given up")
  func endlessChains() throws {
    var options = DeviceEngine.Options()
    options.inlineBytes = 10
    var lab = try Lab(devices: 2, options: options)
    try lab.settle(0)
    try lab.save(0, String(repeating: "a", count: 70_000), over: .everyHead)
    try lab.settle(0)
    try lab.step(1, .started)
    var steps = 0
    while let effect = lab.takeRequest(1), steps < 5_000 {
      steps += 1
      if case .download(let number, let hash) = effect {
        let base = ContentHash(of: Data("\(steps)".utf8))
        try lab.step(
          1, .downloaded(request: number, hash, EncodedContent(hash: hash, length: 1, base: base, bytes: Data([1]))))
      } else if let event = try lab.answer(to: effect, cloud: &lab.cloud, using: &lab.random) {
        try lab.step(1, event)
      }
    }
    #expect(steps < 1_000)
    #expect(lab.devices[1].engine.status.phase == .idle)
  }

  @Test("If one save is refused, everything else is sent without it, and it is sent again at the next sync")
  func refusalsAreIsolated() throws {
    var lab = try Lab()
    try lab.settle(0)
    try lab.commit(0, Lab.level(1))
    let save = try lab.save(0, "huge", over: .everyHead)
    try lab.step(0, .committed)
    let (number, request) = try #require(exchange(&lab))
    #expect(request.cells.count == 1 && request.versions.count == 1)
    let refusal = Refusal(item: ExchangeRules.item(save.id), reason: .tooLarge, message: "too large")
    try lab.step(
      0,
      .answered(
        request: number,
        ExchangeResponse(
          outcome: .refused([refusal]), changes: [], contents: [], wallet: nil, cursor: lab.cloud.position(),
          more: false,
          serverTimeMilliseconds: 0)))
    #expect(lab.devices[0].notifications.contains(.refused([refusal])))
    let (next, rest) = try #require(exchange(&lab))
    #expect(rest.cells.count == 1 && rest.versions.isEmpty)
    let response = try CloudAcceptance.exchange(rest, now: 0, in: &lab.cloud, using: &lab.random)
    try lab.step(0, .answered(request: next, response))
    #expect(lab.devices[0].storage.outbox(limit: 9).map(\.refusals) == [[refusal]])
    // Once the cause is gone it is accepted, without being saved again.
    try lab.settle(0, .sync)
    #expect(lab.cloud.heads(of: "main") == [save.id])
    #expect(lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("A save because of which the cloud rejects requests is isolated, and everything else is sent")
  func rejectedRequestsAreSearched() throws {
    var lab = try Lab()
    try lab.settle(0)
    // Two groups: the first one was offered when the second was committed.
    let bad = try lab.save(0, "bad", slot: "bad", over: .everyHead)
    try lab.step(0, .committed)
    let first = try #require(exchange(&lab))
    let good = try lab.save(0, "good", slot: "good", over: .everyHead)
    try lab.step(0, .failed(request: first.number, TransportFailure(.interrupted, "cut")))
    try lab.step(0, .woke)
    for _ in 0..<12 {
      guard let (number, request) = exchange(&lab) else { break }
      if request.versions.contains(where: { $0.id == bad.id }) {
        try lab.step(0, .failed(request: number, TransportFailure(.rejected, "no")))
      } else {
        let response = try CloudAcceptance.exchange(request, now: 0, in: &lab.cloud, using: &lab.random)
        try lab.step(0, .answered(request: number, response))
      }
    }
    #expect(lab.cloud.heads(of: "good") == [good.id])
    #expect(lab.devices[0].storage.outbox(limit: 9).map(\.versions) == [[bad.id]])
    #expect(lab.devices[0].engine.status.phase == .idle)
  }

  @Test("A revoked token isn't tried again before the next start")
  func unauthorizedHalts() throws {
    var lab = try Lab()
    try lab.step(0, .started)
    let (number, _) = try #require(exchange(&lab))
    let failure = TransportFailure(.unauthorized, "who are you")
    try lab.step(0, .failed(request: number, failure))
    #expect(lab.devices[0].engine.status.phase == .halted(failure))
    #expect(lab.devices[0].storage.facts().isRefused)
    try lab.commit(0, Lab.level(1))
    try lab.step(0, .committed)
    try lab.step(0, .woke)
    #expect(exchange(&lab) == nil)
    try lab.step(0, .started)
    #expect(exchange(&lab)?.request.cells.map(\.key.key) == ["level"])
  }

  @Test("Contents that the cloud lost are sent again in full")
  func missingContentsGoInFull() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    var last = try lab.save(0, "0", over: .everyHead)
    for number in 1...6 {
      try lab.settle(0)
      last = try lab.save(0, "\(number)", over: .versions([last.id]))
    }
    lab.cloud.removeContents(butNot: [])
    try lab.settle(0)
    #expect(lab.cloud.content(last.contents[0])?.base == nil)
    try lab.settle(1)
    #expect(lab.devices[1].storage.heads(of: "main") == [last.id])
  }

  @Test("A restored server gets everything that its devices still have, and no replaced save returns")
  func restart() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    let first = try lab.save(0, "1", over: .everyHead)
    try lab.settle(0)
    try lab.settle(1)
    let backup = lab.cloud
    let second = try lab.save(0, "2", over: .versions([first.id]))
    try lab.commit(0, Lab.level(9))
    try lab.settle(0)
    try lab.settle(1)
    let third = try lab.save(1, "3", over: .versions([second.id]))
    try lab.settle(1)
    try lab.settle(0)
    lab.cloud = backup
    // The new history grows past the old one before anyone notices.
    var stranger = try LabDevice(writer: 60)
    try DeviceCommit.opened(in: &stranger.storage, using: &lab.random)
    lab.devices.append(stranger)
    for number in 0..<9 {
      try lab.commit(2, Lab.level(Int64(number)))
      try lab.settle(2)
    }
    for _ in 0..<2 { for index in 0..<3 { try lab.settle(index) } }
    for index in 0..<3 {
      #expect(lab.devices[index].storage.heads(of: "main") == [third.id], "device \(index)")
      #expect(lab.level(index) == .max(.int(9)))
      #expect(lab.devices[index].storage.outboxCount() == 0)
    }
    #expect(lab.cloud.heads(of: "main") == [third.id])
  }

  @Test("A change accepted in the first page of a response is sent again if the server is restored before the last")
  func certainOnlyAtTheEnd() throws {
    var options = DeviceEngine.Options()
    options.page = 2
    var lab = try Lab(devices: 2, options: options)
    for number in 0..<6 {
      try lab.commit(
        1, CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: "\(number)"), .max(.int(1)))]))
    }
    try lab.settle(1)
    let backup = lab.cloud
    try lab.commit(0, Lab.level(5))
    try lab.step(0, .started)
    let (number, request) = try #require(exchange(&lab))
    let response = try CloudAcceptance.exchange(request, now: 0, in: &lab.cloud, using: &lab.random)
    #expect(response.outcome == .accepted(seq: 7) && response.more)
    try lab.step(0, .answered(request: number, response))
    #expect(lab.devices[0].storage.outboxCount() == 1)
    // The server is restored to its state before that, and the cursor's mark is still valid.
    lab.cloud = backup
    try lab.settle(0)
    #expect(lab.cloud.cell(CellKey(collection: "progress", key: "level"))?.update.state.value == .max(.int(5)))
    #expect(lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("An invalid response leaves the store unchanged, and counts as a failure")
  func badAnswersAreFailures() throws {
    var lab = try Lab()
    try lab.settle(0)
    let good = ExchangeResponse(
      outcome: nil, changes: [], contents: [], wallet: nil, cursor: lab.devices[0].storage.facts().cursor, more: false,
      serverTimeMilliseconds: 0)
    var bad: [ExchangeResponse] = []
    var response = good
    response.cursor.seq = .max
    bad.append(response)
    response = good
    response.more = true
    bad.append(response)
    response = good
    response.serverTimeMilliseconds = .min
    bad.append(response)
    response = good
    response.cursor.seq = 5
    response.changes = [
      CloudChange(
        seq: 9,
        item: .cell(
          CellUpdate(key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.int(1))))))
    ]
    bad.append(response)
    response.changes[0] = CloudChange(
      seq: 5,
      item: .cell(
        CellUpdate(key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.double(.nan))))))
    bad.append(response)
    response.changes[0] = CloudChange(
      seq: 5, item: .cell(CellUpdate(key: CellKey(collection: "", key: ""), state: CellState(value: .max(.int(1))))))
    bad.append(response)
    for response in bad {
      try lab.step(0, .sync)
      let (number, _) = try #require(exchange(&lab))
      try lab.step(0, .answered(request: number, response))
      guard case .waiting = lab.devices[0].engine.status.phase else {
        Issue.record("accepted: \(response)")
        return
      }
      #expect(lab.devices[0].storage.staged().isEmpty)
      #expect(lab.devices[0].storage.facts().cursor.seq == 0)
    }
  }
}
