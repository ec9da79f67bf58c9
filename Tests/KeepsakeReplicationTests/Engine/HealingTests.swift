import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Contents that are damaged in the cloud.
@Suite struct HealingTests {
  private func damaged(_ lab: Lab, _ index: Int) -> [ContentHash] {
    lab.devices[index].notifications.compactMap { if case .damaged(let hash) = $0 { hash } else { nil } }
  }

  @Test("a save that is damaged in the cloud reaches a new device intact once the device that made it has synced")
  func heals() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    let save = try lab.save(0, "a garden", over: .everyHead)
    try lab.settle(0)
    let hash = save.contents[0]
    lab.cloud.damageContent(hash)
    try lab.settle(1)
    // The save is shown without its content, and the cloud knows that the content is damaged.
    #expect(damaged(lab, 1) == [hash] && !lab.devices[1].storage.hasContent(hash))
    #expect(lab.cloud.suspectContents() == [hash] && lab.cloud.content(hash) != nil)

    try lab.settle(0, .woke)
    #expect(lab.cloud.suspectContents().isEmpty && lab.cloud.content(hash)?.base == nil)
    #expect(lab.requests.contains { $0.damaged == [hash] })
    try lab.settle(1, .announced(CloudEvent(seq: lab.cloud.position().seq)))
    #expect(lab.devices[1].storage.content(hash) == Data("a garden".utf8))
    // Nothing is left to report or to request.
    let requests = lab.requests.count
    for index in [0, 1] { try lab.settle(index, .woke) }
    #expect(lab.requests[requests...].allSatisfy { $0.damaged.isEmpty })
    #expect(lab.cloud.usedBytes() == lab.cloud.recountedBytes())
  }

  @Test("a damaged base is uploaded again, and saves that are deltas of it arrive intact")
  func healsBases() throws {
    let tests = CloudAcceptanceTests()
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    let old = try lab.save(0, "first", over: .everyHead)
    try lab.settle(0)
    let new = try lab.save(0, "second", over: .everyHead)
    try lab.settle(0)
    // As the server has it, whatever the device chose: a delta against the first.
    lab.cloud.suspectContent(new.contents[0])
    lab.cloud.putContent(tests.content(Data("second".utf8), base: Data("first".utf8)))
    lab.cloud.damageContent(old.contents[0])
    try lab.settle(1)
    #expect(lab.cloud.suspectContents() == old.contents)
    try lab.settle(0, .woke)
    #expect(lab.cloud.suspectContents().isEmpty)
    try lab.settle(1, .announced(CloudEvent(seq: lab.cloud.position().seq)))
    #expect(lab.devices[1].storage.content(new.contents[0]) == Data("second".utf8))
  }

  @Test("a damaged content serves as no base, and is only replaced by one that is sent in full")
  func onlyInFull() throws {
    var cloud = MemoryContainer(epoch: 1)
    let tests = CloudAcceptanceTests()
    let (base, leaning) = (Data("base".utf8), Data("leaning".utf8))
    _ = try tests.exchange(
      ExchangeRequest(
        cursor: .start, versions: [tests.version(1, contents: [base, leaning])],
        contents: [tests.content(base), tests.content(leaning, base: base)], limit: 9), &cloud)
    let unknown = ContentHash(of: Data("unknown".utf8))
    _ = try tests.exchange(
      ExchangeRequest(cursor: .start, limit: 9, damaged: [ContentHash(of: base), unknown]), &cloud)
    #expect(cloud.suspectContents() == [ContentHash(of: base)])
    // A cycle: its new base is a delta of it.
    let circle = try tests.exchange(
      ExchangeRequest(
        cursor: .start, versions: [tests.version(2, over: [1], contents: [base])],
        contents: [tests.content(base, base: leaning)], limit: 9),
      &cloud)
    #expect(circle.outcome == .missing([ContentHash(of: base)]) && circle.wanted == [ContentHash(of: base)])
    let full = try tests.exchange(
      ExchangeRequest(
        cursor: .start, versions: [tests.version(2, over: [1], contents: [base])], contents: [tests.content(base)],
        limit: 9), &cloud)
    #expect(full.wanted.isEmpty && cloud.hasContent(ContentHash(of: base)))
  }

  @Test("a cloud that asks for the same content again and again gets it once in ten minutes")
  func bounded() throws {
    var lab = try Lab()
    try lab.settle(0)
    let save = try lab.save(0, "a garden", over: .everyHead)
    try lab.settle(0)
    var uploads = 0
    for _ in 0..<30 {
      lab.now += 60_000
      lab.cloud.suspectContent(save.contents[0])
      try lab.step(0, .woke)
      for _ in 0..<20 {
        guard let effect = lab.takeRequest(0) else { break }
        if case .upload = effect { uploads += 1 }
        if let event = try lab.answer(to: effect, cloud: &lab.cloud, using: &lab.random) { try lab.step(0, event) }
      }
    }
    #expect(uploads == 3)
  }
}
