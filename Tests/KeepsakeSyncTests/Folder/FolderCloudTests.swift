import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@testable import KeepsakeSync

/// Devices that share a folder, one step at a time.
@Suite("A folder as a cloud") struct FolderCloudTests {
  let folders: CloudFolders
  let folder: URL

  init() throws {
    folders = try CloudFolders()
    folder = try folders.make()
  }

  private func device(_ seed: UInt64, _ options: FolderOptions = FolderOptions(), storage: SimulatedDevice? = nil)
    throws -> FolderDevice
  {
    try FolderDevice(folder, seed: seed, options: options, storage: storage)
  }

  private func expectEqual(_ devices: FolderDevice..., sourceLocation: SourceLocation = #_sourceLocation) {
    for other in devices.dropFirst() { #expect(other.view == devices[0].view, sourceLocation: sourceLocation) }
  }

  @Test("values, saves, a conflict and a delete reach the other device and a third that comes later")
  func converge() throws {
    let (first, second) = (try device(1), try device(2))
    try first.raise("level", to: 6)
    try first.save("one")
    #expect(try first.sync() == .idle)
    #expect(first.storage.outboxCount() == 0)
    #expect(try second.sync() == .idle)
    #expect(second.value("level") == 6 && second.texts() == ["one"])
    #expect(second.notifications.contains(.caughtUp))

    try first.save("two, here")
    try second.save("two, there")
    try second.raise("level", to: 7)
    try first.sync()
    try second.sync()
    try first.listen()
    #expect(first.texts() == ["two, here", "two, there"])
    #expect(first.value("level") == 7)
    expectEqual(first, second)

    try first.save("both")
    try first.save("gone", slot: "other")
    try first.save(nil, slot: "other")
    try first.sync()
    try second.listen()
    let third = try device(3)
    try third.sync()
    #expect(third.texts() == ["both"] && third.texts("other") == [""])
    expectEqual(first, second, third)
  }

  @Test(
    """
    what newer devices wrote by a rule that nobody else knows reaches each of them, through old ones and their \
    snapshots too
    """)
  func laterRules() throws {
    let key = CellKey(collection: "progress", key: "vote")
    func write(_ text: String, _ number: UInt64, over: [UInt64] = [], on device: FolderDevice) {
      let entry = LaterValue.Entry(
        rule: "quorum", content: Data(text.utf8), over: Set(over.map { LaterValueID(high: 0, low: $0) }))
      let state = CellState(value: .later(LaterValue([LaterValueID(high: 0, low: number): entry])))
      device.storage.setCell(CellUpdate(key: key, state: device.storage.cell(key)?.joined(with: state) ?? state))
      device.storage.appendToOutbox(OutboxGroup(cells: [CellUpdate(key: key, state: state)]))
    }
    func texts(_ device: FolderDevice) -> Set<String> {
      guard case .later(let later)? = device.storage.cell(key)?.value else { return [] }
      return Set(later.entries.values.map { String(decoding: $0.content, as: UTF8.self) })
    }
    // Every exchange of the one in the middle ends in a snapshot of all that it knows.
    var options = FolderOptions()
    options.segmentsBeforeSnapshot = 1
    let (first, old, second) = (try device(1), try device(2, options), try device(3))
    for device in [first, old, second] { try device.sync() }
    write("ann", 1, on: first)
    write("bob", 2, on: second)
    for device in [first, second, old] { try device.sync() }
    for number in 1...4 {
      try old.raise("level", to: Int64(number))
      try old.sync()
    }
    #expect(texts(old) == ["ann", "bob"])
    for device in [first, second] { try device.listen() }
    for device in [first, second] { #expect(device.storage.cell(key) == old.storage.cell(key)) }
    write("ann bob", 3, over: [1, 2], on: second)
    for device in [second, first, old] { try device.sync() }
    for device in [first, old, second] { #expect(texts(device) == ["ann bob"]) }
    // Who comes later has it from whoever wrote it down.
    let third = try device(4)
    try third.sync()
    #expect(Set(["ann bob"]).isSubset(of: texts(third)) && texts(third).isSubset(of: ["ann", "bob", "ann bob"]))
  }

  @Test("a checkpoint is one file, named by its hash, and nothing in the folder is ever written again")
  func layout() throws {
    let (first, second) = (try device(1), try device(2))
    try first.commit(
      CommitDraft(
        saves: [first.draft("a"), first.draft("b", slot: "x")],
        cells: [CellDraft(CellKey(collection: "progress", key: "level"), .max(.int(2)))]))
    try first.sync()
    #expect(try first.stateFiles.count == 1)
    for name in try first.stateFiles {
      #expect(try ContentHash(of: Data(contentsOf: first.state(name))).description == name)
    }
    func files() throws -> [String: Date] {
      var dates: [String: Date] = [:]
      for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path + "/" + path)
        if attributes[.type] as? FileAttributeType == .typeRegular {
          dates[path] = attributes[.modificationDate] as? Date
        }
      }
      return dates
    }
    let before = try files()
    #expect(before.count == 4)
    try second.sync()
    try second.raise("level", to: 3)
    try second.save("c")
    try second.sync()
    try first.sync()
    let after = try files()
    #expect(after.count == 6)
    for (path, date) in before { #expect(after[path] == date, "\(path)") }
  }

  @Test(
    """
    a game that is started again goes on where it was: nothing is written anew, and what it said that it has isn't \
    told again
    """)
  func reopening() throws {
    let (first, second) = (try device(1), try device(2))
    try first.raise("level", to: 1)
    try first.save("one")
    try first.sync()
    try second.sync()
    try second.raise("level", to: 2)
    try second.sync()
    let files = try first.stateFiles
    try second.reopen()
    (second.requests, second.answers) = ([], [])
    #expect(try second.sync() == .idle)
    #expect(second.answers.count == 1)
    #expect(second.answers.allSatisfy { !$0.restart && $0.changes.isEmpty })
    #expect(try first.stateFiles == files)
    // One that only ever listened hears all of it again, and writes nothing.
    let reader = try device(3)
    try reader.sync()
    try reader.reopen()
    reader.answers = []
    try reader.sync()
    #expect(reader.answers.allSatisfy { !$0.restart })
    #expect(reader.answers.flatMap(\.changes).count == 2)
    #expect(try first.stateFiles == files)
    expectEqual(second, reader)
  }

  @Test("killed between writing and hearing that it is written: the save is there once")
  func lostAnswer() throws {
    let (first, second) = (try device(1), try device(2))
    try first.raise("level", to: 1)
    try first.sync()
    try first.save("one")
    first.losesAnswer = true
    try first.sync()
    #expect(first.storage.outboxCount() == 1)
    try second.sync()
    #expect(second.texts() == ["one"])
    #expect(try first.sync() == .idle)
    #expect(first.storage.outboxCount() == 0)
    try first.save("two")
    try first.sync()
    try second.listen()
    #expect(second.texts() == ["two"])
    #expect(!first.answers.contains { $0.restart })
    expectEqual(first, second)
  }

  @Test("a device set back to its backup gets everything again, and what it saves then stands beside it")
  func backup() throws {
    let (first, second) = (try device(1), try device(2))
    try first.save("one")
    try first.sync()
    let backup = first.storage
    try first.save("two")
    try first.raise("level", to: 9)
    try first.sync()
    try second.sync()
    let restored = try device(11, storage: backup)
    try restored.save("one and a half")
    #expect(try restored.sync() == .idle)
    #expect(!restored.answers.contains { $0.restart })
    #expect(restored.value("level") == 9)
    #expect(restored.texts() == ["one and a half", "two"])
    try second.listen()
    expectEqual(restored, second)
  }

  @Test("a copied store and its original go on from the same place, each for itself, and both are heard")
  func copiedStore() throws {
    let first = try device(1)
    try first.save("one")
    try first.sync()
    let copy = try device(2, storage: first.storage)
    for number in 1...5 as ClosedRange<Int64> {
      try first.raise("here", to: number)
      try copy.raise("there", to: number)
      try first.sync()
      try copy.sync()
    }
    try first.listen()
    let third = try device(3)
    try third.sync()
    #expect(third.value("here") == 5 && third.value("there") == 5)
    #expect(!(first.answers + copy.answers).contains { $0.restart })
    expectEqual(first, copy, third)
  }

  @Test("what this device wrote is gone from the folder: it is written again, all of it, and the other gets it")
  func ownSegmentGone() throws {
    let (first, second) = (try device(1), try device(2))
    try first.raise("level", to: 5)
    try first.save("one")
    try first.sync()
    for name in try first.stateFiles { try FileManager.default.removeItem(at: first.state(name)) }
    try first.listen()
    #expect(try first.stateFiles.count == 1)
    // Also while it doesn't run, and with the contents.
    for name in try first.stateFiles { try FileManager.default.removeItem(at: first.state(name)) }
    try FileManager.default.removeItem(at: folder.appendingPathComponent("contents"))
    try first.reopen()
    #expect(try first.sync() == .idle)
    try second.sync()
    #expect(second.value("level") == 5 && second.texts() == ["one"])
    expectEqual(first, second)
  }

  @Test(
    """
    an earlier one of its segments was lost while the game didn't run: nobody could go on from there, so all is \
    written again
    """)
  func earlierSegmentGone() throws {
    let (first, second) = (try device(1), try device(2))
    try first.raise("a", to: 1)
    try first.sync()
    let earlier = try first.stateFiles
    try first.raise("b", to: 2)
    try first.sync()
    for name in earlier { try FileManager.default.removeItem(at: first.state(name)) }
    try first.reopen()
    #expect(try first.sync() == .idle)
    try second.sync()
    #expect(second.value("a") == 1 && second.value("b") == 2)
  }

  @Test("a store that comes from a server, or from a recovery, offers all that it holds")
  func otherCursor() throws {
    let first = try device(1)
    try first.save("one")
    try first.raise("level", to: 3)
    try first.sync()
    for name in try first.stateFiles { try FileManager.default.removeItem(at: first.state(name)) }
    for cursor in [
      Cursor(epoch: 0, seq: 40, mark: 0x1234_5678), Cursor(epoch: 3, seq: 1, mark: 1),
      Cursor(epoch: 0, seq: 1 << 62, mark: 0),
    ] {
      var facts = first.storage.facts()
      facts.cursor = cursor
      first.storage.setFacts(facts)
      try first.reopen()
      first.answers = []
      #expect(try first.sync() == .idle)
      #expect(first.answers.first?.restart == true)
    }
    let second = try device(2)
    try second.sync()
    expectEqual(first, second)
  }

  @Test("a new device with much to hear and something to say writes it once")
  func pages() throws {
    let first = try device(1)
    let value = Scalar.string(String(repeating: "v", count: 200_000))
    for part in 0..<5 {
      let keys = (0..<10).map { CellKey(collection: "progress", key: "key \(part) \($0)") }
      try first.commit(CommitDraft(cells: keys.map { CellDraft($0, .max(value)) }))
      try first.sync()
    }
    let files = try first.stateFiles.count
    let second = try device(2)
    try second.raise("own", to: 1)
    try second.save("own")
    #expect(try second.sync() == .idle)
    #expect(second.answers.count > 2)
    #expect(try first.stateFiles.count == files + 1)
    try first.listen()
    expectEqual(first, second)
  }

  @Test("a wallet has no bank here: the device asks once, and is quiet; what it earned can be spent")
  func wallet() throws {
    let first = try device(1)
    func perform(_ kind: WalletOperation.Kind, _ amount: Int64) throws {
      let operation = WalletOperation(
        id: OperationID(using: &first.random), kind: kind, currency: "gems", amount: amount, reason: "test")
      try first.commit(CommitDraft(wallet: [operation]))
    }
    try perform(.earn, 10)
    #expect(try first.sync() == .idle)
    #expect(first.requests.count == 1)
    try perform(.spend, 4)
    try first.listen()
    #expect(first.requests.count <= 2)
    let state = try #require(first.storage.wallet())
    #expect(Wallet(state).hasUnreportedOperations)
    #expect(throws: WalletError.self) { try perform(.spend, 7) }
    #expect(first.storage.outboxCount() == 0)
  }

  @Test("who comes first is no longer provisional; a fresh install that finds a save is")
  func provisional() throws {
    let (first, second) = (try device(1), try device(2))
    let settled = try first.save("long played")
    let fresh = try second.save("just begun")
    try first.sync()
    try second.sync()
    try first.listen()
    for device in [first, second] {
      #expect(device.storage.version(settled)?.record.provisional == false)
      #expect(device.storage.version(fresh)?.record.provisional == true)
    }
    expectEqual(first, second)
  }
}
