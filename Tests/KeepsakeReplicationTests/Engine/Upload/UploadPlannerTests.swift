import Foundation
import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// What of the outbox can be sent now, and what has to be uploaded before the rest can.
struct UploadPlannerTests {
  private var options: DeviceEngine.Options {
    var options = DeviceEngine.Options()
    options.inlineBytes = 100
    return options
  }

  private func planner() -> UploadPlanner { UploadPlanner(options) }

  /// A save with a content of so many bytes.
  private func save(
    _ number: UInt64, slot: String? = nil, over covers: [UInt64] = [], count: Int, in storage: inout SimulatedDevice
  ) -> VersionRecord {
    let hash = storage.addContent(Samples.bytes(Int(number), count: count))
    let record = Samples.record(number, slot: slot ?? "slot \(number)", covers: covers, contents: [hash])
    storage.keep(record)
    return record
  }

  private func candidates(
    _ records: [VersionRecord], _ groups: [[UInt64]], isOffer: Bool = false, uploading: Set<ContentHash> = []
  ) -> UploadPlanner.Candidates {
    let groups = groups.enumerated().map { Samples.group(Int64($0.offset + 1), versions: $0.element) }
    return UploadPlanner.Candidates(
      groups: groups, known: Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) }),
      offer: isOffer ? groups : nil,
      limits: RequestLimits(options, isSingle: false), uploading: uploading)
  }

  private func plan(
    _ planner: inout UploadPlanner, _ candidates: UploadPlanner.Candidates, in storage: SimulatedDevice
  ) throws -> SendingPlan {
    guard case .plan(let plan) = try planner.plan(candidates, in: storage) else { throw CancellationError() }
    return plan
  }

  @Test("small contents are sent inside the exchange, as far as they fit; the others are uploaded first")
  func inside() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    let records = [
      save(1, count: 60, in: &storage), save(2, count: 60, in: &storage), save(3, count: 10, in: &storage),
    ]
    let plan = try plan(&planner, candidates(records, [[1], [2], [3]]), in: storage)
    #expect(plan.groups.map(\.id) == [1, 3])
    #expect(plan.contents.map(\.hash) == [records[0].contents[0], records[2].contents[0]])
    #expect(plan.uploads.map(\.hash) == records[1].contents && plan.uploads[0].lengthInAll == plan.uploads[0].length)
  }

  @Test("a content that the cloud has, or that is being uploaded, isn't planned again")
  func known() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    let records = [save(1, count: 500, in: &storage), save(2, count: 500, in: &storage)]
    storage.setCloudDepth(0, of: records[0].contents[0])
    let plan = try plan(&planner, candidates(records, [[1], [2]], uploading: Set(records[1].contents)), in: storage)
    #expect(plan.groups.map(\.id) == [1] && plan.uploads.isEmpty && plan.contents.isEmpty)
  }

  @Test("a group doesn't overtake a waiting group of the same slot")
  func order() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    let records = [
      save(1, slot: "main", count: 500, in: &storage), save(2, slot: "main", count: 10, in: &storage),
      save(3, count: 10, in: &storage),
    ]
    let plan = try plan(&planner, candidates(records, [[1], [2], [3]]), in: storage)
    #expect(plan.groups.map(\.id) == [3])
  }

  @Test("an offer of everything waits as a whole for uploads")
  func offer() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    let records = [save(1, count: 500, in: &storage), save(2, count: 10, in: &storage)]
    let waiting = try plan(&planner, candidates(records, [[1], [2]], isOffer: true), in: storage)
    #expect(waiting.groups.isEmpty && waiting.isOfferWaiting && waiting.uploads.count == 1)
    storage.setCloudDepth(0, of: records[0].contents[0])
    let ready = try plan(&planner, candidates(records, [[1], [2]], isOffer: true), in: storage)
    #expect(ready.groups.count == 2 && !ready.isOfferWaiting)
  }

  @Test("what arrived of an offer in the meantime needs no upload, unless the cloud asks for it")
  func arrived() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    let records = [save(1, count: 500, in: &storage), save(2, count: 500, in: &storage)]
    var offer = candidates(records, [[1], [2]], isOffer: true)
    offer.arrived = [records[0].id]
    #expect(try plan(&planner, offer, in: storage).uploads.map(\.hash) == records[1].contents)
    storage.setCloudDepth(0, of: records[1].contents[0])
    let plan = try plan(&planner, offer, in: storage)
    #expect(plan.uploads.isEmpty && plan.records == records)
    planner.sendInFull(records[0].contents[0])
    #expect(try self.plan(&planner, offer, in: storage).uploads.map(\.hash) == records[0].contents)
  }

  @Test("a head whose content is lost is reported; history and saves that aren't downloaded need no contents")
  func lost() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    let lost = Samples.record(1, contents: [Samples.hash(1)])
    storage.keep(lost)
    guard case .lost(let version, let hash) = try planner.plan(candidates([lost], [[1]]), in: storage) else {
      Issue.record("no lost content is reported")
      return
    }
    #expect(version == lost.id && hash == Samples.hash(1))
    storage.setNotDownloaded(true, lost.id)
    #expect(try plan(&planner, candidates([lost], [[1]]), in: storage).groups.count == 1)
    storage.setNotDownloaded(false, lost.id)
    storage.markCovered(lost.id)
    #expect(try plan(&planner, candidates([lost], [[1]]), in: storage).groups.count == 1)
  }

  @Test("only one large content is encoded in a step; the next one requires another step")
  func largeContents() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    let size = UploadPlanner.largeContentBytes + 1
    let records = [save(1, count: size, in: &storage), save(2, count: size, in: &storage)]
    let first = try plan(&planner, candidates(records, [[1], [2]]), in: storage)
    #expect(first.uploads.map(\.hash) == records[0].contents && planner.hasPostponed)
    planner.beginStep()
    #expect(!planner.hasPostponed)
    let second = try plan(&planner, candidates(records, [[1], [2]]), in: storage)
    // The size of the first one is known by now.
    #expect(
      second.uploads.map(\.hash) == [records[0].contents[0], records[1].contents[0]] && second.uploads[0].content == nil
    )
    #expect(try planner.encode(second.uploads[0], in: storage) == nil && planner.hasPostponed)
    planner.beginStep()
    #expect(try planner.encode(second.uploads[0], in: storage)?.content?.hash == records[0].contents[0])
  }

  @Test("a content is sent as a delta, unless the cloud needs it in full")
  func full() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    // The simulated storage makes a delta of some contents only.
    let number = try #require((2...40).first { (Samples.hash($0, count: 500).bytes.first ?? 0) & 3 != 0 })
    let base = save(1, slot: "main", count: 500, in: &storage)
    let record = save(UInt64(number), slot: "main", over: [1], count: 500, in: &storage)
    storage.setCloudDepth(0, of: base.contents[0])
    let request = candidates([record], [[UInt64(number)]])
    let delta = try plan(&planner, request, in: storage).uploads
    #expect(delta.map(\.content?.base) == [base.contents[0]] && delta.map(\.depth) == [1])
    planner.forgetSizes()
    planner.sendInFull(record.contents[0])
    let full = try plan(&planner, request, in: storage).uploads
    #expect(full.map { $0.content != nil } == [true])
    #expect(full.map(\.content?.base) == [nil] && full.map(\.depth) == [0])
    planner.uploaded(record.contents[0])
    #expect(try plan(&planner, request, in: storage).uploads.map(\.content?.base) == [base.contents[0]])
    // It may also have been accepted inside an exchange.
    planner.sendInFull(record.contents[0])
    planner.accepted(full.compactMap(\.content))
    planner.forgetSizes()
    #expect(try plan(&planner, request, in: storage).uploads.map(\.content?.base) == [base.contents[0]])
  }

  @Test("a large content waits for its base that is being uploaded")
  func waitsForBase() throws {
    var (planner, storage) = (planner(), SimulatedDevice())
    let base = save(1, slot: "main", count: 500, in: &storage)
    let record = save(2, slot: "main", over: [1], count: 500, in: &storage)
    let plan = try plan(&planner, candidates([record], [[2]], uploading: Set(base.contents)), in: storage)
    #expect(plan.groups.isEmpty && plan.uploads.isEmpty)
  }

  @Test("a save waits for the upload of the one that replaces it, and isn't uploaded itself, even if it is lost")
  func replaced() throws {
    for isHere in [true, false] {
      var (planner, storage) = (planner(), SimulatedDevice())
      var old = Samples.record(1, contents: [Samples.hash(1)])
      if isHere { old = save(1, slot: "main", count: 400, in: &storage) } else { storage.keep(old) }
      let new = save(2, slot: "main", over: [1], count: 500, in: &storage)
      let plan = try plan(&planner, candidates([old, new], [[1], [2]]), in: storage)
      #expect(plan.groups.isEmpty && plan.uploads.map(\.hash) == new.contents, "is here: \(isHere)")
    }
  }

  @Test("a version is left out if its replacement covers all that it covers; a replaced one needs no contents anyway")
  func leftOut() {
    let records = [
      Samples.record(1), Samples.record(2, covers: [1]), Samples.record(4, covers: [9]), Samples.record(5, covers: [4]),
    ]
    let known = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
    let plan = SendingPlan([Samples.group(1, versions: [1, 2, 4, 5])], known)
    #expect(plan.records.map(\.id) == [2, 4, 5].map(Samples.id) && plan.skipped == [Samples.id(1)])
    #expect(plan.visible == [Samples.id(2), Samples.id(5)])
  }
}
