import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// Contents that are damaged in the cloud.
struct CloudRepairTests {
  private func storage() -> SimulatedDevice {
    var storage = SimulatedDevice()
    let hash = storage.addContent(Samples.bytes(1))
    storage.keep(Samples.record(1, contents: [hash]))
    storage.keep(Samples.record(2, covers: [1], contents: [Samples.hash(2)]))
    storage.setCloudDepth(4, of: hash)
    return storage
  }

  @Test("requested contents that the device has, even in history, are planned, and count as missing in the cloud")
  func planning() throws {
    var (repair, storage) = (CloudRepair(), storage())
    let planned = try repair.plan([Samples.hash(1), Samples.hash(2)], now: 0, interval: 10, in: &storage)
    #expect(planned == [Samples.hash(1)] && storage.cloudDepth(of: Samples.hash(1)) == nil)
    #expect(repair.uploads.map(\.version.id) == [Samples.id(1)])
  }

  @Test("a content isn't planned twice, nor uploaded again before the interval is over")
  func again() throws {
    var (repair, storage) = (CloudRepair(), storage())
    let wanted = [Samples.hash(1)]
    #expect(try repair.plan(wanted, now: 100, interval: 10, in: &storage) == wanted)
    #expect(try repair.plan(wanted, now: 200, interval: 10, in: &storage).isEmpty && repair.uploads.count == 1)
    repair.drop(Samples.hash(1))
    #expect(repair.uploads.isEmpty)
    #expect(try repair.plan(wanted, now: 109, interval: 10, in: &storage).isEmpty)
    #expect(try repair.plan(wanted, now: 110, interval: 10, in: &storage) == wanted)
    repair.drop(Samples.hash(1))
    #expect(try repair.plan(wanted, now: 0, interval: 10, in: &storage) == wanted)
  }

  @Test("a content that the cloud no longer asks for isn't uploaded")
  func dropped() throws {
    var (repair, storage) = (CloudRepair(), storage())
    _ = try repair.plan([Samples.hash(1)], now: 0, interval: 10, in: &storage)
    _ = try repair.plan([], now: 0, interval: 10, in: &storage)
    #expect(repair.uploads.isEmpty)
    repair.reset()
    #expect(try repair.plan([Samples.hash(1)], now: 1, interval: 10, in: &storage).count == 1)
  }

  @Test("damage is reported until the cloud has received the report")
  func reporting() {
    var repair = CloudRepair()
    repair.report(Samples.hash(1))
    repair.report(Samples.hash(2))
    repair.reported([Samples.hash(1)])
    repair.reset()
    #expect(repair.damaged == [Samples.hash(2)])
  }

  @Test("only a limited number of damaged contents is planned at a time")
  func many() throws {
    var (repair, storage) = (CloudRepair(), SimulatedDevice())
    let hashes = (1...ExchangeRules.maximumWanted + 1).map { storage.addContent(Samples.bytes($0)) }
    storage.keep(Samples.record(1, contents: hashes))
    #expect(try repair.plan(hashes, now: 0, interval: 10, in: &storage) == Array(hashes.dropLast()))
  }
}
