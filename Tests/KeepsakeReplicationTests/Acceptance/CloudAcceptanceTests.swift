import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite struct CloudAcceptanceTests {
  static let level = CellKey(collection: "progress", key: "level")

  func exchange(_ request: ExchangeRequest, _ cloud: inout MemoryContainer) throws -> ExchangeResponse {
    var random = SeededGenerator(seed: cloud.position().seq + 5)
    return try CloudAcceptance.exchange(request, now: 7, in: &cloud, using: &random)
  }

  func cell(_ value: Int64, _ key: CellKey = level) -> CellUpdate {
    CellUpdate(key: key, state: CellState(value: .max(.int(value))))
  }

  func version(_ number: UInt64, over covers: [UInt64] = [], contents: [Data] = [], slot: String = "main")
    -> VersionRecord
  {
    VersionRecord(
      id: ResolutionTests.id(number), slot: slot, covers: covers.map(ResolutionTests.id),
      contents: contents.map { ContentHash(of: $0) },
      length: contents.reduce(0) { $0 + $1.count }, savedAtMilliseconds: 0, writer: WriterID(1), provisional: false)
  }

  func content(_ bytes: Data, base: Data? = nil) -> EncodedContent {
    EncodedContent(
      hash: ContentHash(of: bytes), length: bytes.count, base: base.map { ContentHash(of: $0) }, bytes: bytes)
  }

  @Test("Every change gets the next number, so that no device misses one, and a repeated change gets none")
  func everyChangeHasItsSeq() throws {
    var cloud = MemoryContainer(epoch: 1)
    let other = CellKey(collection: "progress", key: "other")
    let response = try exchange(
      ExchangeRequest(cursor: .start, cells: [cell(1), cell(2, other)], versions: [version(1)], limit: 10), &cloud)
    #expect(response.outcome == .accepted(seq: 3))
    #expect(response.cursor == cloud.position())
    #expect(response.changes.isEmpty)
    let all = try exchange(ExchangeRequest(cursor: .start, limit: 10), &cloud)
    #expect(all.changes.map(\.seq) == [1, 2, 3])
    // Sent again: nothing new happens.
    let again = try exchange(
      ExchangeRequest(cursor: response.cursor, cells: [cell(1)], versions: [version(1)], limit: 10), &cloud)
    #expect(again.outcome == .accepted(seq: 3))
    #expect(again.changes.isEmpty)
    #expect(cloud.position().seq == 3)
  }

  @Test("A device whose value was joined with another one receives the result")
  func echoes() throws {
    var cloud = MemoryContainer(epoch: 1)
    let first = try exchange(ExchangeRequest(cursor: .start, cells: [cell(5)], limit: 10), &cloud)
    // Another device, from the start, with a lower value: it has to receive the 5.
    let second = try exchange(ExchangeRequest(cursor: .start, cells: [cell(3)], limit: 10), &cloud)
    #expect(second.changes.map(\.item) == [.cell(cell(5))])
    // The first one with a higher value needs no echo.
    let third = try exchange(ExchangeRequest(cursor: first.cursor, cells: [cell(9)], limit: 10), &cloud)
    #expect(third.changes.isEmpty)
    #expect(cloud.cell(Self.level)?.update == cell(9))
  }

  @Test("A save becomes visible only when its bytes are in the cloud")
  func completeBeforeVisible() throws {
    var cloud = MemoryContainer(epoch: 1)
    let old = Data("old".utf8)
    let new = Data("new".utf8)
    let save = version(1, contents: [new])
    var request = ExchangeRequest(cursor: .start, cells: [cell(1)], versions: [save], limit: 10)
    #expect(try exchange(request, &cloud).outcome == .missing([ContentHash(of: new)]))
    request.contents = [content(new, base: old)]
    #expect(try exchange(request, &cloud).outcome == .missing([ContentHash(of: old), ContentHash(of: new)].sorted()))
    #expect(cloud.position().seq == 0)
    #expect(cloud.cell(Self.level) == nil)
    request.contents = [content(new, base: old), content(old, base: new)]
    guard case .missing = try exchange(request, &cloud).outcome else {
      Issue.record("bases that form a cycle were accepted")
      return
    }
    request.contents = [content(new, base: old), content(old)]
    #expect(try exchange(request, &cloud).outcome == .accepted(seq: 2))
    let fresh = try exchange(ExchangeRequest(cursor: .start, limit: 10), &cloud)
    #expect(fresh.contents.map(\.hash) == [ContentHash(of: old), ContentHash(of: new)])
    // A version that is replaced already may come without contents: no device will show it.
    let history = ExchangeRequest(
      cursor: .start, versions: [version(3, over: [2]), version(2, contents: [Data("lost".utf8)])], limit: 10)
    guard case .accepted = try exchange(history, &cloud).outcome else {
      Issue.record("history was refused")
      return
    }
    #expect(cloud.heads(of: "main") == [1, 3].map(ResolutionTests.id))
  }

  @Test("A save that was replaced long ago stays replaced when its upload arrives late")
  func coveredForEver() throws {
    var cloud = MemoryContainer(epoch: 1)
    _ = try exchange(ExchangeRequest(cursor: .start, versions: [version(2, over: [1])], limit: 10), &cloud)
    _ = try exchange(ExchangeRequest(cursor: .start, versions: [version(1)], limit: 10), &cloud)
    #expect(cloud.heads(of: "main") == [ResolutionTests.id(2)])
    // The same version with more that it covers: both count.
    _ = try exchange(ExchangeRequest(cursor: .start, versions: [version(3), version(2, over: [3])], limit: 10), &cloud)
    #expect(cloud.heads(of: "main") == [ResolutionTests.id(2)])
    #expect(cloud.version(ResolutionTests.id(2))?.record.covers == [1, 3].map(ResolutionTests.id))
  }

  @Test("A save that was replaced already is accepted without its contents, which nobody may have any more")
  func historyNeedsNoContents() throws {
    var cloud = MemoryContainer(epoch: 1)
    _ = try exchange(ExchangeRequest(cursor: .start, versions: [version(2, over: [1])], limit: 10), &cloud)
    let late = ExchangeRequest(cursor: .start, versions: [version(1, contents: [Data("lost".utf8)])], limit: 10)
    #expect(try exchange(late, &cloud).outcome == .accepted(seq: 2))
    #expect(cloud.heads(of: "main") == [ResolutionTests.id(2)])
  }

  @Test("A save stops being provisional unless there is a head that it doesn't replace")
  func provisional() throws {
    var cloud = MemoryContainer(epoch: 1)
    for (number, covers, expected) in [(1, [], false), (2, [1], false), (3, [], true)] as [(UInt64, [UInt64], Bool)] {
      var save = version(number, over: covers)
      save.provisional = true
      _ = try exchange(ExchangeRequest(cursor: .start, versions: [save], limit: 10), &cloud)
      #expect(cloud.version(save.id)?.record.provisional == expected, "version \(number)")
    }
  }

  @Test("The cloud joins a value with the one that it has: a counter isn't added to, a union grows, a reset wins")
  func joins() throws {
    var cloud = MemoryContainer(epoch: 1)
    func stored(after states: [CellState], _ key: String) throws -> CellState? {
      let key = CellKey(collection: "progress", key: key)
      for state in states {
        let update = CellUpdate(key: key, state: state)
        _ = try exchange(ExchangeRequest(cursor: .start, cells: [update], limit: 10), &cloud)
      }
      return cloud.cell(key)?.update.state
    }
    let counts = [2, 3].map { CellState(value: .counter([WriterID(1): CounterEntry(plus: $0, minus: 0)])) }
    #expect(try stored(after: counts, "counter") == counts[1])
    let (one, two, both) = (Set([Scalar.int(1)]), Set([Scalar.int(2)]), Set([Scalar.int(1), .int(2)]))
    let unions = [one, two].map { CellState(value: .union($0)) }
    #expect(try stored(after: unions, "union") == CellState(value: .union(both)))
    let reset = CellState(generation: 1, value: .max(.int(1)))
    #expect(try stored(after: [CellState(value: .max(.int(9))), reset], "reset") == reset)
  }

  @Test("Every change is in exactly one page")
  func pages() throws {
    var cloud = MemoryContainer(epoch: 1)
    for number in 0..<10 {
      _ = try exchange(
        ExchangeRequest(cursor: .start, cells: [cell(1, CellKey(collection: "progress", key: "\(number)"))], limit: 1),
        &cloud)
    }
    var cursor = Cursor.start
    var seen: [UInt64] = []
    for _ in 0..<20 {
      let response = try exchange(ExchangeRequest(cursor: cursor, limit: 3), &cloud)
      #expect(!response.restart)
      seen += response.changes.map(\.seq)
      cursor = response.cursor
      if !response.more { break }
    }
    #expect(seen == Array(1...10))
    #expect(cursor == cloud.position())
  }

  @Test("A value that changed between two pages, and back because the server was restored, reaches the device")
  func restoredBetweenPages() throws {
    var cloud = MemoryContainer(epoch: 1)
    let keys = (0..<6).map { CellKey(collection: "progress", key: "key \($0)") }
    try _ = exchange(ExchangeRequest(cursor: .start, cells: keys.map { cell(1, $0) }, limit: 10), &cloud)
    let backup = cloud
    let first = try exchange(ExchangeRequest(cursor: .start, limit: 2), &cloud)
    #expect(
      first.more && first.cursor.seq == 2 && first.cursor.ahead == Cursor.Mark(seq: 6, mark: cloud.position().mark))
    // The third value moves from the third seq to the seventh.
    try _ = exchange(ExchangeRequest(cursor: .start, cells: [cell(5, keys[2])], limit: 10), &cloud)
    let second = try exchange(ExchangeRequest(cursor: first.cursor, limit: 2), &cloud)
    #expect(second.more && second.changes.map(\.seq) == [4, 5] && second.cursor.ahead?.seq == 7)
    // Without a restore the next page continues.
    let third = try exchange(ExchangeRequest(cursor: second.cursor, limit: 2), &cloud)
    #expect(!third.more && third.changes.map(\.seq) == [6, 7] && third.cursor == cloud.position())
    cloud = backup
    #expect(try exchange(ExchangeRequest(cursor: second.cursor, limit: 2), &cloud).restart)
    // The first page contained nothing that the restore has changed.
    #expect(try exchange(ExchangeRequest(cursor: first.cursor, limit: 2), &cloud).changes.map(\.seq) == [3, 4])
  }

  @Test("A restore between two pages is noticed even if the server has gone on further than before it")
  func restoredBetweenPagesAndGrown() throws {
    var cloud = MemoryContainer(epoch: 1)
    let keys = (0..<6).map { CellKey(collection: "progress", key: "key \($0)") }
    try _ = exchange(ExchangeRequest(cursor: .start, cells: keys.map { cell(1, $0) }, limit: 10), &cloud)
    let backup = cloud
    // The third value moves behind what the device has fetched, and the restore moves it back.
    try _ = exchange(ExchangeRequest(cursor: .start, cells: [cell(5, keys[2])], limit: 10), &cloud)
    let page = try exchange(ExchangeRequest(cursor: .start, limit: 4), &cloud)
    #expect(page.more && page.changes.map(\.seq) == [1, 2, 4, 5] && page.cursor.ahead?.seq == 7)
    cloud = backup
    var random = SeededGenerator(seed: 99)
    for value in 2...3 {
      let other = ExchangeRequest(cursor: .start, cells: [cell(Int64(value), keys[0])], limit: 10)
      _ = try CloudAcceptance.exchange(other, now: 7, in: &cloud, using: &random)
    }
    #expect(cloud.position().seq == 8)
    #expect(try exchange(ExchangeRequest(cursor: page.cursor, limit: 10), &cloud).restart)
  }

  @Test("A request with a cursor of another history gets a restart, and nothing of it is applied")
  func marks() throws {
    var cloud = MemoryContainer(epoch: 1)
    let here = try exchange(ExchangeRequest(cursor: .start, cells: [cell(1)], limit: 10), &cloud).cursor
    for wrong in [
      Cursor(epoch: here.epoch, seq: here.seq, mark: here.mark &+ 1),
      Cursor(epoch: here.epoch, seq: here.seq + 1, mark: here.mark),
      Cursor(epoch: here.epoch + 1, seq: here.seq, mark: here.mark),
    ] {
      let response = try exchange(ExchangeRequest(cursor: wrong, cells: [cell(5)], limit: 10), &cloud)
      #expect(response.restart)
      #expect(response.outcome == nil)
      #expect(response.cursor == Cursor(epoch: 1, seq: 0, mark: 0))
    }
    #expect(cloud.cell(Self.level)?.update == cell(1))
    #expect(try !exchange(ExchangeRequest(cursor: here, limit: 10), &cloud).restart)
  }

  @Test("A malformed request throws, and leaves the container unchanged")
  func malformed() throws {
    var cloud = MemoryContainer(epoch: 1)
    var bad: [ExchangeRequest] = []
    bad.append(ExchangeRequest(cursor: Cursor(epoch: 0, seq: .max, mark: 0), limit: 1))
    bad.append(ExchangeRequest(cursor: Cursor(epoch: .max, seq: 0, mark: 0), limit: 1))
    bad.append(ExchangeRequest(cursor: .start, limit: 0))
    bad.append(ExchangeRequest(cursor: .start, limit: .min))
    bad.append(ExchangeRequest(cursor: .start, cells: Array(repeating: cell(1), count: 9_000), limit: 1))
    bad.append(ExchangeRequest(cursor: .start, versions: Array(repeating: version(1), count: 2_000), limit: 1))
    var negative = content(Data([1]))
    negative.length = -1
    bad.append(ExchangeRequest(cursor: .start, contents: [negative], limit: 1))
    negative.length = .max
    bad.append(ExchangeRequest(cursor: .start, contents: [negative], limit: 1))
    bad.append(ExchangeRequest(cursor: .start, contents: [content(Data([1]), base: Data([1]))], limit: 1))
    bad.append(ExchangeRequest(cursor: .start, contents: [content(Data(count: 2 << 20))], limit: 1))
    var old = ExchangeRequest(cursor: .start, limit: 1)
    old.protocolVersion = 2
    bad.append(old)
    for request in bad {
      #expect(throws: ExchangeError.self) { try exchange(request, &cloud) }
    }
    #expect(cloud.position().seq == 0)
    #expect(try exchange(ExchangeRequest(cursor: .start, limit: .max), &cloud).outcome == nil)
  }

  @Test("An item that can't be accepted is refused by name, and nothing of its request is applied")
  func refusals() throws {
    var cloud = MemoryContainer(epoch: 1)
    _ = try exchange(
      ExchangeRequest(cursor: .start, versions: [version(40, slot: "other"), version(41)], limit: 1), &cloud)
    let seq = cloud.position().seq
    func key(_ text: String) -> CellKey { CellKey(collection: "progress", key: text) }
    let cells: [CellUpdate] = [
      cell(1, key("")), cell(1, key(String(repeating: "k", count: 257))), cell(1, key("a\u{0}b")),
      cell(1, CellKey(collection: "", key: "k")),
      CellUpdate(key: key("k"), state: CellState(generation: .max, value: .max(.int(1)))),
      CellUpdate(key: key("k"), state: CellState(value: .max(.double(.nan)))),
      CellUpdate(key: key("k"), state: CellState(value: .union([.double(.nan)]))),
      CellUpdate(
        key: key("k"),
        state: CellState(value: .latest(Stamp(caughtUp: true, milliseconds: .min, writer: WriterID(1)), .int(1)))),
      CellUpdate(
        key: key("k"),
        state: CellState(value: .latest(Stamp(caughtUp: true, milliseconds: .max, writer: WriterID(1)), .int(1)))),
      CellUpdate(key: key("k"), state: CellState(value: .max(.data(Data(count: 300_000))))),
    ]
    for bad in cells {
      guard
        case .refused(let refusals) = try exchange(
          ExchangeRequest(cursor: .start, cells: [bad, cell(3)], limit: 1), &cloud
        ).outcome
      else {
        Issue.record("accepted: \(bad)")
        continue
      }
      #expect(refusals.map(\.item) == [ExchangeRules.item(bad.key)])
    }
    var versions: [VersionRecord] = [
      version(1, over: [1]), version(2, over: [40]), version(3, slot: ""), version(4, slot: "a\nb"),
    ]
    var bad = version(5)
    bad.length = -1
    versions.append(bad)
    bad = version(6)
    bad.length = .max
    versions.append(bad)
    bad = version(7)
    bad.tombstone = true
    bad.length = 4
    versions.append(bad)
    bad = version(8)
    bad.savedAtMilliseconds = .min
    versions.append(bad)
    bad = version(9)
    bad.metadata.progress = .nan
    versions.append(bad)
    bad = version(10)
    bad.metadata.thumbnail = Data(count: 70_000)
    versions.append(bad)
    bad = version(41)
    bad.length = 9
    versions.append(bad)
    bad = version(11)
    bad.covers = (0..<70_000).map { ResolutionTests.id(100 + $0) }
    versions.append(bad)
    for bad in versions {
      guard
        case .refused(let refusals) = try exchange(
          ExchangeRequest(cursor: .start, cells: [cell(3)], versions: [bad], limit: 1), &cloud
        )
        .outcome
      else {
        Issue.record("accepted: \(bad)")
        continue
      }
      #expect(refusals.map(\.item) == [ExchangeRules.item(bad.id)])
    }
    #expect(cloud.position().seq == seq)
    #expect(cloud.cell(Self.level) == nil)
  }

  @Test("A set that several devices fill is refused beyond its limit")
  func joinedSizeIsLimited() throws {
    var cloud = MemoryContainer(epoch: 1)
    for number in 0..<4 {
      let state = CellState(value: .union([.data(Data([UInt8(number)]) + Data(count: 100_000))]))
      let outcome = try exchange(
        ExchangeRequest(cursor: .start, cells: [CellUpdate(key: Self.level, state: state)], limit: 10), &cloud
      )
      .outcome
      if number < 2 {
        #expect(outcome == .accepted(seq: UInt64(number + 1)))
      } else if case .refused = outcome {
      } else {
        Issue.record("accepted: \(String(describing: outcome))")
      }
    }
  }

  @Test("Contents may come in any order: each is stored after the one that it is based on")
  func contentsInAnyOrder() throws {
    let count = 1_000
    let chain = (0..<count).map { number in
      content(Data("\(number)".utf8), base: number == 0 ? nil : Data("\(number - 1)".utf8))
    }
    var random = SeededGenerator(seed: 8)
    for contents in [chain, chain.reversed(), chain.shuffled(using: &random)] {
      var cloud = MemoryContainer(epoch: 1)
      let save = version(1, contents: [Data("\(count - 1)".utf8)])
      let response = try exchange(
        ExchangeRequest(cursor: .start, versions: [save], contents: contents, limit: 10), &cloud)
      guard case .accepted = response.outcome else {
        Issue.record("\(response.outcome)")
        continue
      }
      #expect(chain.allSatisfy { cloud.hasContent($0.hash) })
    }
  }
}
