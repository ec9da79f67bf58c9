import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// Which contents others are sent as deltas of.
struct DeltaBasesTests {
  /// Versions 1 to `count`, each replacing the one before, with a content of its own number.
  private func line(_ count: UInt64) -> SimulatedDevice {
    var storage = SimulatedDevice()
    for number in 1...count { add(number, over: number > 1 ? [number - 1] : [], to: &storage) }
    return storage
  }

  private func add(_ number: UInt64, over covers: [UInt64], to storage: inout SimulatedDevice) {
    let hash = storage.addContent(Samples.bytes(Int(number)))
    storage.keep(Samples.record(number, covers: covers, contents: [hash]))
  }

  private func base(
    of number: UInt64, in storage: SimulatedDevice, uploading: Set<ContentHash> = [], maximumDepth: Int = 3
  ) throws -> DeltaBases.Base {
    var bases = DeltaBases(maximumDepth: maximumDepth)
    let record = try #require(storage.version(Samples.id(number))?.record)
    return try bases.base(for: record.contents[0], at: 0, of: record, uploading: uploading, in: storage)
  }

  @Test("the base is the nearest content that the cloud has")
  func nearest() throws {
    var storage = line(4)
    #expect(try base(of: 4, in: storage).known == nil)
    storage.setCloudDepth(0, of: Samples.hash(1))
    storage.setCloudDepth(2, of: Samples.hash(2))
    let found = try base(of: 4, in: storage).known
    #expect(found?.hash == Samples.hash(2) && found?.depth == 2)
  }

  @Test("a content with too many bases isn't used as a base itself")
  func depth() throws {
    var storage = line(3)
    storage.setCloudDepth(0, of: Samples.hash(1))
    storage.setCloudDepth(3, of: Samples.hash(2))
    #expect(try base(of: 3, in: storage).known?.hash == Samples.hash(1))
    #expect(try base(of: 3, in: storage, maximumDepth: 4).known?.hash == Samples.hash(2))
  }

  @Test("a nearer content that is being uploaded is returned beside the one that the cloud has")
  func uploading() throws {
    var storage = line(4)
    storage.setCloudDepth(0, of: Samples.hash(1))
    let found = try base(of: 4, in: storage, uploading: [Samples.hash(2), Samples.hash(3)])
    #expect(found.known?.hash == Samples.hash(1) && found.uploading == Samples.hash(3))
  }

  @Test("all parents of a version are searched for a base")
  func parents() throws {
    var storage = line(1)
    add(2, over: [], to: &storage)
    add(3, over: [1, 2], to: &storage)
    storage.setCloudDepth(0, of: Samples.hash(2))
    #expect(try base(of: 3, in: storage).known?.hash == Samples.hash(2))
  }

  @Test("only a limited number of earlier versions is searched for a base")
  func lookBack() throws {
    let last = UInt64(DeltaBases.maximumLookBack) + 1
    var storage = line(last + 1)
    storage.setCloudDepth(0, of: Samples.hash(1))
    #expect(try base(of: last, in: storage).known?.hash == Samples.hash(1))
    #expect(try base(of: last + 1, in: storage).known == nil)
  }

  @Test("neither the content itself nor one that isn't on the device is used as a base")
  func unusable() throws {
    var storage = SimulatedDevice()
    let hash = storage.addContent(Samples.bytes(1))
    storage.keep(Samples.record(1, contents: [hash]))
    storage.keep(Samples.record(2, covers: [1], contents: [hash]))
    storage.setCloudDepth(0, of: hash)
    #expect(try base(of: 2, in: storage).known == nil)
    storage.keep(Samples.record(3, slot: "other", contents: [Samples.hash(3)]))
    storage.keep(Samples.record(4, slot: "other", covers: [3], contents: [storage.addContent(Samples.bytes(4))]))
    storage.setCloudDepth(0, of: Samples.hash(3))
    #expect(try base(of: 4, in: storage).known == nil)
  }
}
