import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Several requests of one device in flight at the same time.
@Suite struct EngineFlightTests {
  /// Options with which only small contents are sent inside an exchange.
  private func options(inline: Int = 200) -> DeviceEngine.Options {
    var options = DeviceEngine.Options()
    options.inlineBytes = inline
    return options
  }

  /// A device that has fetched everything.
  private func ready() throws -> Lab {
    var lab = try Lab(options: options())
    try lab.settle(0)
    return lab
  }

  private func text(_ name: String, _ count: Int = 2_000) -> String { String(repeating: name, count: count) }

  /// A text that the simulated storage never encodes as a delta, and one that it always does.
  private func whole(_ name: String) -> String { named(name) { $0 == 0 } }
  private func delta(_ name: String) -> String { named(name) { $0 != 0 } }
  private func named(_ name: String, where fits: (UInt8) -> Bool) -> String {
    (0..<100).map { text("\(name)\($0) ", 500) }.first {
      ContentHash(of: Data($0.utf8)).bytes.first.map { fits($0 & 3) } == true
    } ?? name
  }

  private func uploads(_ effects: [EngineEffect]) -> [(number: UInt64, content: EncodedContent)] {
    effects.compactMap { if case .upload(let number, let content) = $0 { (number, content) } else { nil } }
  }

  private func downloads(_ effects: [EngineEffect]) -> [(number: UInt64, hash: ContentHash)] {
    effects.compactMap { if case .download(let number, let hash) = $0 { (number, hash) } else { nil } }
  }

  private func exchanges(_ effects: [EngineEffect]) -> [(number: UInt64, request: ExchangeRequest)] {
    effects.compactMap { if case .exchange(let number, let request) = $0 { (number, request) } else { nil } }
  }

  private func take(_ lab: inout Lab, _ index: Int = 0) -> [EngineEffect] { lab.takeRequests(index) }

  private func takeOne(_ lab: inout Lab) throws -> EngineEffect {
    let taken = lab.takeRequest(0)
    return try #require(taken)
  }

  private func deliver(_ effect: EngineEffect, to index: Int = 0, _ lab: inout Lab) throws {
    if let event = try lab.answer(to: effect, cloud: &lab.cloud, using: &lab.random) { try lab.step(index, event) }
  }

  /// Saves of slots of their own, each too large for an exchange, none of them sent yet.
  private func saveLarge(_ count: Int, _ lab: inout Lab) throws -> [VersionRecord] {
    try (0..<count).map { try lab.save(0, text("\($0)"), slot: "slot \($0)", over: .everyHead) }
  }

  @Test("A device goes on fetching while it uploads a large save")
  func hearingGoesFirst() throws {
    var lab = try ready()
    _ = try saveLarge(1, &lab)
    try lab.step(0, .committed)
    let first = take(&lab)
    #expect(uploads(first).count == 1 && exchanges(first).isEmpty)
    // Each reason to fetch causes an exchange while the upload goes on.
    try lab.step(0, .announced(CloudEvent(seq: 50)))
    for event in [EngineEvent.woke, .sync] {
      let asked = take(&lab)
      try #require(exchanges(asked).count == 1 && asked.count == 1)
      try deliver(asked[0], &lab)
      #expect(take(&lab).isEmpty)
      try lab.step(0, event)
    }
    #expect(exchanges(take(&lab)).count == 1)
    #expect(lab.devices[0].engine.status.transfers.count == 1)
  }

  @Test("A device that starts with a large save to send fetches first")
  func startsByHearing() throws {
    var lab = try Lab(options: options())
    let save = try saveLarge(1, &lab)[0]
    try lab.step(0, .started)
    let first = take(&lab)
    // If the cloud can't be reached, no upload is wasted.
    try #require(exchanges(first).count == 1 && first.count == 1)
    try deliver(first[0], &lab)
    #expect(uploads(take(&lab)).map(\.content.hash) == save.contents)
  }

  @Test("Progress made while a large save is being uploaded is sent ahead of it")
  func smallOvertakesLarge() throws {
    var lab = try ready()
    let save = try saveLarge(1, &lab)[0]
    try lab.step(0, .committed)
    let upload = try takeOne(&lab)
    try lab.commit(0, Lab.level(7))
    try lab.step(0, .committed)
    let exchange = try #require(exchanges(take(&lab)).first)
    #expect(exchange.request.cells.count == 1 && exchange.request.versions.isEmpty)
    try deliver(.exchange(request: exchange.number, exchange.request), &lab)
    #expect(lab.cloud.cell(CellKey(collection: "progress", key: "level"))?.update.state.value == .max(.int(7)))
    #expect(lab.cloud.heads(of: "slot 0").isEmpty && lab.devices[0].storage.outboxCount() == 1)
    try deliver(upload, &lab)
    for effect in take(&lab) { try deliver(effect, &lab) }
    #expect(lab.cloud.heads(of: "slot 0") == [save.id] && lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("A later change of a value isn't sent before the large save of the value's checkpoint")
  func checkpointsStayWhole() throws {
    var lab = try ready()
    let coins = CellKey(collection: "progress", key: "coins")
    let content = lab.devices[0].storage.addContent(Data(text("large").utf8))
    let save = SaveDraft(
      id: VersionID(using: &lab.random), slot: "main", parents: .everyHead, contents: [content], length: 10_000,
      savedAtMilliseconds: 0)
    try lab.commit(0, CommitDraft(saves: [save], cells: [CellDraft(coins, .add(plus: 5, minus: 0))]))
    try lab.step(0, .committed)
    let upload = try takeOne(&lab)
    // A counter contains its earlier changes, so a later change would show half of the checkpoint.
    try lab.commit(0, CommitDraft(cells: [CellDraft(coins, .add(plus: 1, minus: 0))]))
    try lab.step(0, .committed)
    #expect(take(&lab).isEmpty)
    try deliver(upload, &lab)
    let request = try #require(exchanges(take(&lab)).first?.request)
    #expect(request.versions.map(\.id) == [save.id])
    #expect(request.cells.map(\.state.value) == [.counter([lab.devices[0].writer: CounterEntry(plus: 6, minus: 0)])])
  }

  @Test("A save isn't sent before an older save of its slot")
  func slotsKeepTheirOrder() throws {
    var lab = try ready()
    let large = try lab.save(0, text("large"), over: .everyHead)
    try lab.step(0, .committed)
    let upload = try takeOne(&lab)
    let other = try lab.save(0, "made without having seen it", over: .versions([]))
    try lab.step(0, .committed)
    #expect(take(&lab).isEmpty)
    try deliver(upload, &lab)
    #expect(exchanges(take(&lab)).first?.request.versions.map(\.id) == [large.id, other.id])
  }

  @Test("A small save that replaces a large one is sent at once, and the large one isn't sent any more")
  func replacedSavesNeedNoUpload() throws {
    var lab = try ready()
    let large = try lab.save(0, text("large"), over: .everyHead)
    try lab.step(0, .committed)
    let upload = try takeOne(&lab)
    let small = try lab.save(0, "small", over: .versions([large.id]))
    try lab.step(0, .committed)
    let exchange = try #require(exchanges(take(&lab)).first)
    #expect(exchange.request.contents.map(\.hash) == small.contents)
    try deliver(.exchange(request: exchange.number, exchange.request), &lab)
    #expect(lab.cloud.heads(of: "main") == [small.id] && lab.devices[0].storage.outboxCount() == 0)
    try deliver(upload, &lab)
    #expect(take(&lab).isEmpty && lab.devices[0].engine.status.phase == .idle)
  }

  @Test("A large save waits for the upload of the one before it, and is sent as a delta against that")
  func deltasWaitForTheirBase() throws {
    var lab = try ready()
    let first = try lab.save(0, whole("a"), over: .everyHead)
    try lab.step(0, .committed)
    let upload = try takeOne(&lab)
    let second = try lab.save(0, delta("b"), over: .versions([first.id]))
    try lab.step(0, .committed)
    #expect(take(&lab).isEmpty)
    try deliver(upload, &lab)
    let next = take(&lab)
    // The first one is offered meanwhile.
    #expect(exchanges(next).first?.request.versions.map(\.id) == [first.id])
    #expect(
      uploads(next).map(\.content.hash) == second.contents && uploads(next).first?.content.base == first.contents[0])
    // It doesn't wait for an upload that failed.
    lab = try Lab(options: options())
    try lab.settle(0)
    let lost = try lab.save(0, whole("a"), over: .everyHead)
    try lab.step(0, .committed)
    let number = try #require(uploads(take(&lab)).first?.number)
    try lab.save(0, delta("b"), over: .versions([lost.id]))
    try lab.step(0, .failed(request: number, TransportFailure(.interrupted, "cut")))
    try lab.settle(0)
    #expect(lab.cloud.heads(of: "main").count == 1 && lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("At most four contents are in flight at the same time")
  func fourAtATime() throws {
    var lab = try ready()
    let saves = try saveLarge(7, &lab)
    try lab.step(0, .committed)
    var open = take(&lab)
    #expect(uploads(open).count == 4 && open.count == 4)
    var most = 0
    for _ in 0..<30 where !open.isEmpty {
      try deliver(open.removeFirst(), &lab)
      open += take(&lab)
      most = max(most, uploads(open).count)
    }
    #expect(most == 4)
    for save in saves { #expect(lab.cloud.heads(of: save.slot) == [save.id]) }
    #expect(lab.devices[0].engine.status.phase == .idle)
  }

  @Test("The total bytes of contents in flight are limited, but small contents may always be sent")
  func bytesInFlight() throws {
    var limited = options()
    limited.maximumTransferBytes = 5_000
    limited.smallTransferBytes = 500
    var lab = try Lab(options: limited)
    try lab.settle(0)
    for (index, bytes) in [4_000, 3_000, 400, 9_000].enumerated() {
      try lab.save(0, String(repeating: "\(index)", count: bytes), slot: "slot \(index)", over: .everyHead)
    }
    try lab.step(0, .committed)
    var open = take(&lab)
    // A content larger than the limit is sent alone; a small one is sent beside any other.
    #expect(uploads(open).map(\.content.bytes.count) == [4_000, 400])
    for _ in 0..<30 where !open.isEmpty {
      let sizes = uploads(open).map(\.content.bytes.count)
      #expect(sizes.filter { $0 > 500 }.count <= 1, "\(sizes)")
      try deliver(open.removeFirst(), &lab)
      open += take(&lab)
    }
    #expect(lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("A failed upload pauses further uploads, but neither those in flight nor exchanges")
  func failuresStandAlone() throws {
    var lab = try ready()
    var (saves, both): ([VersionRecord], [EngineEffect]) = ([], [])
    for slot in ["one", "two"] {
      saves.append(try lab.save(0, text(slot), slot: slot, over: .everyHead))
      try lab.step(0, .committed)
      both += take(&lab)
    }
    try #require(uploads(both).count == 2)
    try lab.step(0, .failed(request: uploads(both)[0].number, TransportFailure(.interrupted, "cut")))
    guard case .waiting = lab.devices[0].engine.status.phase else {
      Issue.record("not waiting")
      return
    }
    #expect(take(&lab).isEmpty)
    try deliver(both[1], &lab)
    // Small changes and announced ones don't wait for the end of the pause.
    let exchange = try takeOne(&lab)
    #expect(exchanges([exchange]).first?.request.versions.map(\.id) == [saves[1].id])
    try deliver(exchange, &lab)
    #expect(take(&lab).isEmpty)
    try lab.step(0, .woke)
    var open = take(&lab)
    while !open.isEmpty {
      try deliver(open.removeFirst(), &lab)
      open += take(&lab)
    }
    for save in saves { #expect(lab.cloud.heads(of: save.slot) == [save.id]) }
  }

  @Test("A content that the cloud never accepts is sent again after growing pauses, although exchanges succeed")
  func badContentsBackOff() throws {
    var lab = try ready()
    _ = try saveLarge(1, &lab)
    try lab.step(0, .committed)
    var pauses: [Int64] = []
    for _ in 0..<60 where pauses.count < 8 {
      for effect in take(&lab) {
        guard case .upload(let number, _) = effect else {
          try deliver(effect, &lab)
          continue
        }
        try lab.step(0, .failed(request: number, TransportFailure(.server(retryAfterMilliseconds: nil), "in trouble")))
        for case .wake(let pause) in lab.devices[0].pending.suffix(1) { pauses.append(pause) }
        try lab.step(0, .woke)
      }
    }
    try #require(pauses.count == 8)
    for (index, pause) in pauses.enumerated() {
      #expect(pause >= 250 << Int64(index), "pause \(index): \(pause)")
    }
  }

  @Test("Only one large save is compressed per step, also after a pause, and the engine wakes itself for the next")
  func oneLargeContentAStep() throws {
    var lab = try ready()
    _ = try saveLarge(1, &lab)
    try lab.step(0, .committed)
    let failing = try #require(uploads(take(&lab)).first)
    try lab.step(0, .failed(request: failing.number, TransportFailure(.interrupted, "cut")))
    for slot in ["castle", "forest"] {
      try lab.save(0, String(repeating: slot, count: 1 << 20), slot: slot, over: .everyHead)
    }
    lab.devices[0].pending = []
    try lab.step(0, .committed)
    #expect(lab.devices[0].pending.isEmpty)
    try lab.step(0, .woke)
    for effect in take(&lab) { try deliver(effect, &lab) }
    var wakes = 0
    for _ in 0..<20 where lab.devices[0].storage.outboxCount() > 0 {
      let wants = lab.devices[0].pending.contains(.wake(afterMilliseconds: 0))
      let open = take(&lab)
      #expect(uploads(open).count { $0.content.length > 4 << 20 } <= 1)
      for effect in open { try deliver(effect, &lab) }
      guard wants else { continue }
      wakes += 1
      try lab.step(0, .woke)
    }
    #expect(lab.devices[0].storage.outboxCount() == 0 && wakes > 0)
  }

  @Test("Four requests that are interrupted together count as one failure")
  func oneFailureTogether() throws {
    var lab = try ready()
    _ = try saveLarge(4, &lab)
    try lab.step(0, .committed)
    for upload in uploads(take(&lab)) {
      try lab.step(0, .failed(request: upload.number, TransportFailure(.interrupted, "cut")))
    }
    #expect(lab.devices[0].engine.status.attempts == 1)
    #expect(lab.devices[0].engine.status.transfers.isEmpty)
  }

  @Test("With several requests in flight, a late or mismatched response changes nothing, and each counts only once")
  func strangersChangeNothing() throws {
    var lab = try ready()
    _ = try saveLarge(3, &lab)
    try lab.step(0, .committed)
    let flights = uploads(take(&lab))
    try lab.step(0, .announced(CloudEvent(seq: 99)))
    let exchange = try #require(exchanges(take(&lab)).first)
    let (before, status) = (lab.devices[0].storage.facts(), lab.devices[0].engine.status)
    let response = try CloudAcceptance.exchange(exchange.request, now: 0, in: &lab.cloud, using: &lab.random)
    for number in flights.map(\.number) + [exchange.number &+ 1, 0] {
      try lab.step(0, .answered(request: number, response))
    }
    try lab.step(0, .uploaded(request: exchange.number, flights[0].content.hash))
    try lab.step(0, .downloaded(request: flights[0].number, flights[0].content.hash, flights[0].content))
    try lab.step(0, .failed(request: exchange.number &+ 9, TransportFailure(.unauthorized, "who are you")))
    #expect(lab.devices[0].storage.facts() == before && lab.devices[0].engine.status == status)
    #expect(take(&lab).isEmpty && flights.allSatisfy { lab.devices[0].storage.cloudDepth(of: $0.content.hash) == nil })
    // A response counts once.
    try lab.step(0, .uploaded(request: flights[0].number, flights[0].content.hash))
    #expect(lab.devices[0].engine.status.transfers.count == 2)
    try lab.step(0, .failed(request: flights[0].number, TransportFailure(.unauthorized, "who are you")))
    #expect(lab.devices[0].engine.status.phase == .busy)
  }

  @Test("After a crash during three uploads all saves arrive, and responses to the crashed run change nothing")
  func crashInFlight() throws {
    var lab = try ready()
    let saves = try saveLarge(3, &lab)
    try lab.step(0, .committed)
    let lost = take(&lab)
    try #require(uploads(lost).count == 3)
    try deliver(lost[0], &lab)
    let told = take(&lab)
    lab.devices[0].engine = DeviceEngine(options: options())
    try DeviceCommit.opened(in: &lab.devices[0].storage, using: &lab.random)
    try lab.step(0, .started)
    var open: [EngineEffect] = []
    for effect in take(&lab) {
      try deliver(effect, &lab)
      open += take(&lab)
    }
    try #require(!uploads(open).isEmpty)
    // Late responses to the crashed run, failures before successes.
    for number in uploads(lost).map(\.number) + exchanges(told).map(\.number) {
      try lab.step(0, .failed(request: number, TransportFailure(.unauthorized, "who are you")))
    }
    for effect in lost + told { try deliver(effect, &lab) }
    open += take(&lab)
    while !open.isEmpty {
      try deliver(open.removeFirst(), &lab)
      open += take(&lab)
    }
    for save in saves { #expect(lab.cloud.heads(of: save.slot) == [save.id]) }
    #expect(lab.devices[0].storage.outboxCount() == 0 && lab.devices[0].engine.status.phase == .idle)
  }

  @Test("A new device downloads several saves at the same time, each with its bases")
  func downloadsSideBySide() throws {
    var lab = try Lab(devices: 2, options: options())
    try lab.settle(0)
    for slot in ["one", "two"] {
      var last = try lab.save(0, whole(slot), slot: slot, over: .everyHead)
      try lab.settle(0)
      for number in 0..<2 {
        last = try lab.save(0, delta("\(slot)\(number)"), slot: slot, over: .versions([last.id]))
        try lab.settle(0)
      }
      #expect(lab.cloud.content(last.contents[0])?.base != nil)
    }
    // No contents are inside the response.
    try lab.step(1, .started)
    let exchange = try #require(exchanges(take(&lab, 1)).first)
    var response = try CloudAcceptance.exchange(exchange.request, now: 0, in: &lab.cloud, using: &lab.random)
    response.contents = []
    try lab.step(1, .answered(request: exchange.number, response))
    var open = take(&lab, 1)
    #expect(downloads(open).count == 2)
    #expect(Set(lab.devices[1].engine.status.transfers.map(\.slot)) == ["one", "two"])
    // The second save's delta arrives, and its base is requested while the first save is still missing.
    try deliver(open.removeLast(), to: 1, &lab)
    open += take(&lab, 1)
    #expect(downloads(open).count == 2)
    while !open.isEmpty {
      #expect(lab.devices[1].storage.slots().isEmpty)
      try deliver(open.removeLast(), to: 1, &lab)
      open += take(&lab, 1)
    }
    for slot in ["one", "two"] { #expect(lab.devices[1].storage.heads(of: slot) == lab.cloud.heads(of: slot)) }
  }

  @Test("A device gives up a content whose bases form a cycle")
  func basesInACircle() throws {
    var lab = try Lab(devices: 2, options: options())
    let save = try lab.save(0, text("a"), over: .everyHead)
    try lab.commit(0, Lab.level(3))
    try lab.settle(0)
    let (hash, other) = (save.contents[0], ContentHash(of: Data("other".utf8)))
    try lab.step(1, .started)
    let exchange = try #require(exchanges(take(&lab, 1)).first)
    var response = try CloudAcceptance.exchange(exchange.request, now: 0, in: &lab.cloud, using: &lab.random)
    response.contents = []
    try lab.step(1, .answered(request: exchange.number, response))
    var open = take(&lab, 1)
    for _ in 0..<20 where !open.isEmpty {
      let effect = open.removeFirst()
      if case .download(let number, let asked) = effect {
        let content = EncodedContent(hash: asked, length: 1, base: asked == hash ? other : hash, bytes: Data([1]))
        try lab.step(1, .downloaded(request: number, asked, content))
      } else {
        try deliver(effect, to: 1, &lab)
      }
      open += take(&lab, 1)
    }
    #expect(open.isEmpty && lab.devices[1].notifications.contains(.damaged(hash)))
    #expect(lab.level(1) == .max(.int(3)) && lab.devices[1].engine.status.phase == .idle)
  }
}
