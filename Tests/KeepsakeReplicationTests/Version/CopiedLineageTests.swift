import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A store that is copied while it is open: the copy sends what the original replaces before it was ever sent.
@Suite struct CopiedLineageTests {
  private struct Story {
    var lab: Lab
    /// What the copy sent, and what the original made of it in two steps, of which the first never left.
    let first: VersionRecord
    let middle: VersionRecord
    let last: VersionRecord
    /// What a third device made of the first.
    let other: VersionRecord
  }

  /// The original is device 0, the copy 1, and 2 another device of the player.
  private func story() throws -> Story {
    var lab = try Lab(devices: 3)
    let first = try lab.save(0, "first", over: .everyHead)
    try copyOriginal(in: &lab)
    let middle = try lab.save(0, "middle", over: .versions([first.id]))
    let last = try lab.save(0, "last", over: .versions([middle.id]))
    try lab.settle(1)
    try lab.settle(2)
    let other = try lab.save(2, "other", over: .versions([first.id]))
    try lab.settle(2)
    return Story(lab: lab, first: first, middle: middle, last: last, other: other)
  }

  private func copyOriginal(in lab: inout Lab) throws {
    var copy = lab.devices[0].storage
    try DeviceCommit.opened(in: &copy, using: &lab.random)
    lab.devices[1].storage = copy
  }

  @Test(
    "it says of its save what that comes from, as soon as it hears that others have it, and all find the same ancestor")
  func tellsWhatCameBack() throws {
    var story = try story()
    #expect(story.last.covers == [story.middle.id], "what never left is passed over")
    for _ in 0..<2 {
      for index in 0..<3 { try story.lab.settle(index) }
    }
    for device in story.lab.devices {
      let view = try Resolution.view(of: "main", in: device.storage)
      #expect(view.isConflict && view.related && view.ancestors == [story.first.id])
      #expect(device.storage.version(story.last.id)?.record.covers == [story.first.id, story.middle.id].sorted())
    }
    // Nothing is said twice.
    let seq = story.lab.cloud.position().seq
    for index in 0..<3 { try story.lab.settle(index) }
    #expect(story.lab.cloud.position().seq == seq)
  }

  @Test("of two heads the one that comes from it says so, whichever is named first")
  func tellsTheRightHead() throws {
    for isFirst in [true, false] {
      var lab = try Lab(devices: 2)
      func save(_ id: UInt64, over parents: [UInt64], _ index: Int) throws {
        let hash = lab.devices[index].storage.addContent(Data("save \(id)".utf8))
        let draft = SaveDraft(
          id: VersionID(high: 0, low: id), slot: "main",
          parents: .versions(parents.map { VersionID(high: 0, low: $0) }), contents: [hash],
          length: "save \(id)".utf8.count, savedAtMilliseconds: 1)
        try lab.commit(index, CommitDraft(saves: [draft]))
      }
      let (mine, strange): (UInt64, UInt64) = isFirst ? (10, 20) : (20, 10)
      try save(1, over: [], 0)
      try copyOriginal(in: &lab)
      try save(2, over: [1], 0)
      try save(mine, over: [2], 0)
      try save(strange, over: [], 0)
      try lab.settle(1)
      try lab.settle(0)
      let covers = { (id: UInt64) in
        lab.devices[0].storage.version(VersionID(high: 0, low: id))?.record.covers.map(\.low)
      }
      #expect(covers(mine) == [1, 2])
      #expect(covers(strange) == [])
    }
  }

  @Test("what it says of a save that is under way goes behind it")
  func tellsOfWhatIsUnderWay() throws {
    var story = try story()
    try story.lab.step(0, .started)
    let request = story.lab.takeRequest(0)
    let exchange = try #require(request)
    let answered = try story.lab.answer(to: exchange, cloud: &story.lab.cloud, using: &story.lab.random)
    let answer = try #require(answered)
    // Before the answer is here the save learns more, as it does from what an event brings.
    let stored = story.lab.devices[0].storage.version(story.last.id)
    var last = try #require(stored)
    last.record.covers = [story.first.id, story.middle.id].sorted()
    story.lab.devices[0].storage.putVersion(last)
    story.lab.devices[0].storage.appendToOutbox(OutboxGroup(versions: [story.last.id]))
    try story.lab.step(0, answer)
    try story.lab.settle(0)
    #expect(story.lab.cloud.version(story.last.id)?.record.covers == last.record.covers)
    #expect(story.lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("until others know it, the original doesn't go by what only it knows")
  func goesByWhatOthersKnow() throws {
    let story = try story()
    var (original, other) = (story.lab.devices[0].storage, story.lab.devices[2].storage)
    // The two saves meet on both devices before the original's says more of itself than that it replaced what nobody
    // has.
    for record in [story.first, story.other] {
      original.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
    }
    for id in story.other.covers { original.markCovered(id) }
    let last = StoredVersion(record: story.last, acknowledged: true, offered: true)
    original.putVersion(last)
    other.putVersion(last)
    let views = try [original, other].map { try Resolution.view(of: "main", in: $0) }
    #expect(views[0].isConflict && views[0] == views[1])
    #expect(try Resolution.needed(by: views[0].parents, in: original).contains(story.middle.id) == false)
  }
}
