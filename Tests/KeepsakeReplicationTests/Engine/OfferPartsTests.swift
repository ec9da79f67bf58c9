import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite("Offers that take several requests")
struct OfferPartsTests {
  static let offer = OfferID(high: 4, low: 4)

  private func exchange(_ request: ExchangeRequest, _ cloud: inout MemoryContainer, now: Int64 = 7) throws
    -> ExchangeResponse
  {
    var random = SeededGenerator(seed: cloud.position().seq + 5)
    return try CloudAcceptance.exchange(request, now: now, in: &cloud, using: &random)
  }

  private func cell(_ key: String) -> CellUpdate {
    CellUpdate(key: CellKey(collection: "progress", key: key), state: CellState(value: .max(.int(1))))
  }

  private func save(_ number: UInt64, _ contents: [ContentHash] = []) -> VersionRecord {
    VersionRecord(
      id: ResolutionTests.id(number), slot: "main", covers: [], contents: contents, length: 0, savedAtMilliseconds: 0,
      writer: WriterID(1),
      provisional: false)
  }

  private func part(
    _ number: Int, last: Bool = false, of offer: OfferID = offer, cells: [CellUpdate] = [],
    versions: [VersionRecord] = []
  ) -> ExchangeRequest {
    ExchangeRequest(
      cursor: .start, cells: cells, versions: versions, limit: 10,
      part: OfferPart(offer: offer, number: number, isLast: last))
  }

  // MARK: The cloud

  @Test("another device receives nothing of an offer before its last part, and then all of it in one response")
  func together() throws {
    var cloud = MemoryContainer(epoch: 1)
    #expect(try exchange(part(0, cells: [cell("a")]), &cloud).outcome == .held(parts: 1))
    #expect(try exchange(part(1, versions: [save(1)]), &cloud).outcome == .held(parts: 2))
    #expect(cloud.position().seq == 0)
    #expect(try exchange(ExchangeRequest(cursor: .start, limit: 10), &cloud).changes.isEmpty)
    #expect(try exchange(part(2, last: true, cells: [cell("b")]), &cloud).outcome == .accepted(seq: 3))
    #expect(try exchange(ExchangeRequest(cursor: .start, limit: 10), &cloud).changes.count == 3)
    #expect(cloud.heldOffers().isEmpty)
  }

  @Test("a part that is repeated, early, or whose predecessors the cloud lost never makes half of an offer visible")
  func outOfOrder() throws {
    var cloud = MemoryContainer(epoch: 1)
    #expect(try exchange(part(1, last: true, cells: [cell("b")]), &cloud).outcome == .held(parts: 0))
    #expect(try exchange(part(1, cells: [cell("b")]), &cloud).outcome == .held(parts: 0))
    let lost = cloud
    for _ in 0..<2 { #expect(try exchange(part(0, cells: [cell("a")]), &cloud).outcome == .held(parts: 1)) }
    #expect(cloud.items(of: Self.offer).count == 1)
    cloud = lost
    #expect(try exchange(part(2, last: true, cells: [cell("c")]), &cloud).outcome == .held(parts: 0))
    #expect(cloud.position().seq == 0)
    #expect(throws: ExchangeError.self) { try exchange(part(-1), &cloud) }
    #expect(throws: ExchangeError.self) { try exchange(part(ExchangeRules.maximumOfferParts), &cloud) }
  }

  @Test("an offer that lacks a content is held until the content arrives; one that is refused is dropped")
  func missingAndRefused() throws {
    var cloud = MemoryContainer(epoch: 1)
    let bytes = Data("bytes".utf8)
    let hash = ContentHash(of: bytes)
    _ = try exchange(part(0, versions: [save(1, [hash])]), &cloud)
    let last = part(1, last: true, cells: [cell("a")])
    #expect(try exchange(last, &cloud).outcome == .missing([hash]))
    cloud.putContent(EncodedContent(hash: hash, length: 5, base: nil, bytes: bytes))
    #expect(try exchange(last, &cloud).outcome == .accepted(seq: 2))

    _ = try exchange(part(0, cells: [cell("c")]), &cloud)
    guard case .refused = try exchange(part(1, last: true, cells: [cell("")]), &cloud).outcome else {
      Issue.record("a cell without a name is accepted")
      return
    }
    #expect(cloud.heldOffers().isEmpty && cloud.cell(cell("c").key) == nil)
  }

  @Test("the number of held offers is limited: idle and expired ones make room, and active ones are never dropped")
  func bounded() throws {
    var cloud = MemoryContainer(epoch: 1)
    let ids = (0..<ExchangeRules.maximumOffers + 1).map { OfferID(high: 1, low: UInt64($0)) }
    for id in ids.dropLast() {
      #expect(try exchange(part(0, of: id, cells: [cell("a")]), &cloud).outcome == .held(parts: 1))
    }
    let late = part(0, of: ids[ids.count - 1], cells: [cell("a")])
    #expect(try exchange(late, &cloud).outcome == .held(parts: 0))
    // All but the first two are continued.
    let soon = 7 + ExchangeRules.offerIdleMilliseconds
    for id in ids.dropLast().dropFirst(2) {
      _ = try exchange(part(1, of: id, cells: [cell("b")]), &cloud, now: soon - 1)
    }
    #expect(try exchange(late, &cloud, now: soon).outcome == .held(parts: 1))
    #expect(cloud.heldOffers().count == ExchangeRules.maximumOffers)
    #expect(cloud.items(of: ids[2]).count == 2)
    // A day later all of them have expired.
    let day = soon + ExchangeRules.offerLifetimeMilliseconds
    #expect(try exchange(part(0, cells: [cell("a")]), &cloud, now: day).outcome == .held(parts: 1))
    #expect(cloud.heldOffers().map(\.id) == [Self.offer])
  }

  @Test("a part that would make its offer too large isn't held")
  func tooLarge() throws {
    var cloud = MemoryContainer(epoch: 1)
    let value = CellValue.max(.string(String(repeating: "v", count: 250_000)))
    let cells = (0..<64).map {
      CellUpdate(key: CellKey(collection: "progress", key: "\($0)"), state: CellState(value: value))
    }
    #expect(try exchange(part(0, cells: cells), &cloud).outcome == .held(parts: 1))
    #expect(try exchange(part(1, cells: cells), &cloud).outcome == .held(parts: 2))
    #expect(try exchange(part(2, cells: cells), &cloud).outcome == .held(parts: 2))
  }

  // MARK: A device

  /// Two devices, of which the first has checkpoints that the cloud's backup lacks, and the restored backup as the
  /// cloud.
  private func restored(_ options: DeviceEngine.Options = .init(), checkpoints: Int = 4) throws -> Lab {
    var lab = try Lab(devices: 2, options: options)
    for index in 0..<2 { try lab.settle(index) }
    try lab.commit(0, Lab.level(1))
    try lab.settle(0)
    try lab.settle(1)
    let backup = lab.cloud
    for number in 1...checkpoints {
      try lab.save(0, "save \(number)", slot: "slot \(number)", over: .everyHead)
      try lab.commit(
        0, CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: "\(number)"), .max(.int(1)))]))
    }
    try lab.settle(0)
    lab.cloud = backup
    for index in 0..<2 { lab.devices[index].exchanges = 0 }
    lab.requests = []
    return lab
  }

  /// Delivers the oldest request of the first device and the response to it; returns false if there is none.
  private func answerNext(_ lab: inout Lab) throws -> Bool {
    guard let effect = lab.takeRequest(0) else { return false }
    if case .exchange(_, let request) = effect { lab.requests.append(request) }
    var (cloud, random) = (lab.cloud, lab.random)
    let event = try lab.answer(to: effect, cloud: &cloud, using: &random)
    (lab.cloud, lab.random) = (cloud, random)
    if let event { try lab.step(0, event) }
    return true
  }

  private func told(_ lab: Lab, _ index: Int = 0) throws -> CloudEvent {
    let cursor = lab.devices[index].storage.facts().cursor
    #expect(try !CloudAcceptance.isOfThisHistory(cursor, in: lab.cloud))
    return CloudEvent(seq: lab.cloud.position().seq, unknown: cursor)
  }

  @Test("a device that is notified that its cloud was restored sends everything that it has in one exchange")
  func oneExchange() throws {
    var lab = try restored()
    try lab.settle(0, .announced(told(lab)))
    #expect(lab.devices[0].exchanges == 1)
    #expect(lab.devices[0].storage.outboxCount() == 0)
    #expect((1...4).allSatisfy { lab.cloud.heads(of: "slot \($0)").count == 1 })
    #expect(lab.devices[0].storage.facts().cursor == lab.cloud.position())
    #expect(lab.devices[0].engine.status.phase == .idle)
    // The other device was offline, and fetches all of it at once.
    try lab.settle(1)
    #expect(lab.devices[1].exchanges == 1 && lab.devices[1].storage.slots().count == 4)
  }

  @Test("an event about an outdated cursor, or one during an exchange, doesn't make the device start over")
  func anotherCursor() throws {
    var lab = try restored()
    var event = try told(lab)
    event.unknown?.mark ^= 1
    try lab.step(0, .announced(event))
    #expect(lab.devices[0].storage.outboxCount() == 0)
    // During an exchange it is left to the response.
    try lab.step(0, .sync)
    try lab.step(0, .announced(told(lab)))
    #expect(lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("the exchange waits until the needed contents are uploaded, but no longer than until the next poll")
  func waitsForPuts() throws {
    var options = DeviceEngine.Options()
    options.inlineBytes = 4
    var lab = try restored(options)
    try lab.step(0, .announced(told(lab)))
    let puts = lab.takeRequests()
    #expect(puts.count == 4)
    for put in puts {
      guard case .upload = put else {
        Issue.record("\(put) before everything is uploaded")
        return
      }
    }
    var impatient = lab
    try impatient.step(0, .woke)
    guard case .exchange(_, let request)? = impatient.takeRequest(0) else {
      Issue.record("nothing is fetched while saves are uploaded")
      return
    }
    #expect(request.cells.isEmpty && request.versions.isEmpty)
    for (number, put) in puts.enumerated() {
      lab.devices[0].pending = [put]
      #expect(try answerNext(&lab))
      lab.devices[0].pending = lab.takeRequests()
      #expect(lab.devices[0].pending.count == (number == 3 ? 1 : 0))
    }
    guard case .exchange(_, let request)? = lab.takeRequest(0) else {
      Issue.record("what was uploaded isn't offered")
      return
    }
    #expect(request.versions.count == 4 && request.part == nil)
  }

  @Test("an offer of several requests is never visible in part, despite lost parts, a restart or a commit meanwhile")
  func inParts() throws {
    var options = DeviceEngine.Options()
    (options.pieceCells, options.pieceVersions, options.maximumCells, options.maximumVersions) = (1, 1, 2, 2)
    for interruption in 0..<4 {
      var lab = try restored(options)
      try lab.step(0, .announced(told(lab)))
      var asked = 0
      while try answerNext(&lab) {
        asked += 1
        try #require(asked < 60, "interruption \(interruption)")
        switch interruption {
        case 1 where asked == 2:
          for held in lab.cloud.heldOffers() { lab.cloud.dropOffer(held.id) }
        case 2 where asked == 2:
          lab.devices[0].engine = DeviceEngine(options: options)
          lab.devices[0].pending = []
          try lab.step(0, .started)
        case 3 where asked == 2:
          try lab.save(0, "later", slot: "slot 1", over: .everyHead)
          try lab.commit(0, Lab.level(2))
          try lab.step(0, .committed)
        default: break
        }
        // At any time either nothing or everything is visible.
        let seen = (1...4).count { !lab.cloud.heads(of: "slot \($0)").isEmpty }
        let values = (1...4).count { lab.cloud.cell(CellKey(collection: "progress", key: "\($0)")) != nil }
        #expect(
          (seen, values) == (0, 0) || (seen, values) == (4, 4),
          "interruption \(interruption), \(seen) and \(values) after \(asked)")
      }
      #expect(asked > 3)
      #expect(lab.devices[0].storage.outboxCount() == 0, "interruption \(interruption)")
      try lab.settle(1)
      for slot in 1...4 {
        #expect(lab.devices[1].storage.heads(of: "slot \(slot)") == lab.devices[0].storage.heads(of: "slot \(slot)"))
      }
      #expect(lab.level(1) == .max(.int(interruption == 3 ? 2 : 1)))
    }
  }

  @Test("what the player takes out of the cloud between two parts of an offer isn't sent with the rest")
  func withdrawn() throws {
    var options = DeviceEngine.Options()
    (options.pieceCells, options.pieceVersions, options.maximumCells, options.maximumVersions) = (1, 1, 2, 2)
    for isEarly in [true, false] {
      var lab = try restored(options)
      try lab.step(0, .announced(told(lab)))
      for _ in 0..<2 { #expect(try answerNext(&lab)) }
      #expect(lab.cloud.heldOffers().count == 1)
      let slot = isEarly ? "slot 1" : "slot 4"
      let saved = lab.devices[0].storage.heads(of: slot)
      try DeviceCommit.withdraw(slot, in: &lab.devices[0].storage)
      try lab.step(0, .committed)
      var asked = 0
      while try answerNext(&lab) {
        asked += 1
        try #require(asked < 60)
      }
      #expect(lab.devices[0].storage.outboxCount() == 0)
      #expect(lab.cloud.heads(of: slot) == [] && saved.allSatisfy { lab.cloud.version($0) == nil }, "\(slot)")
      #expect((1...4).count { !lab.cloud.heads(of: "slot \($0)").isEmpty } == 3)
    }
  }

  @Test("an offer that the cloud has no room for is sent piece by piece, and a piece with nothing left in it ends")
  func emptyPiece() throws {
    var options = DeviceEngine.Options()
    (options.pieceCells, options.pieceVersions) = (1, 1)
    var lab = try restored(options)
    lab.quota = lab.cloud.usedBytes() + 1
    try lab.step(0, .announced(told(lab)))
    #expect(try answerNext(&lab))
    #expect(try answerNext(&lab))
    // As if the cloud had said that it lacks the contents of history that this device hasn't either.
    let groups = lab.devices[0].storage.outbox(limit: 100)
    let pieces = groups.filter { $0.isPiece && $0.refusals.isEmpty && !$0.versions.isEmpty }
    try #require(pieces.count > 1)
    var piece = pieces[0]
    #expect(groups.contains { $0.id > piece.id && !$0.cells.isEmpty })
    piece.versions = []
    lab.devices[0].storage.updateOutbox(piece)
    // And as if another version had arrived.
    var arrived = try #require(lab.devices[0].storage.version(pieces[1].versions[0]))
    arrived.acknowledged = true
    lab.devices[0].storage.putVersion(arrived)
    lab.requests = []
    var asked = 0
    while try answerNext(&lab) {
      asked += 1
      try #require(asked < 60, "it goes on for ever")
    }
    #expect((1...4).allSatisfy { lab.cloud.cell(CellKey(collection: "progress", key: "\($0)")) != nil })
    #expect(lab.devices[0].storage.outbox(limit: 100).allSatisfy { !$0.refusals.isEmpty })
    #expect(!lab.requests.isEmpty && !lab.requests.contains { $0.versions.contains { $0.id == arrived.record.id } })
  }

  @Test("an offer that takes more than a hundred requests is never visible in part")
  func manyParts() throws {
    var options = DeviceEngine.Options()
    (options.pieceCells, options.pieceVersions, options.maximumCells, options.maximumVersions) = (1, 1, 1, 1)
    var lab = try restored(options, checkpoints: 100)
    try lab.step(0, .announced(told(lab)))
    var asked = 0
    while try answerNext(&lab) {
      asked += 1
      try #require(asked < 500)
      let seen = (1...100).count { !lab.cloud.heads(of: "slot \($0)").isEmpty }
      let values = (1...100).count { lab.cloud.cell(CellKey(collection: "progress", key: "\($0)")) != nil }
      #expect((seen, values) == (0, 0) || (seen, values) == (100, 100), "\(seen) and \(values) after \(asked)")
    }
    #expect(asked > 100 && lab.devices[0].storage.outboxCount() == 0)
    #expect((1...100).allSatisfy { !lab.cloud.heads(of: "slot \($0)").isEmpty })
  }

  @Test("a device pauses if the cloud has no room for a part, and goes on once there is room")
  func noRoom() throws {
    var options = DeviceEngine.Options()
    (options.pieceCells, options.pieceVersions, options.maximumCells, options.maximumVersions) = (1, 1, 2, 2)
    var lab = try restored(options)
    for number in 0..<ExchangeRules.maximumOffers {
      _ = try exchange(part(0, of: OfferID(high: 1, low: UInt64(number)), cells: [cell("a")]), &lab.cloud, now: lab.now)
    }
    try lab.step(0, .announced(told(lab)))
    #expect(try answerNext(&lab))
    #expect(lab.devices[0].pending.contains(.wake(afterMilliseconds: options.offerPauseMilliseconds)))
    guard case .waiting = lab.devices[0].engine.status.phase else {
      Issue.record("it doesn't pause: \(lab.devices[0].engine.status.phase)")
      return
    }
    // Once the other offers are complete or expired, it goes on.
    lab.now += ExchangeRules.offerIdleMilliseconds
    try lab.settle(0, .woke)
    #expect(lab.devices[0].storage.outboxCount() == 0)
  }
}
