#if Cloud
import Testing

@testable import KeepsakeServer

@Suite("A table of bounded size") struct BoundedTableTests {
  @Test("the newest half stays, however many are put, and there are never more than wanted")
  func newest() {
    var table = BoundedTable<Int, Int>(most: 8)
    for number in 0..<1_000 {
      _ = table.put(-number, for: number)
      #expect(table.count <= 8)
      for key in max(0, number - 3)...number { #expect(table[key] == -key) }
    }
    #expect((0..<992).allSatisfy { table[$0] == nil })
  }

  @Test("what is put again counts as new, and what is removed is gone, wherever it was")
  func again() {
    var table = BoundedTable<Int, Int>(most: 4)
    for number in 0..<100 {
      _ = table.put(number, for: number)
      _ = table.put(number, for: -1)
      #expect(table[-1] == number)
    }
    for key in [-1, 98, 99] {
      table.remove(key)
      #expect(table[key] == nil)
    }
  }
}
#endif
