import Foundation
import KeepsakeReplication
import Testing

/// What a store keeps of itself and of what waits, as it is written on disk.
@Suite struct StoredFormTests {
  private func again<Value: Codable>(_ value: Value) throws -> Value {
    try JSONDecoder().decode(Value.self, from: try JSONEncoder().encode(value))
  }

  @Test("a group of the outbox and a store's facts are read from disk as they were written")
  func readAsWritten() throws {
    var facts = DeviceFacts(
      container: ContainerID(high: 1, low: 2), cursor: Cursor(epoch: 3, seq: 4, mark: 5), caughtUp: true,
      serverOffsetMilliseconds: -6, lastFetchedMilliseconds: 7, hasArrivals: true)
    (facts.moves, facts.isRefused, facts.arrivalsNotDownloaded) = (8, true, [VersionID(high: 0, low: 9)])
    (facts.setBack, facts.setBackMark) = (SetBack(from: 9, to: 4), SetBackMark(atMilliseconds: 5, isRefused: true))
    facts.isReadOnly = true
    #expect(try again(facts) == facts)
    #expect(try again(DeviceFacts()) == DeviceFacts())
    for isPiece in [true, false] {
      let group = OutboxGroup(
        id: 3, cells: Lab.level(1).cells.map { CellUpdate(key: $0.key, state: CellState(value: .max(.int(1)))) },
        versions: [VersionID(high: 0, low: 1)], refusals: [Refusal(item: "x", reason: .quota, message: "full")],
        isPiece: isPiece)
      #expect(try again(group) == group)
    }
  }
}
