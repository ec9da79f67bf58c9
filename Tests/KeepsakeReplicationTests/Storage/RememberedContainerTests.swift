import Foundation
import KeepsakeReplication
import Testing

@Suite("What is remembered of a container") struct RememberedContainerTests {
  private static let slot = ExactText("main")

  /// Remembers a container after a save.
  private func remembered(
    custom: Int = 0, contents: Int = 0, title: String? = nil, _ change: (inout Snapshot) -> Void = { _ in }
  ) throws -> RememberedContainer? {
    let id = VersionID(high: 1, low: 1)
    let hashes = (0..<contents).map { ContentHash(of: Data("\($0)".utf8)) }
    var reads = ReadSet()
    (reads.device, reads.suspects) = (DeviceID(high: 1, low: 1), true)
    (reads.slots, reads.versions, reads.contents) = ([Self.slot], [id], Set(hashes))
    var snapshot = Snapshot(revision: 1, position: .start, known: reads)
    snapshot.device = Snapshot.Device()
    change(&snapshot)
    var container = SnapshotContainer(snapshot)
    container.advance(to: Cursor(epoch: 0, seq: 1, mark: 7))
    let values = (0..<custom).map { ("\($0)", "") }
    let record = VersionRecord(
      id: id, slot: Self.slot.text, covers: [], contents: hashes, length: 5,
      metadata: SaveMetadata(title: title, custom: Dictionary(values) { $1 }), savedAtMilliseconds: 5,
      writer: WriterID(1), provisional: false)
    try container.putVersion(SequencedVersion(record: record, seq: 1))
    return RememberedContainer(after: container, and: nil)
  }

  private func reads(_ versions: Range<UInt64>) -> ReadSet {
    var reads = ReadSet()
    reads.device = DeviceID(high: 1, low: 1)
    reads.versions = Set(versions.map { VersionID(high: 2, low: $0) })
    reads.slots = [Self.slot]
    return reads
  }

  @Test("it is where the commit has brought it, and what it doesn't know is assumed to be new")
  func known() throws {
    let snapshot = try #require(try remembered()?.snapshot(for: reads(0..<2)))
    #expect(snapshot.revision == 2 && snapshot.position == Cursor(epoch: 0, seq: 1, mark: 7))
    #expect(snapshot.heads[Self.slot] == [VersionID(high: 1, low: 1)])
    #expect(snapshot.assumption?.position == snapshot.position)
    #expect(snapshot.assumption?.newVersions == reads(0..<2).versions)
  }

  @Test("heads with many parts, or large ones, aren't remembered, nor are requests with many items decided over it")
  func bounds() throws {
    let most = RememberedContainer.mostParts
    #expect(try remembered(custom: most, contents: most) != nil)
    #expect(try remembered(custom: most + 1) == nil)
    #expect(try remembered(contents: most + 1) == nil)
    #expect(try remembered(title: String(repeating: "a", count: RememberedContainer.mostBytes)) == nil)
    let items = UInt64(RememberedContainer.mostItems)
    #expect(try remembered()?.snapshot(for: reads(0..<items)) != nil)
    #expect(try remembered()?.snapshot(for: reads(0..<items + 1)) == nil)
    #expect(try remembered()?.snapshot(for: reads(0..<0)) == nil)
  }

  @Test("what it doesn't know and can't assume has to be loaded")
  func missing() throws {
    let container = try #require(try remembered())
    func hasAll(_ change: (inout ReadSet) -> Void) -> Bool {
      var reads = reads(0..<1)
      change(&reads)
      return container.snapshot(for: reads) != nil
    }
    #expect(hasAll { _ in })
    #expect(hasAll { $0.changes = ReadSet.Changes(after: 1, count: 9, bytes: 9) })
    #expect(!hasAll { $0.changes = ReadSet.Changes(after: 0, count: 9, bytes: 9) })
    #expect(!hasAll { $0.device = DeviceID(high: 1, low: 2) })
    #expect(!hasAll { $0.slots.insert(ExactText("other")) })
    #expect(!hasAll { $0.slotsOfVersions = [VersionID(high: 9, low: 9)] })
    #expect(!hasAll { $0.cells = [CellKey(collection: "progress", key: "level")] })
    #expect(!hasAll { $0.used = true })
    #expect(!hasAll { $0.reached = true })
    #expect(!hasAll { $0.bank.state = true })
    #expect(!hasAll { $0.rooms = [Self.slot] })
    #expect(!hasAll { $0.offers = true })
  }

  @Test("of a removed device, and of a container with damaged contents, nothing is remembered")
  func nothing() throws {
    #expect(try remembered { $0.device?.isRetired = true } == nil)
    #expect(try remembered { $0.suspects = [ContentHash(of: Data())] } == nil)
    #expect(try remembered { $0.known.suspects = false } == nil)
  }
}
