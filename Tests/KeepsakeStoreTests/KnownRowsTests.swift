import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeStore

/// What a transaction remembers of the versions that it has read.
@Suite struct KnownRowsTests {
  private func row(_ number: UInt64, bytes: Int) -> VersionRow {
    let record = VersionRecord(
      id: VersionID(high: 0, low: number), slot: "main", covers: [], contents: [], length: 0,
      metadata: SaveMetadata(), savedAtMilliseconds: 0, writer: WriterID(1), provisional: false)
    return VersionRow(record, marks: VersionMarks(), body: Data(count: bytes))
  }

  @Test("rows are kept up to a number and a size, and the newest one in any case")
  func bounded() {
    let known = KnownRows()
    for number in 0..<UInt64(3 * KnownRows.maximumCount) {
      known.keep(row(number, bytes: 1), of: VersionID(high: 0, low: number))
      #expect(known.rows.count <= KnownRows.maximumCount)
    }
    known.forget()
    for number in 0..<UInt64(9) {
      known.keep(row(number, bytes: KnownRows.maximumBytes / 3), of: VersionID(high: 0, low: number))
      #expect(known.rows.count <= 3 && known.rows[VersionID(high: 0, low: number)] != nil)
    }
    known.keep(row(10, bytes: 2 * KnownRows.maximumBytes), of: VersionID(high: 0, low: 10))
    #expect(known.rows.count == 1)
    known.keep(nil, of: VersionID(high: 0, low: 11))
    #expect(known.rows.count == 1)
    guard case .some(.none) = known.rows[VersionID(high: 0, low: 11)] else {
      Issue.record("that a version isn't here is remembered, too")
      return
    }
  }
}
