#if Cloud
import Testing

@testable import KeepsakeServer

@Suite("Token buckets")
struct TokenBucketTests {
  private let rate = BucketRate(burst: 10, perSecond: 2)

  @Test("after its burst a key waits until the rate allows the next request, and no longer")
  func burst() {
    let table = BucketTable<Int>(rate, capacity: 4)
    for _ in 0..<10 { #expect(table.take(from: 1, now: 0) == nil) }
    #expect(table.take(from: 1, now: 0) == 1)
    #expect(table.take(from: 1, now: 499) == 1)
    #expect(table.take(from: 1, now: 500) == nil)
    #expect(table.take(from: 1, now: 500) == 1)
    // What a refused request would have cost isn't taken.
    #expect(table.take(3, from: 1, now: 1_900) == 1)
    #expect(table.take(3, from: 1, now: 2_000) == nil)
    #expect(table.take(from: 2, now: 0) == nil)
  }

  @Test("a cost above the burst is possible with a full bucket, and is paid off before the next request")
  func debt() {
    let table = BucketTable<Int>(rate, capacity: 4)
    #expect(table.take(from: 1, now: 0) == nil)
    #expect(table.take(110, from: 1, now: 0) == 1)
    #expect(table.take(110, from: 1, now: 500) == nil)
    // 100 are owed, and one more is needed: two in a second.
    #expect(table.take(from: 1, now: 500) == 51)
    #expect(table.take(from: 1, now: 50_999) != nil)
    #expect(table.take(from: 1, now: 51_000) == nil)
  }

  @Test("a cost that becomes known in steps is possible whenever it would be possible at once")
  func steps() {
    let table = BucketTable<Int>(rate, capacity: 4)
    #expect(table.take(3, from: 1, now: 0) == nil)
    #expect(table.take(107, paid: 3, from: 1, now: 0) == nil)
    #expect(table.take(1, paid: 110, from: 1, now: 0) == nil)
    #expect(table.take(from: 1, now: 0) == 51)
    #expect(table.take(from: 2, now: 0) == nil)
    #expect(table.take(3, from: 2, now: 0) == nil)
    #expect(table.take(8, paid: 3, from: 2, now: 0) == 1, "one was missing before it")
  }

  @Test("a clock that was set back neither fills a bucket nor stops it from filling")
  func clockSetBack() {
    let table = BucketTable<Int>(rate, capacity: 4)
    for _ in 0..<10 { #expect(table.take(from: 1, now: 1_000_000) == nil) }
    #expect(table.take(from: 1, now: 0) != nil)
    #expect(table.take(from: 1, now: 500) == nil)
    #expect(table.take(from: 1, now: 500) != nil)
  }

  @Test("a full table forgets only buckets that are full, so that nobody loses a debt by crowding others in")
  func eviction() {
    let table = BucketTable<Int>(rate, capacity: 100)
    for _ in 0..<10 { #expect(table.take(from: 0, now: 0) == nil) }
    for key in 1..<100_000 { _ = table.take(from: key, now: 0) }
    #expect(table.count <= 100 + BucketTable<Int>.sharedBuckets)
    #expect(table.take(from: 0, now: 0) != nil)
    // Whoever isn't known shares what the newcomers have left: nothing.
    #expect((200_000..<200_100).allSatisfy { table.take(from: $0, now: 0) != nil })
    // A second later everybody who took one request is as new, and makes room; who took ten has two again.
    #expect(table.take(from: 300_000, now: 1_000) == nil)
    #expect(table.count <= 2 + BucketTable<Int>.sharedBuckets)
    #expect(table.take(from: 0, now: 1_000) == nil && table.take(from: 0, now: 1_000) == nil)
    #expect(table.take(from: 0, now: 1_000) != nil)
  }

  @Test("an hourly rate allows a sixth at once, and the rest as time passes")
  func hourly() {
    let table = BucketTable<Int>(.hourly(600), capacity: 4)
    var accepted = 0
    for second in 0..<3_600 {
      while table.take(from: 1, now: Int64(second) * 1_000) == nil { accepted += 1 }
    }
    #expect((699...700).contains(accepted))
  }
}
#endif
