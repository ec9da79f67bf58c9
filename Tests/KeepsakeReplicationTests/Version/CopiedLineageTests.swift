import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A store is copied while it is open, and the copy sends a save that the original replaced before it was ever sent.
@Suite struct CopiedLineageTests {
  private struct Story {
    var lab: Lab
    /// The save that the copy sent, and the two that the original made from it one after the other; the first of those
    /// was never sent.
    let first: VersionRecord
    let middle: VersionRecord
    let last: VersionRecord
    /// The save that a third device made from `first`.
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

  @Test("the original's save covers the copied save once others have it, and all devices find the same ancestor")
  func tellsWhatCameBack() throws {
    var story = try story()
    #expect(story.last.covers == [story.middle.id], "the first save was never sent, so it isn't covered")
    for _ in 0..<2 {
      for index in 0..<3 { try story.lab.settle(index) }
    }
    for device in story.lab.devices {
      let view = try Resolution.view(of: "main", in: device.storage)
      #expect(view.isConflict && view.related && view.ancestors == [story.first.id])
      #expect(device.storage.version(story.last.id)?.record.covers == [story.first.id, story.middle.id].sorted())
    }
    // Nothing is sent again.
    let seq = story.lab.cloud.position().seq
    for index in 0..<3 { try story.lab.settle(index) }
    #expect(story.lab.cloud.position().seq == seq)
  }

  @Test("of two heads only the one that was made from the copied save covers it, whichever id sorts first")
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

  @Test("covers that are added to a save while it is being sent are sent after it")
  func tellsOfWhatIsUnderWay() throws {
    var story = try story()
    try story.lab.step(0, .started)
    let request = story.lab.takeRequest(0)
    let exchange = try #require(request)
    let answered = try story.lab.answer(to: exchange, cloud: &story.lab.cloud, using: &story.lab.random)
    let answer = try #require(answered)
    // Before the response arrives the save covers more, as it would after an event.
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

  @Test("covers that are added to a save are sent even if an event brings the save as the cloud has it before")
  func tellsWhatTheCloudLacks() throws {
    var lab = try Lab(devices: 2)
    let save = try lab.save(0, "save", over: .everyHead)
    try lab.settle(0)
    try lab.settle(1)
    // Each device adds something that the save covers, as for a version that came back after it was replaced there.
    for index in 0..<2 {
      let stored = lab.devices[index].storage.version(save.id)
      var version = try #require(stored)
      version.record.covers = [VersionID(high: 0, low: UInt64(index))]
      version.acknowledged = false
      lab.devices[index].storage.putVersion(version)
      lab.devices[index].storage.appendToOutbox(OutboxGroup(versions: [save.id]))
    }
    let before = lab.cloud.position()
    try lab.settle(0)
    let step = try CloudAcceptance.step(since: before, in: lab.cloud)
    try lab.settle(1, .announced(CloudEvent(seq: lab.cloud.position().seq, step: step)))
    #expect(lab.devices[1].exchanges > 0)
    try lab.settle(1)
    #expect(lab.cloud.version(save.id)?.record.covers.map(\.low) == [0, 1])
    #expect(lab.devices[1].storage.version(save.id)?.acknowledged == true)
  }

  @Test("until others know what the original's save was made from, the original shows the same conflict as they do")
  func goesByWhatOthersKnow() throws {
    let story = try story()
    var (original, other) = (story.lab.devices[0].storage, story.lab.devices[2].storage)
    // Both devices have both saves, while the original's save covers only a version that no other device has.
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
