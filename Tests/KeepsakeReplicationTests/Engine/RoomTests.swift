import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A player whose quota in the cloud is used up.
@Suite struct RoomTests {
  private let first = String(repeating: "a", count: 6_000)
  private let second = String(repeating: "b", count: 3_000)

  /// A device with one save in the cloud, and room for half of another one.
  private func tightLab(devices: Int = 1, inlineBytes: Int = 256 * 1024) throws -> Lab {
    var options = DeviceEngine.Options()
    options.inlineBytes = inlineBytes
    var lab = try Lab(devices: devices, options: options)
    for index in lab.devices.indices { try lab.settle(index) }
    try lab.save(0, first, slot: "old", over: .everyHead)
    try lab.settle(0)
    lab.quota = lab.cloud.usedBytes() + 1_500
    return lab
  }

  private func refusals(_ lab: Lab, _ index: Int = 0) -> [EngineRefusal] { lab.devices[index].engine.status.refusals }

  private func told(_ lab: Lab, _ index: Int = 0) -> Int {
    lab.devices[index].notifications.reduce(0) {
      if case .refused(let refusals) = $1 { $0 + refusals.count } else { $0 }
    }
  }

  @Test(
    "a save beyond the quota is reported with its numbers, values are still sent, and a delete makes it fit",
    arguments: [256 * 1024, 0])
  func deleteMakesRoom(inlineBytes: Int) throws {
    var lab = try tightLab(inlineBytes: inlineBytes)
    let save = try lab.save(0, second, slot: "new", over: .everyHead)
    try lab.commit(0, Lab.level(7))
    try lab.settle(0, .committed)
    #expect(lab.cloud.version(save.id) == nil && !lab.cloud.hasContent(save.contents[0]))
    #expect(lab.cloud.cell(CellKey(collection: "progress", key: "level"))?.update.state.value == .max(.int(7)))
    let refused = try #require(refusals(lab).first)
    #expect(refusals(lab).count == 1 && refused.slot == "new" && refused.refusal.reason == .quota)
    let quota = try #require(refused.refusal.quota)
    #expect(
      quota.limit == lab.quota && quota.used <= quota.limit && quota.needed >= 3_000
        && quota.used + quota.needed > quota.limit)
    #expect(told(lab) == 1)

    try lab.save(0, "", slot: "old", over: .everyHead, tombstone: true)
    try lab.settle(0, .committed)
    #expect(!lab.cloud.hasContent(ContentHash(of: Data(first.utf8))), "the delete frees nothing")
    #expect(lab.cloud.heads(of: "new") == [save.id] && lab.cloud.hasContent(save.contents[0]))
    #expect(refusals(lab).isEmpty && lab.devices[0].storage.outboxCount() == 0 && told(lab) == 1)
  }

  @Test(
    "a delete by another device makes room as well, however it is announced, and the refused save is sent at once",
    arguments: [false, true])
  func otherDeviceDeletes(isInEvent: Bool) throws {
    var lab = try tightLab(devices: 2)
    let save = try lab.save(0, second, slot: "new", over: .everyHead)
    try lab.settle(0, .committed)
    #expect(lab.cloud.version(save.id) == nil)
    try lab.settle(1)
    try lab.settle(0, .announced(CloudEvent(seq: lab.cloud.position().seq)))
    let before = lab.cloud.position()
    #expect(lab.devices[0].storage.facts().cursor == before)
    try lab.save(1, "", slot: "old", over: .everyHead, tombstone: true)
    try lab.settle(1, .committed)
    // Not a minute has passed: only what the cloud says can be the reason.
    let step = try isInEvent ? CloudAcceptance.step(since: before, in: lab.cloud) : nil
    #expect((step != nil) == isInEvent)
    try lab.settle(0, .announced(CloudEvent(seq: lab.cloud.position().seq, step: step)))
    #expect(lab.cloud.heads(of: "new") == [save.id] && refusals(lab).isEmpty)
  }

  @Test("a save refused for lack of room is retried every ten minutes, so that a raised quota is noticed")
  func operatorRaises() throws {
    var lab = try tightLab()
    let save = try lab.save(0, second, slot: "new", over: .everyHead)
    try lab.settle(0, .committed)
    let sent = { (lab: Lab) in lab.requests.count { $0.versions.contains { $0.id == save.id } } }
    let before = sent(lab)
    for _ in 0..<9 {
      lab.now += 60_000
      try lab.settle(0, .woke)
    }
    #expect(sent(lab) == before, "it is retried although nothing has changed")
    lab.now += 61_000
    try lab.settle(0, .woke)
    #expect(sent(lab) == before + 1 && refusals(lab).count == 1 && told(lab) == 1)
    // A clock that is turned back must not put it off for years.
    lab.now -= 86_400_000
    try lab.settle(0, .woke)
    #expect(sent(lab) == before + 2)
    lab.now += 601_000
    lab.quota = nil
    try lab.settle(0, .woke)
    #expect(lab.cloud.heads(of: "new") == [save.id] && refusals(lab).isEmpty)
  }

  @Test("of two saves that don't fit together the one that fits alone is sent")
  func oneByOne() throws {
    var lab = try tightLab()
    let large = try lab.save(0, second, slot: "large", over: .everyHead)
    try lab.settle(0, .committed)
    let small = try lab.save(0, "tiny", slot: "small", over: .everyHead)
    lab.quota = lab.cloud.usedBytes() + 1_000
    lab.now += 700_000
    try lab.settle(0, .woke)
    #expect(lab.cloud.heads(of: "small") == [small.id] && lab.cloud.version(large.id) == nil)
    #expect(refusals(lab).map(\.slot) == ["large"])
  }

  @Test("a delete also frees bases, but keeps what another slot or a remaining save needs")
  func whatADeleteFrees() throws {
    var cloud = MemoryContainer(epoch: 1)
    let tests = CloudAcceptanceTests()
    let (base, delta, shared) = (Data("base".utf8), Data("delta".utf8), Data("shared".utf8))
    _ = try tests.exchange(
      ExchangeRequest(
        cursor: .start, versions: [tests.version(1, contents: [base, shared], slot: "a")],
        contents: [tests.content(base), tests.content(shared)], limit: 9), &cloud)
    _ = try tests.exchange(
      ExchangeRequest(
        cursor: .start, versions: [tests.version(2, over: [1], contents: [delta], slot: "a")],
        contents: [tests.content(delta, base: base)],
        limit: 9), &cloud)
    _ = try tests.exchange(
      ExchangeRequest(cursor: .start, versions: [tests.version(3, contents: [shared], slot: "b")], limit: 9), &cloud)
    func delete(_ number: UInt64, over covers: [UInt64]) throws {
      var tombstone = tests.version(number, over: covers, slot: "a")
      tombstone.tombstone = true
      _ = try tests.exchange(ExchangeRequest(cursor: .start, versions: [tombstone], limit: 9), &cloud)
    }
    // Another device knew only the first save: its delete leaves the second.
    try delete(4, over: [1])
    #expect([base, delta, shared].allSatisfy { cloud.hasContent(ContentHash(of: $0)) })
    try delete(5, over: [2, 4])
    #expect(!cloud.hasContent(ContentHash(of: base)) && !cloud.hasContent(ContentHash(of: delta)))
    #expect(cloud.hasContent(ContentHash(of: shared)))
    #expect(cloud.usedBytes() == cloud.recountedBytes())
  }

  /// Sends saves with a content each to a cloud, one after the other: each number with the numbers that it replaces.
  private func cloud(_ saves: [(number: UInt64, covers: [UInt64])]) throws -> MemoryContainer {
    let tests = CloudAcceptanceTests()
    var cloud = MemoryContainer(epoch: 1)
    for save in saves {
      let request = ExchangeRequest(
        cursor: .start, versions: [tests.version(save.number, over: save.covers, contents: [bytes(save.number)])],
        contents: [tests.content(bytes(save.number))], limit: 9)
      _ = try tests.exchange(request, &cloud)
    }
    return cloud
  }

  private func bytes(_ number: UInt64) -> Data { Data(repeating: UInt8(number), count: 1_000) }

  private func has(_ number: UInt64, _ cloud: MemoryContainer) -> Bool {
    cloud.hasContent(ContentHash(of: bytes(number)))
  }

  @Test("beside a save that a delete didn't know of, what the save was made from stays, too")
  func deleteBesideASave() throws {
    let tests = CloudAcceptanceTests()
    var cloud = try cloud([(1, []), (2, [1])])
    var tombstone = tests.version(3, over: [1])
    tombstone.tombstone = true
    _ = try tests.exchange(ExchangeRequest(cursor: .start, versions: [tombstone], limit: 9), &cloud)
    #expect(cloud.heads(of: "main") == [2, 3].map(ResolutionTests.id))
    // Another device's save of the same may still arrive, and is merged from it.
    #expect(has(1, cloud) && has(2, cloud))
  }

  @Test("replaced saves make room for new ones, except for those that a conflict is merged from, until it is resolved")
  func conflictsKeepTheirAncestors() throws {
    let saves: [(number: UInt64, covers: [UInt64])] = [(1, []), (2, [1]), (3, [2]), (4, [2])]
    var cloud = try cloud(saves)
    // One save has to go, and only the oldest may.
    let quota = cloud.usedBytes()
    let record = Int64(try #require(cloud.version(ResolutionTests.id(1))).record.size)
    #expect(try CloudAcceptance.shortage(for: 1_000, quota, now: 0, in: &cloud) == nil)
    #expect(cloud.version(ResolutionTests.id(1)) == nil && cloud.isCovered(ResolutionTests.id(1)))
    #expect(try CloudAcceptance.shortage(for: 1_000 + record, quota, now: 0, in: &cloud) == nil)
    #expect(!has(1, cloud) && has(2, cloud) && has(3, cloud) && has(4, cloud))
    #expect(try CloudAcceptance.shortage(for: 1_001 + record, quota, now: 0, in: &cloud) != nil)
    #expect(has(2, cloud))
    cloud = try self.cloud(saves + [(5, [3, 4])])
    let used = cloud.usedBytes()
    #expect(try CloudAcceptance.shortage(for: 4_000, used, now: 0, in: &cloud) == nil)
    #expect((1...4).allSatisfy { !has($0, cloud) } && has(5, cloud))
    #expect(cloud.heads(of: "main") == [ResolutionTests.id(5)] && cloud.usedBytes() == cloud.recountedBytes())
  }

  @Test("contents without a version don't use up the quota, and senseless numbers neither trap nor overflow")
  func hostile() throws {
    var cloud = MemoryContainer(epoch: 1)
    let tests = CloudAcceptanceTests()
    var random = SeededGenerator(seed: 4)
    let stray = Data(repeating: 7, count: 5_000)
    let request = ExchangeRequest(cursor: .start, cells: [tests.cell(1)], contents: [tests.content(stray)], limit: 9)
    let answer = try CloudAcceptance.exchange(request, now: .min, quota: 1_000, in: &cloud, using: &random)
    #expect(answer.outcome == .accepted(seq: 1) && !cloud.hasContent(ContentHash(of: stray)))
    #expect(
      QuotaUse(limit: .max, used: .max).shortage(for: .max) != nil
        && QuotaUse(limit: 10, used: .min).shortage(for: 5) == nil)
    let many = ExchangeRequest(
      cursor: .start, limit: 9, damaged: (0..<65).map { ContentHash(of: Data([$0])) })
    #expect(throws: ExchangeError.self) { try CloudAcceptance.exchange(many, now: 0, in: &cloud, using: &random) }
  }

  @Test("values and deletes are accepted even if no byte of the quota is left")
  func nothingLeft() throws {
    var lab = try tightLab()
    lab.quota = 0
    try lab.commit(0, Lab.level(7))
    let delete = try lab.save(0, "", slot: "old", over: .everyHead, tombstone: true)
    try lab.settle(0, .committed)
    #expect(lab.cloud.cell(CellKey(collection: "progress", key: "level"))?.update.state.value == .max(.int(7)))
    #expect(lab.cloud.heads(of: "old") == [delete.id] && !lab.cloud.hasContent(ContentHash(of: Data(first.utf8))))
    #expect(refusals(lab).isEmpty && told(lab) == 0)
  }
}
