import Foundation
import KeepsakeReplication
import Testing

/// What one request may ask of the cloud.
@Suite struct RequestWorkTests {
  private func version(_ number: UInt64, covers: Int = 0, contents: Int = 0) -> VersionRecord {
    VersionRecord(
      id: VersionID(high: 1, low: number), slot: "main",
      covers: (0..<covers).map { VersionID(high: 2 + number, low: UInt64($0)) },
      contents: Array(repeating: ContentHash(of: Data()), count: contents), length: 0, savedAtMilliseconds: 0,
      writer: WriterID(1), provisional: false)
  }

  private func cells(_ count: Int) -> [CellUpdate] {
    (0..<count).map { number in
      CellUpdate(key: CellKey(collection: "c", key: "\(number)"), state: CellState(value: .max(.int(1))))
    }
  }

  private func exceeded(_ request: ExchangeRequest) -> ExchangeError? {
    do {
      try CloudAcceptance.check(request)
      return nil
    } catch {
      return error as? ExchangeError
    }
  }

  @Test("A request with more of anything than one may have is refused with the limit, before anything is read for it")
  func limits() {
    let covers = ExchangeRules.maximumRequestCovers
    #expect(exceeded(ExchangeRequest(cursor: .start, versions: [version(0, covers: covers)], limit: 1)) == nil)
    let two = [version(0, covers: covers / 2 + 1), version(1, covers: covers / 2)]
    #expect(
      exceeded(ExchangeRequest(cursor: .start, versions: two, limit: 1))
        == .exceeds("covers", count: covers + 1, limit: covers))
    #expect(
      exceeded(ExchangeRequest(cursor: .start, cells: cells(ExchangeRules.maximumCells + 1), limit: 1))
        == .exceeds("cells", count: ExchangeRules.maximumCells + 1, limit: ExchangeRules.maximumCells))
    let named = (0..<9).map { version($0, contents: ExchangeRules.maximumContents) }
    #expect(
      exceeded(ExchangeRequest(cursor: .start, versions: named, limit: 1))
        == .exceeds(
          "contents of versions", count: 9 * ExchangeRules.maximumContents, limit: ExchangeRules.maximumRequestContents)
    )
    // Each below its limit, and together above that of the work.
    let mixed = ExchangeRequest(
      cursor: .start, cells: cells(ExchangeRules.maximumCells), versions: [version(0, covers: covers)], limit: 1)
    #expect(
      exceeded(mixed) == .exceeds("units of work", count: mixed.work, limit: ExchangeRules.maximumWork))
  }

  @Test("The largest group that a device can commit, and the most groups that it sends together, are below the limits")
  func honestDevices() {
    // A checkpoint without anything but one kind of item.
    let (bare, bytes) = (version(0).size, ExchangeRules.maximumCommitBytes)
    let perCover = version(0, covers: 1).size - bare
    let perContent = version(0, contents: 1).size - bare
    #expect(bytes / perCover <= ExchangeRules.maximumRequestCovers)
    #expect(bytes / perContent <= ExchangeRules.maximumRequestContents)
    #expect(bytes / perCover + 4 <= ExchangeRules.maximumWork)
    #expect(ExchangeRules.maximumCells * 2 + ExchangeRules.maximumVersions * 4 <= ExchangeRules.maximumWork / 2)
    // Groups that are sent together are at most half as large, with as many items, and contents beside them.
    let options = DeviceEngine.Options()
    let together = options.maximumBytes / perCover + options.maximumCells * 2 + options.maximumVersions * 4
    let contents = options.maximumVersions * 4 + options.inlineBytes / 4096
    #expect(options.maximumBytes * 2 <= bytes && together + contents <= ExchangeRules.maximumWork)
  }
}
