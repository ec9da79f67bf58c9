import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// Groups that are filled up to their limits.
struct OutboxPiecesTests {
  private func cell(_ number: Int) -> CellUpdate {
    CellUpdate(key: CellKey(collection: "progress", key: "\(number)"), state: CellState(value: .max(.int(1))))
  }

  private func pieces(cells: Int = 100, versions: Int = 100, bytes: Int = 1 << 20) -> OutboxPieces {
    OutboxPieces(cells: cells, versions: versions, bytes: bytes, isPiece: true)
  }

  @Test("a group ends where the next item would be one too many, and no item is lost")
  func counts() throws {
    var storage = SimulatedDevice()
    var pieces = pieces(cells: 2, versions: 3)
    for number in 1...4 { try pieces.add(Samples.record(UInt64(number)), to: &storage) }
    for number in 1...3 { try pieces.add(cell(number), to: &storage) }
    try pieces.end(in: &storage)
    let groups = storage.outbox(limit: 10)
    #expect(groups.map(\.versions.count) == [3, 1, 0] && groups.map(\.cells.count) == [0, 2, 1])
    #expect(groups.map(\.isPiece) == [true, true, true])
  }

  @Test("a group ends where the next item would make it too large; a single item may be larger")
  func sizes() throws {
    var storage = SimulatedDevice()
    var pieces = pieces(bytes: Samples.record(1).size * 2)
    for number in 1...4 { try pieces.add(Samples.record(UInt64(number)), to: &storage) }
    try pieces.end(in: &storage)
    #expect(storage.outbox(limit: 10).map(\.versions.count) == [2, 2])
    var tiny = self.pieces(bytes: 1)
    for number in 5...6 { try tiny.add(Samples.record(UInt64(number)), to: &storage) }
    try tiny.end(in: &storage)
    #expect(storage.outbox(limit: 10).map(\.versions.count) == [2, 2, 1, 1])
    var cells = self.pieces(bytes: cell(1).size * 2)
    for number in 1...3 { try cells.add(cell(number), to: &storage) }
    try cells.end(in: &storage)
    #expect(storage.outbox(limit: 10).map(\.cells.count) == [0, 0, 0, 0, 2, 1])
  }

  @Test("an empty group isn't appended")
  func empty() throws {
    var storage = SimulatedDevice()
    var pieces = pieces()
    try pieces.end(in: &storage)
    #expect(storage.outboxCount() == 0)
  }
}
