import KeepsakeReplication
import Testing

@Suite struct CountTextTests {
  @Test("one thing is named in the singular, and any other number in the plural")
  func counts() {
    #expect(
      [0, 1, 2, 11, 21, 101].map { CountText.of($0, "commit") } == [
        "0 commits", "1 commit", "2 commits", "11 commits", "21 commits", "101 commits",
      ])
    #expect(CountText.of(-1, "point") == "-1 points" && CountText.of(UInt64(1), "point") == "1 point")
    #expect(CountText.of(1, "entry", plural: "entries") == "1 entry")
    #expect(CountText.of(2, "entry", plural: "entries") == "2 entries")
  }
}
