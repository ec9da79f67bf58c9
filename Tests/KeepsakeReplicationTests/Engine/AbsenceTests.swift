import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@Suite("Long absence")
struct AbsenceTests {
  /// What a device requests until it has nothing more to request.
  private struct Talk {
    var exchanges = 0
    var downloads = 0
    /// As they go over the wire, contents included.
    var bytesUp = 0
    var bytesDown = 0
  }

  private func talk(_ index: Int, in lab: inout Lab) throws -> Talk {
    var talk = Talk()
    try lab.step(index, lab.devices[index].engine.status.phase == .stopped ? .started : .sync)
    while let effect = lab.takeRequest(index) {
      switch effect {
      case .exchange(_, let request):
        talk.exchanges += 1
        talk.bytesUp += try ExchangeBody.encode(request).count
      case .download: talk.downloads += 1
      default: break
      }
      guard let event = try lab.answer(to: effect, cloud: &lab.cloud, using: &lab.random) else { continue }
      if case .answered(_, let answer) = event { talk.bytesDown += try ExchangeBody.encode(answer).count }
      try lab.step(index, event)
    }
    return talk
  }

  /// Sends a request to the cloud, from no device in particular.
  private func exchange(_ request: ExchangeRequest, in lab: inout Lab) throws -> ExchangeResponse {
    try CloudAcceptance.exchange(request, now: lab.now, in: &lab.cloud, using: &lab.random)
  }

  private func level(_ number: Int, _ value: Int64) -> CellDraft {
    CellDraft(CellKey(collection: "progress", key: "flower \(number)"), .max(.int(value)))
  }

  /// Sends another device's month of play to the cloud, save by save; each content is a delta of the one before, except
  /// one of twenty. Returns the last save.
  private func play(_ saves: Int, _ cells: Int, after first: VersionRecord, metadata: SaveMetadata, in lab: inout Lab)
    throws
    -> VersionRecord
  {
    var last = first
    for number in 1...saves {
      let bytes = Data("autosave \(number)".utf8)
      let content = EncodedContent(
        hash: ContentHash(of: bytes), length: bytes.count, base: number % 20 == 1 ? nil : last.contents.first,
        bytes: bytes)
      var next = last
      (next.id, next.covers, next.contents, next.length) = (
        VersionID(using: &lab.random), [last.id], [content.hash], bytes.count
      )
      next.metadata = metadata
      var cell: [CellUpdate] = []
      if number % (saves / cells) == 0 {
        let key = CellKey(collection: "progress", key: "flower \(number / (saves / cells))")
        cell = [CellUpdate(key: key, state: CellState(value: .max(.int(Int64(number)))))]
      }
      let request = ExchangeRequest(
        cursor: lab.cloud.position(), cells: cell, versions: [next], contents: [content], limit: 1)
      let answer = try exchange(request, in: &lab)
      guard case .accepted = answer.outcome else {
        Issue.record("save \(number): \(String(describing: answer.outcome))")
        return last
      }
      last = next
    }
    return last
  }

  @Test("thousands of autosaves and values made offline are sent in one exchange, and another device gets them in one")
  func offline() throws {
    var lab = try Lab(devices: 2)
    var last = try lab.save(0, "the first", over: .everyHead)
    for index in 0..<2 { try lab.settle(index) }
    for number in 1...TestDepth.missedSaves { last = try lab.save(0, "autosave \(number)", over: .versions([last.id])) }
    for batch in 0..<TestDepth.missedValues / 50 {
      try lab.commit(0, CommitDraft(cells: (1...50).map { level(batch * 50 + $0, Int64(batch)) }))
    }
    let told = try talk(0, in: &lab)
    #expect(told.exchanges == 1 && told.bytesUp < 1_000_000, "\(told)")
    #expect(lab.devices[0].storage.outboxCount() == 0)
    let isCertain = lab.devices[0].storage.version(last.id)?.acknowledged == true
    #expect(isCertain)

    let heard = try talk(1, in: &lab)
    #expect(heard.exchanges == 1 && heard.downloads == 0 && heard.bytesDown < 1_000_000, "\(heard)")
    #expect(lab.devices[1].storage.heads(of: "main") == [last.id])
    let cells = lab.devices[1].storage.cells(in: "progress")
    #expect(cells.count == TestDepth.missedValues && cells == lab.devices[0].storage.cells(in: "progress"))
  }

  @Test("a device that missed thousands of saves and values fetches them in at most two exchanges, without downloads")
  func away() throws {
    var lab = try Lab(devices: 2)
    let first = try lab.save(0, "the first", over: .everyHead)
    for index in 0..<2 { try lab.settle(index) }
    let last = try play(TestDepth.missedSaves, TestDepth.missedValues, after: first, metadata: SaveMetadata(), in: &lab)
    let heard = try talk(1, in: &lab)
    #expect(heard.exchanges <= 2 && heard.downloads == 0 && heard.bytesDown < 4_000_000, "\(heard)")
    #expect(lab.devices[1].storage.heads(of: "main") == [last.id])
    let content = try #require(last.contents.first)
    #expect(lab.devices[1].storage.content(content) == Data("autosave \(TestDepth.missedSaves)".utf8))
    #expect(lab.devices[1].storage.cells(in: "progress").count == TestDepth.missedValues)

    // A save that it makes now from the one that it had before has that one as an ancestor in common with the newest.
    try lab.save(1, "made from the first", over: .versions([first.id]))
    let view = try Resolution.view(of: "main", in: lab.devices[1].storage)
    #expect(view.isConflict && view.related && view.ancestors == [first.id])
  }

  @Test("saves replaced long ago are sent without titles and pictures; the newest and the one it replaced with them")
  func withoutLabels() throws {
    var lab = try Lab(devices: 2)
    let first = try lab.save(0, "the first", over: .everyHead)
    for index in 0..<2 { try lab.settle(index) }
    let metadata = SaveMetadata(
      title: "Cave", playtime: 60, progress: 2, thumbnail: Data(repeating: 7, count: 60_000), custom: ["hat": "red"])
    // Ten thousand of these pictures would be 600 MB.
    let last = try play(200, 1, after: first, metadata: metadata, in: &lab)
    let heard = try talk(1, in: &lab)
    #expect(heard.exchanges == 1)
    let storage = lab.devices[1].storage
    let before = try #require(last.covers.first)
    #expect(storage.version(last.id)?.record == lab.cloud.version(last.id)?.record)
    #expect(storage.version(before)?.record.metadata == metadata)
    let older = storage.allVersions().compactMap { storage.version($0)?.record }.filter {
      ![last.id, before, first.id].contains($0.id)
    }
    #expect(older.count == 198)
    #expect(older.allSatisfy { $0.metadata == SaveMetadata(playtime: 60, progress: 2) && $0.contents.count == 1 })
  }

  @Test("a cloud accepts a record stripped of its picture, keeps the picture if it has it, and adds it later if not")
  func restored() throws {
    var lab = try Lab(devices: 2)
    let first = try lab.save(0, "the first", over: .everyHead)
    for index in 0..<2 { try lab.settle(index) }
    let metadata = SaveMetadata(title: "Cave", progress: 2, thumbnail: Data([1, 2, 3]), custom: ["hat": "red"])
    let last = try play(6, 1, after: first, metadata: metadata, in: &lab)
    _ = try talk(1, in: &lab)
    let versions = lab.devices[1].storage.allVersions()
    let stripped = versions.compactMap { lab.devices[1].storage.version($0)?.record }.filter {
      $0.metadata == SaveMetadata(progress: 2)
    }
    #expect(stripped.count == 4)
    // The stripped records, offered again.
    let answer = try exchange(ExchangeRequest(cursor: .start, versions: stripped, limit: 10_000), in: &lab)
    guard case .accepted = answer.outcome else {
      Issue.record("\(String(describing: answer.outcome))")
      return
    }
    for record in stripped { #expect(lab.cloud.version(record.id)?.record.metadata == metadata) }

    // A cloud that lost them accepts the stripped records, and later the whole ones.
    var full: [VersionRecord] = []
    for id in versions { full += lab.cloud.version(id).map { [$0.record] } ?? [] }
    let kept = lab.cloud
    lab.cloud = MemoryContainer(epoch: 2)
    _ = try talk(1, in: &lab)
    let isThere = lab.cloud.version(stripped[0].id)?.record == stripped[0]
    #expect(isThere && lab.cloud.heads(of: "main") == [last.id])
    var contents: [EncodedContent] = []
    for record in full { contents += record.contents.compactMap { kept.content($0) } }
    guard
      case .accepted = try exchange(
        ExchangeRequest(cursor: .start, versions: full, contents: contents, limit: 1), in: &lab
      ).outcome
    else {
      Issue.record("the whole records were refused")
      return
    }
    #expect(lab.cloud.version(stripped[0].id)?.record.metadata == metadata)
    // A different record with a known id is still refused.
    var forged = try #require(full.first { $0.metadata.title != nil })
    forged.metadata.title = "Hill"
    guard case .refused = try exchange(ExchangeRequest(cursor: .start, versions: [forged], limit: 1), in: &lab).outcome
    else {
      Issue.record("another title was accepted")
      return
    }
  }

  @Test("a device's own changes take no room in the response to it; those of other devices do")
  func ownItems() throws {
    var (cloud, random) = (MemoryContainer(epoch: 1), SeededGenerator(seed: 7))
    func exchange(_ cursor: Cursor, _ names: [String], limit: Int) throws -> ExchangeResponse {
      let cells = names.map {
        CellUpdate(key: CellKey(collection: "progress", key: $0), state: CellState(value: .max(.int(1))))
      }
      return try CloudAcceptance.exchange(
        ExchangeRequest(cursor: cursor, cells: cells, limit: limit), now: 1, in: &cloud, using: &random)
    }
    let own = (0..<200).map { "own \($0)" }
    let first = try exchange(.start, own, limit: 1)
    #expect(!first.more && first.changes.isEmpty && first.cursor == cloud.position())
    let start = first.cursor
    _ = try exchange(start, ["other 1", "other 2"], limit: 10)
    let second = try exchange(start, ["more of its own"], limit: 2)
    #expect(!second.more && second.changes.count == 2 && second.cursor == cloud.position())
    let third = try exchange(start, ["still more"], limit: 1)
    #expect(third.more && third.changes.count == 1)
    // The next page begins where this one ended.
    let fourth = try exchange(third.cursor, [], limit: 10)
    #expect(!fourth.more && fourth.changes.map(\.seq) == [202, 203, 204])
  }

  @Test(
    "a response is limited in bytes, with a higher limit from the start of the history and for following pages",
    arguments: [true, false])
  func bytes(fromStart: Bool) throws {
    var (cloud, random) = (MemoryContainer(epoch: 1), SeededGenerator(seed: 8))
    func exchange(_ request: ExchangeRequest) throws -> ExchangeResponse {
      try CloudAcceptance.exchange(request, now: 1, in: &cloud, using: &random)
    }
    func cell(_ name: String, _ bytes: Int) -> CellUpdate {
      let value = Scalar.string(String(repeating: "v", count: bytes))
      return CellUpdate(key: CellKey(collection: "progress", key: name), state: CellState(value: .max(value)))
    }
    var cursor = try exchange(ExchangeRequest(cursor: .start, cells: [cell("a", 1)], limit: 1)).cursor
    if fromStart { cursor = .start }
    for number in 0..<100 {
      _ = try exchange(ExchangeRequest(cursor: .start, cells: [cell("\(number)", 200_000)], limit: 1))
    }
    var sizes: [Int] = []
    var heard = 0
    var more = true
    while more, sizes.count < 20 {
      let answer = try exchange(ExchangeRequest(cursor: cursor, limit: .max))
      var size = 0
      for case .cell(let update) in answer.changes.map(\.item) { size += update.size }
      sizes.append(size)
      heard += answer.changes.count
      (cursor, more) = (answer.cursor, answer.more)
    }
    #expect(heard == (fromStart ? 101 : 100))
    let room = fromStart ? CloudAcceptance.catchUpBytes : CloudAcceptance.answerBytes
    #expect(sizes[0] <= room && sizes[0] > room - 250_000, "\(sizes)")
    #expect(
      sizes.dropFirst().dropLast().allSatisfy {
        (CloudAcceptance.catchUpBytes - 250_000...CloudAcceptance.catchUpBytes).contains($0)
      })
  }
}
