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

  @Test("values, saves, a conflict and a delete reach the other device, and a third one that joins later")
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

  @Test("values of an unknown rule reach the newer devices that know it, even through an older device's snapshots")
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
    // Every exchange of the old device ends in a snapshot of everything that it knows.
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
    // A device that joins later gets the values from any device that wrote them.
    let third = try device(4)
    try third.sync()
    #expect(Set(["ann bob"]).isSubset(of: texts(third)) && texts(third).isSubset(of: ["ann", "bob", "ann bob"]))
  }

  @Test("a checkpoint is one file, named by its hash, and no file in the folder is ever written again")
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

  @Test("after a restart a device goes on where it was: it writes nothing again and receives nothing again")
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
    // A device that has never written anything receives everything again, and writes nothing.
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

  @Test("a save is in the folder only once if the game is killed after it was written and before the response")
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

  @Test("a device restored from a backup receives everything again, and its next save is kept beside what it missed")
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

  @Test("a copied store and its original continue separately, and other devices receive the changes of both")
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

  @Test("if a device's files disappear from the folder, it writes everything again, and the other device receives it")
  func ownSegmentGone() throws {
    let (first, second) = (try device(1), try device(2))
    try first.raise("level", to: 5)
    try first.save("one")
    try first.sync()
    for name in try first.stateFiles { try FileManager.default.removeItem(at: first.state(name)) }
    try first.listen()
    #expect(try first.stateFiles.count == 1)
    // Also while the game isn't running, and together with the contents.
    for name in try first.stateFiles { try FileManager.default.removeItem(at: first.state(name)) }
    try FileManager.default.removeItem(at: folder.appendingPathComponent("contents"))
    try first.reopen()
    #expect(try first.sync() == .idle)
    try second.sync()
    #expect(second.value("level") == 5 && second.texts() == ["one"])
    expectEqual(first, second)
  }

  @Test("if an earlier segment is lost while the game isn't running, everything is written again for other devices")
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

  @Test("a store whose cursor comes from a server or a recovery offers everything that it holds")
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

  @Test("a new device that has many pages to receive writes its own changes only once")
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

  @Test("without a bank a device doesn't keep asking for one, and what it earned can be spent")
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

  @Test("the first device's save stops being provisional; that of a fresh install that finds a save remains so")
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
