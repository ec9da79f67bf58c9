import Foundation
import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// Which contents are downloaded, and what becomes of those that arrive.
struct DownloadPlannerTests {
  private func planner() -> DownloadPlanner { DownloadPlanner(DeviceEngine.Options()) }

  @Test("contents of staged heads are needed, but neither those on the device nor those of replaced versions")
  func staged() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    let here = storage.addContent(Samples.bytes(9))
    storage.stage([
      Samples.change(Samples.record(1, contents: [Samples.hash(1)])),
      Samples.change(Samples.record(2, covers: [1], contents: [Samples.hash(2), here])),
    ])
    let missing = try planner.missing(in: storage)
    #expect(missing.map(\.hash) == [Samples.hash(2)])
    #expect(missing.map(\.version) == [Samples.id(2)] && planner.stagedSlots == ["main"])
    #expect(planner.isWaiting && !planner.isSatisfied)
  }

  @Test("both sides of a conflict are needed, and the ancestor only for a better merge: its loss isn't reported")
  func conflicts() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    planner.rules = DownloadRules(largest: 1)
    storage.keep(Samples.record(1, contents: [Samples.hash(1)]), isAcknowledged: true)
    storage.keep(Samples.record(2, covers: [1]), isAcknowledged: true)
    storage.stage([Samples.change(Samples.record(3, covers: [1], contents: [Samples.hash(3)]))])
    #expect(try planner.missing(in: storage).map(\.hash) == [Samples.hash(3), Samples.hash(1)])
    let lost = try planner.received(Samples.hash(1), nil, in: &storage)
    #expect(lost.givenUp.isEmpty && !lost.isExchangeDue)
    #expect(try planner.missing(in: storage).map(\.hash) == [Samples.hash(3)])
  }

  @Test("a large save of a slot that isn't on the device is left in the cloud until the game asks for the slot")
  func rules() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    planner.rules = DownloadRules(largest: 99)
    let record = Samples.record(1, contents: [Samples.hash(1)], length: 100)
    storage.stage([Samples.change(record)])
    #expect(try planner.missing(in: storage).isEmpty && planner.isSatisfied)
    #expect(try planner.versionsWithoutContents(storage.staged(), in: storage) == [Samples.id(1)])
    planner.rules.asked = ["main"]
    #expect(try planner.isComing("main", downloading: [], in: storage))
    #expect(try planner.missing(in: storage).map(\.hash) == [Samples.hash(1)])
  }

  @Test("a download that the game asks for holds up nothing else, and is finished when all of it has arrived")
  func notDownloaded() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    planner.rules = DownloadRules(largest: 99)
    storage.keep(Samples.record(1, contents: [Samples.hash(1)]), isAcknowledged: true)
    storage.setNotDownloaded(true, Samples.id(1))
    #expect(try planner.missing(in: storage).isEmpty && planner.hasNotDownloaded)
    planner.rules.asked = ["main"]
    #expect(try planner.missing(in: storage).map(\.isOnRequest) == [true])
    #expect(planner.isSatisfied)
    #expect(
      try planner.isComing("main", downloading: [], in: storage)
        && !planner.isComing("other", downloading: [], in: storage))
    #expect(try planner.finishDeferred(in: &storage).isEmpty)
    _ = try planner.received(Samples.hash(1), Samples.content(1), in: &storage)
    #expect(try planner.finishDeferred(in: &storage) == ["main"])
    #expect(storage.notDownloadedVersions().isEmpty && !planner.hasNotDownloaded)
  }

  @Test("what is needed is worked out only once, until it is invalidated")
  func caching() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    #expect(try planner.missing(in: storage).isEmpty)
    storage.stage([Samples.change(Samples.record(1, contents: [Samples.hash(1)]))])
    #expect(try planner.missing(in: storage).isEmpty)
    planner.invalidate()
    #expect(try planner.missing(in: storage).count == 1)
    #expect(planner.lengthInAll(of: Samples.id(1)) == 100)
  }

  @Test("a base is downloaded before other contents, and completes those that waited for it")
  func bases() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    storage.stage([
      Samples.change(Samples.record(1, contents: [Samples.hash(1)])),
      Samples.change(Samples.record(2, slot: "other", contents: [Samples.hash(2)])),
    ])
    _ = try planner.missing(in: storage)
    #expect(planner.lengthInAll(of: Samples.id(1)) == 100)
    _ = try planner.received(Samples.hash(1), Samples.content(1, base: 7), in: &storage)
    #expect(!storage.hasContent(Samples.hash(1)))
    #expect(try planner.wanted(in: storage, downloading: []).map(\.hash) == [Samples.hash(7), Samples.hash(2)])
    #expect(try planner.wanted(in: storage, downloading: [Samples.hash(7)]).map(\.hash) == [Samples.hash(2)])
    #expect(try planner.wantedHashes(in: storage) == [Samples.hash(1), Samples.hash(2), Samples.hash(7)])
    _ = try planner.received(Samples.hash(7), Samples.content(7), in: &storage)
    #expect(storage.hasContent(Samples.hash(1)) && storage.cloudDepth(of: Samples.hash(1)) == 1 && planner.held.isEmpty)
  }

  @Test("a base that arrived in another way completes the contents that waited for it, too")
  func takeHeld() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    var losses = DownloadLosses()
    try planner.take(Samples.content(1, base: 7), &losses, in: &storage)
    _ = storage.addContent(Samples.bytes(7))
    try planner.takeHeld(&losses, in: &storage)
    #expect(storage.hasContent(Samples.hash(1)) && planner.held.isEmpty && losses.givenUp.isEmpty)
  }

  @Test("a content that repeatedly arrives damaged is given up and reported, until a change names it again")
  func damage() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    storage.stage([Samples.change(Samples.record(1, contents: [Samples.hash(1)]))])
    _ = try planner.missing(in: storage)
    var damaged = Samples.content(1)
    damaged.bytes = Data([0])
    for _ in 1..<DownloadPlanner.maximumDamaged {
      let losses = try planner.received(Samples.hash(1), damaged, in: &storage)
      #expect(losses.givenUp.isEmpty && losses.damaged.isEmpty)
    }
    let losses = try planner.received(Samples.hash(1), damaged, in: &storage)
    #expect(losses.givenUp == [Samples.hash(1)] && losses.damaged == [Samples.hash(1)])
    #expect(try planner.missing(in: storage).isEmpty)
    // A change that names it once more allows another attempt.
    planner.reconsider(storage.staged())
    planner.invalidate()
    #expect(try planner.missing(in: storage).count == 1)
  }

  @Test("a content that is gone isn't requested until an exchange has looked for it, and is given up in the end")
  func gone() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    storage.stage([Samples.change(Samples.record(1, contents: [Samples.hash(1)]))])
    _ = try planner.missing(in: storage)
    for number in 1...DownloadPlanner.maximumGone {
      let losses = try planner.received(Samples.hash(1), nil, in: &storage)
      #expect(losses.isExchangeDue && losses.givenUp.isEmpty == (number < DownloadPlanner.maximumGone))
      #expect(try planner.wanted(in: storage, downloading: []).isEmpty)
      planner.looked(for: [Samples.hash(1)])
    }
    storage.keep(Samples.record(1, contents: [Samples.hash(1)]))
    #expect(try planner.lacksContents(in: storage))
    planner.reset()
    #expect(try planner.missing(in: storage).count == 1)
  }

  @Test("a content that wasn't requested isn't kept")
  func unwanted() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    _ = try planner.missing(in: storage)
    _ = try planner.received(Samples.hash(1), Samples.content(1), in: &storage)
    #expect(!storage.hasContent(Samples.hash(1)))
  }

  @Test("both sides of a conflict are downloaded, however large they are, even if neither is on the device")
  func largeConflict() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    planner.rules = DownloadRules(largest: 1)
    storage.keep(Samples.record(1, contents: [Samples.hash(1)]), isAcknowledged: true)
    storage.setNotDownloaded(true, Samples.id(1))
    #expect(try planner.missing(in: storage).isEmpty)
    storage.stage([Samples.change(Samples.record(2, contents: [Samples.hash(2)]))])
    planner.invalidate()
    #expect(try Set(planner.missing(in: storage).map(\.hash)) == [Samples.hash(1), Samples.hash(2)])
  }

  @Test("a save of exactly the allowed size is downloaded, and so is a larger one that replaces one on the device")
  func notTooLarge() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    planner.rules = DownloadRules(largest: 99)
    let here = storage.addContent(Samples.bytes(9))
    storage.keep(Samples.record(1, contents: [here]), isAcknowledged: true)
    storage.stage([
      Samples.change(Samples.record(2, covers: [1], contents: [Samples.hash(2)], length: 100)),
      Samples.change(Samples.record(3, slot: "other", contents: [Samples.hash(3)], length: 99)),
    ])
    #expect(try planner.missing(in: storage).map(\.hash) == [Samples.hash(2), Samples.hash(3)])
  }

  @Test("if the game asks for a slot, its contents that were given up are tried again")
  func askedAgain() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    storage.stage([Samples.change(Samples.record(1, contents: [Samples.hash(1)]))])
    _ = try planner.missing(in: storage)
    for _ in 1...DownloadPlanner.maximumGone { _ = try planner.received(Samples.hash(1), nil, in: &storage) }
    #expect(try planner.missing(in: storage).isEmpty)
    planner.rules.asked = ["main"]
    #expect(try planner.missing(in: storage).map(\.hash) == [Samples.hash(1)])
  }

  @Test("a waiting content is dropped with the version that needs it, and when syncing restarts with another cloud")
  func dropsHeld() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    storage.stage([Samples.change(Samples.record(1, contents: [Samples.hash(1)]))])
    _ = try planner.missing(in: storage)
    _ = try planner.received(Samples.hash(1), Samples.content(1, base: 7), in: &storage)
    var other = planner
    other.restart()
    #expect(!planner.held.isEmpty && other.held.isEmpty)
    storage.clearStaged()
    planner.invalidate()
    #expect(try planner.missing(in: storage).isEmpty && planner.held.isEmpty)
  }

  @Test("a content other than the requested one counts as damaged, and isn't kept")
  func another() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    storage.stage([Samples.change(Samples.record(1, contents: [Samples.hash(1)]))])
    _ = try planner.missing(in: storage)
    for number in 1...DownloadPlanner.maximumDamaged {
      let losses = try planner.received(Samples.hash(1), Samples.content(2), in: &storage)
      #expect(losses.givenUp.isEmpty == (number < DownloadPlanner.maximumDamaged))
    }
    #expect(!storage.hasContent(Samples.hash(2)))
  }
}
