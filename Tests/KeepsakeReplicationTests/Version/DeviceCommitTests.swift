import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@Suite struct DeviceCommitTests {
  @Test("Ten thousand autosaves made offline leave one version to send")
  func autosavesAreOneUpload() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    let first = try lab.save(0, "start", over: .everyHead)
    try lab.settle(0)
    lab.requests = []
    var last = first
    for number in 0..<10_000 {
      last = try lab.save(0, "autosave \(number)", over: .versions([last.id]))
      #expect(last.covers.count <= 2)
    }
    #expect(lab.devices[0].storage.outboxCount() == 1)
    #expect(lab.devices[0].storage.unacknowledgedVersions() == [last.id])
    try lab.settle(0)
    #expect(lab.requests.map(\.versions.count) == [1])
    #expect(lab.cloud.heads(of: "main") == [last.id])
    try lab.settle(1)
    #expect(lab.devices[1].storage.heads(of: "main") == [last.id])
  }

  @Test("A save that replaces one of a full group takes it out of there; one that replaces nothing begins a group")
  func fullGroup() throws {
    var lab = try Lab()
    try lab.settle(0)
    let most = DeviceCommit.maximumGroupVersions
    let saves = try (0..<most).map { try lab.save(0, "a", slot: "slot \($0)", over: .versions([])) }
    #expect(lab.devices[0].storage.outboxCount() == 1)
    let apart = try lab.save(0, "b", slot: "another", over: .versions([]))
    #expect(lab.devices[0].storage.outbox(limit: 9).map(\.versions.count) == [most, 1])
    try lab.settle(0)

    var waiting: [VersionRecord] = []
    for save in saves { waiting.append(try lab.save(0, "c", slot: save.slot, over: .versions([save.id]))) }
    #expect(lab.devices[0].storage.outbox(limit: 9).map(\.versions.count) == [most])
    let last = try lab.save(0, "d", slot: saves[0].slot, over: .versions([waiting[0].id]))
    #expect(lab.devices[0].storage.outbox(limit: 9).flatMap(\.versions) == waiting.dropFirst().map(\.id) + [last.id])
    try lab.settle(0)
    #expect(lab.cloud.heads(of: "another") == [apart.id] && lab.cloud.heads(of: saves[0].slot) == [last.id])
  }

  @Test("A save that was being sent when the next one was made is replaced by it, even if the response is lost")
  func offeredVersionsAreNamed() throws {
    var lab = try Lab()
    try lab.settle(0)
    let first = try lab.save(0, "a", over: .everyHead)
    try lab.settle(0)
    let second = try lab.save(0, "b", over: .versions([first.id]))
    try lab.step(0, .committed)
    let request = lab.takeRequest(0)
    let sent = try #require(request)
    let third = try lab.save(0, "c", over: .versions([second.id]))
    #expect(third.covers == [first.id, second.id].sorted())
    let fourth = try lab.save(0, "d", over: .versions([third.id]))
    #expect(Set(fourth.covers) == [first.id, second.id, third.id])
    // The request arrives in the end, but the response is lost.
    _ = try lab.answer(to: sent, cloud: &lab.cloud, using: &lab.random)
    guard case .exchange(let number, _) = sent else {
      Issue.record("another request: \(sent)")
      return
    }
    try lab.step(0, .failed(request: number, TransportFailure(.interrupted, "cut")))
    try lab.settle(0)
    #expect(lab.cloud.heads(of: "main") == [fourth.id])
    #expect(lab.devices[0].storage.outboxCount() == 0)
  }

  @Test("Saves that couldn't be sent because no network was reachable aren't covered by the saves after them")
  func unreachableLeavesNoTrace() throws {
    var lab = try Lab()
    try lab.settle(0)
    var last = try lab.save(0, "0", over: .everyHead)
    for number in 1...50 {
      try lab.step(0, .sync)
      guard case .exchange(let request, _)? = lab.takeRequest(0) else {
        Issue.record("nothing was sent")
        return
      }
      try lab.step(0, .failed(request: request, TransportFailure(.unreachable, "offline")))
      last = try lab.save(0, "\(number)", over: .versions([last.id]))
    }
    #expect(last.covers.count == 1)
    #expect(lab.devices[0].storage.outboxCount() == 1)
  }

  @Test("While a game is never connected, neither its saves' covers nor its outbox grow from session to session")
  func unconnectedSessionsDontAddUp() throws {
    var lab = try Lab(devices: 2)
    var last = try lab.save(0, "0", over: .everyHead)
    let first = last
    for session in 1...300 {
      try DeviceCommit.opened(in: &lab.devices[0].storage, using: &lab.random)
      for save in 1...3 { last = try lab.save(0, "\(session) \(save)", over: .versions([last.id])) }
    }
    #expect(last.covers.count <= DeviceCommit.maximumUnconnectedCovers + 1)
    #expect(lab.devices[0].storage.outboxCount() == 1)
    // Committing the same large set of values again and again doesn't add groups, however large it is.
    let many = (0..<300).map { CellDraft(CellKey(collection: "progress", key: "key \($0)"), .max(.int(1))) }
    for value in 1...5 {
      try lab.commit(0, CommitDraft(cells: many.map { CellDraft($0.key, .max(.int(Int64(value)))) }))
    }
    #expect(lab.devices[0].storage.outboxCount() <= 2)
    // Connected at last, it sends its newest save, which replaces that of a copy made when the last session began.
    let copied = last
    var copy = lab.devices[0]
    copy.writer = WriterID(50)
    lab.devices.append(copy)
    for index in [0, 2] { try DeviceCommit.opened(in: &lab.devices[index].storage, using: &lab.random) }
    for number in 1...3 { last = try lab.save(0, "after \(number)", over: .versions([last.id])) }
    #expect(last.covers.contains(copied.id) && !last.covers.contains(first.id))
    try lab.settle(2, .started)
    try lab.settle(0, .started)
    #expect(lab.cloud.heads(of: "main") == [last.id])
    try lab.settle(1, .started)
    #expect(lab.devices[1].storage.heads(of: "main") == [last.id])
  }

  @Test("What a guest synced doesn't set back the progress, settings and saves of the player that it joins")
  func guestsWhoJoinAreHumble() throws {
    let hat = CellKey(collection: "progress", key: "hat")
    var lab = try Lab(devices: 2)
    // The player, at home: level 60, a crown, a save.
    try lab.settle(0)
    try lab.commit(0, Lab.level(60))
    try lab.commit(0, CommitDraft(cells: [CellDraft(hat, .set(.string("crown")))]))
    try lab.save(0, "far", over: .everyHead)
    try lab.settle(0)
    let home = lab.cloud
    // The guest, later, in a container of its own: caught up, then level 1 by a reset, a cap, a longer save.
    lab.cloud = MemoryContainer(epoch: 2)
    try lab.settle(1)
    try lab.commit(1, Lab.level(3))
    try lab.commit(
      1, CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: "level"), .reset(.max(.int(1))))]))
    try lab.commit(1, CommitDraft(cells: [CellDraft(hat, .set(.string("cap")))]))
    let guest = try lab.save(1, "a longer save that has just begun", over: .everyHead)
    try lab.settle(1)
    #expect(lab.devices[1].storage.version(guest.id)?.record.provisional == false)
    // It joins the player, as the code around the engine does it.
    lab.cloud = home
    var facts = lab.devices[1].storage.facts()
    facts.caughtUp = false
    lab.devices[1].storage.setFacts(facts)
    try DeviceCommit.moved(in: &lab.devices[1].storage)
    for index in [1, 0, 1] { try lab.settle(index) }
    for index in [0, 1] {
      #expect(lab.level(index) == .max(.int(60)))
      guard case .latest(_, .string("crown"))? = lab.devices[index].storage.cell(hat)?.value else {
        Issue.record("device \(index) lost the crown")
        continue
      }
      let view = try Resolution.view(of: "main", in: lab.devices[index].storage)
      #expect(view.heads.count == 2)
      #expect(view.heads.map(\.provisional) == [false, true])
    }
  }

  @Test("A setting made by a device with a clock in 2099 is replaced by a later one of a device with the right time")
  func clockInTheFuture() throws {
    let hat = CellKey(collection: "progress", key: "hat")
    var lab = try Lab(devices: 2)
    for index in 0..<2 { try lab.settle(index) }
    let now = lab.now
    lab.now = 4_070_908_800_000
    try lab.commit(0, CommitDraft(cells: [CellDraft(hat, .set(.string("crown")))]))
    try lab.settle(0)
    lab.now = now
    try lab.settle(1)
    try lab.commit(1, CommitDraft(cells: [CellDraft(hat, .set(.string("cap")))]))
    for index in [1, 0] { try lab.settle(index) }
    for (index, device) in lab.devices.enumerated() {
      guard case .latest(_, .string("cap"))? = device.storage.cell(hat)?.value else {
        Issue.record("device \(index) still has the crown")
        continue
      }
    }
  }

  @Test("Unsent saves of a copied store don't conflict with the saves made from them")
  func openedMarksWhatACopyMayHold() throws {
    var lab = try Lab()
    try lab.settle(0)
    let first = try lab.save(0, "a", over: .everyHead)
    var copy = lab.devices[0]
    copy.writer = WriterID(50)
    try DeviceCommit.opened(in: &copy.storage, using: &lab.random)
    lab.devices.append(copy)
    try DeviceCommit.opened(in: &lab.devices[0].storage, using: &lab.random)
    let second = try lab.save(0, "b", over: .versions([first.id]))
    let third = try lab.save(0, "c", over: .versions([second.id]))
    #expect(third.covers.contains(first.id))
    try lab.settle(1, .started)
    try lab.settle(0, .started)
    #expect(lab.cloud.heads(of: "main") == [third.id])
  }

  @Test("A save that the original replaced before it was sent doesn't return from a copy made while the game ran")
  func liveCopies() throws {
    var lab = try Lab()
    try lab.settle(0)
    let first = try lab.save(0, "a", over: .everyHead)
    var copy = lab.devices[0]
    copy.writer = WriterID(50)
    copy.engine = DeviceEngine()
    try DeviceCommit.opened(in: &copy.storage, using: &lab.random)
    lab.devices.append(copy)
    let second = try lab.save(0, "b", over: .versions([first.id]))
    let third = try lab.save(0, "c", over: .versions([second.id]))
    #expect(!third.covers.contains(first.id))
    try lab.settle(1)
    for _ in 0..<2 { for index in 0..<2 { try lab.settle(index) } }
    #expect(lab.cloud.heads(of: "main") == [third.id])
    for index in 0..<2 { #expect(lab.devices[index].storage.heads(of: "main") == [third.id]) }
  }

  @Test("A save made from one side of a conflict replaces only that side; one made from both replaces both")
  func basisDecidesWhatIsCovered() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    let root = try lab.save(0, "root", over: .everyHead)
    try lab.settle(0)
    try lab.settle(1)
    let left = try lab.save(0, "left", over: .versions([root.id]))
    let right = try lab.save(1, "right", over: .versions([root.id]))
    try lab.settle(0)
    try lab.settle(1)
    try lab.settle(0)
    #expect(lab.devices[0].storage.heads(of: "main") == [left.id, right.id].sorted())
    let onlyLeft = try lab.save(0, "left 2", over: .versions([left.id]))
    try lab.settle(0)
    try lab.settle(1)
    #expect(lab.devices[1].storage.heads(of: "main") == [right.id, onlyLeft.id].sorted())
    let both = try lab.save(1, "both", over: .everyHead)
    try lab.settle(1)
    try lab.settle(0)
    #expect(lab.devices[0].storage.heads(of: "main") == [both.id])
  }

  @Test("A new game on a fresh install ranks below the saves in the cloud until it is merged with them")
  func provisionalFollowsTheLineage() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    let settled = try lab.save(0, "old", over: .everyHead)
    #expect(!settled.provisional)
    try lab.settle(0)
    let fresh = try lab.save(1, "new", over: .everyHead)
    #expect(fresh.provisional)
    try lab.settle(1)
    #expect(lab.devices[1].storage.heads(of: "main").count == 2)
    let next = try lab.save(1, "new 2", over: .versions([fresh.id]))
    #expect(next.provisional)
    let view = try Resolution.view(of: "main", in: lab.devices[1].storage, policy: .newest)
    #expect(view.winner?.id == settled.id)
    #expect(!view.related)
    let merged = try lab.save(1, "merged", over: .versions(view.parents))
    #expect(!merged.provisional)
  }

  @Test("The first save of the first device is provisional only until the store has caught up")
  func provisionalIsLifted() throws {
    var lab = try Lab(devices: 2)
    let first = try lab.save(0, "first", over: .everyHead)
    #expect(first.provisional)
    try lab.settle(0, .started)
    #expect(lab.cloud.version(first.id)?.record.provisional == false)
    #expect(lab.devices[0].storage.version(first.id)?.record.provisional == false)
    #expect(lab.devices[0].storage.version(first.id)?.acknowledged == true)
  }

  @Test("A commit of missing contents, an empty name, a taken id, too much money or too large a value throws")
  func errorsAreTyped() throws {
    var lab = try Lab()
    let id = VersionID(using: &lab.random)
    let nowhere = ContentHash(of: Data("nowhere".utf8))
    let draft = SaveDraft(
      id: id, slot: "main", parents: .everyHead, contents: [nowhere], length: 1, savedAtMilliseconds: 0)
    #expect(throws: CommitError.missingContent(id, nowhere)) { try lab.commit(0, CommitDraft(saves: [draft])) }
    var unnamed = draft
    unnamed.content = .stored([], length: 1)
    unnamed.slot = ""
    #expect(throws: CommitError.self) { try lab.commit(0, CommitDraft(saves: [unnamed])) }
    let taken = try lab.save(0, "a", over: .everyHead)
    var again = unnamed
    again.slot = "main"
    again.id = taken.id
    #expect(throws: CommitError.idTaken(taken.id)) { try lab.commit(0, CommitDraft(saves: [again])) }
    #expect(throws: WalletError.insufficientRights(currency: "gems", spendable: 0, balance: 0)) {
      try lab.perform(0, .spend, 5)
    }
    let huge = CellDraft(CellKey(collection: "progress", key: "big"), .insert([.data(Data(count: 300_000))]))
    #expect(throws: CommitError.self) { try lab.commit(0, CommitDraft(cells: [huge])) }
  }

  @Test("A commit too large for the cloud throws, and the largest allowed ones reach the other device")
  func tooMuchForOneCheckpoint() throws {
    var lab = try Lab()
    let many = (0...ExchangeRules.maximumCells).map {
      CellDraft(CellKey(collection: "progress", key: "\($0)"), .max(.int(1)))
    }
    #expect(throws: CommitError.self) { try lab.commit(0, CommitDraft(cells: many)) }
    let large = (0..<30).map {
      CellDraft(CellKey(collection: "progress", key: "\($0)"), .max(.data(Data(count: 200_000))))
    }
    #expect(throws: CommitError.self) { try lab.commit(0, CommitDraft(cells: large)) }
    // Commits of the allowed size arrive, and are received in pages that a device can hold.
    var fresh = try Lab(devices: 2)
    for start in stride(from: 0, to: 30, by: 10) {
      try fresh.commit(0, CommitDraft(cells: Array(large[start..<start + 10])))
    }
    try fresh.settle(0)
    try fresh.settle(1)
    #expect(fresh.devices[0].storage.outboxCount() == 0)
    #expect(fresh.devices[1].storage.cells(in: nil).count == 30)
    #expect(fresh.devices[1].exchanges == 2)
  }

  @Test("A delete remains, and doesn't remove a save that another device makes concurrently")
  func tombstones() throws {
    var lab = try Lab(devices: 2)
    try lab.settle(0)
    let first = try lab.save(0, "a", over: .everyHead)
    try lab.settle(0)
    try lab.settle(1)
    let gone = try lab.save(0, "", over: .everyHead, tombstone: true)
    let played = try lab.save(1, "b", over: .versions([first.id]))
    try lab.settle(0)
    #expect(try Resolution.view(of: "main", in: lab.devices[0].storage).isDeleted)
    try lab.settle(1)
    try lab.settle(0)
    let view = try Resolution.view(of: "main", in: lab.devices[0].storage)
    #expect(view.heads.map(\.id) == [played.id])
    #expect(!view.isConflict)
    #expect(view.parents == [gone.id, played.id].sorted())
  }

  @Test("After a commit that failed, the next save replaces the newest durable one, and there is no conflict")
  func failedCommit() throws {
    var lab = try Lab(devices: 2)
    for index in 0...1 { try lab.settle(index) }
    let origin = SaveOrigin(load: 1, loaded: [])
    var lineage = SaveLineage()
    func save(_ text: String, in lab: inout Lab) throws -> VersionRecord {
      let record = try lab.save(0, text, over: .versions(lineage.versions(of: origin, in: "main")))
      lineage.insert(record.id, from: origin, in: "main")
      return record
    }
    _ = try save("first", in: &lab)
    try lab.settle(0)
    for number in 1...3 {
      let second = try save("second \(number)", in: &lab)
      // A checkpoint whose purchase can't be paid: its save was written first, and the store rolls all of it back.
      let before = (storage: lab.devices[0].storage, lineage: lineage)
      let hash = lab.devices[0].storage.addContent(Data("lost \(number)".utf8))
      let lost = SaveDraft(
        id: VersionID(using: &lab.random), slot: "main", parents: .versions([second.id]), contents: [hash],
        length: "lost \(number)".utf8.count, savedAtMilliseconds: lab.now)
      lineage.insert(lost.id, from: origin, in: "main")
      let purchase = lab.operation(.spend, 5)
      #expect(throws: WalletError.self) { try lab.commit(0, CommitDraft(saves: [lost], wallet: [purchase])) }
      (lab.devices[0].storage, lineage) = before
      let third = try save("third \(number)", in: &lab)
      #expect(third.covers.contains(second.id) && !third.covers.contains(lost.id))
      for index in 0...1 { try lab.settle(index) }
      #expect(lab.cloud.heads(of: "main") == [third.id])
      for device in lab.devices {
        #expect(device.storage.heads(of: "main") == [third.id] && device.storage.outboxCount() == 0)
        #expect(try !Resolution.view(of: "main", in: device.storage).isConflict)
      }
    }
  }

  @Test("Two changes of one value in a commit both reach the other device")
  func twoChangesOfOneValue() throws {
    var lab = try Lab(devices: 2)
    for index in 0...1 { try lab.settle(index) }
    let key = CellKey(collection: "progress", key: "found")
    try lab.commit(0, CommitDraft(cells: [1, 2].map { CellDraft(key, .insert([.int($0)])) }))
    for index in 0...1 { try lab.settle(index) }
    #expect(lab.devices.allSatisfy { $0.storage.cell(key)?.value == .union([.int(1), .int(2)]) })
  }
}
