#if Cloud
import KeepsakeReplication
import Testing

@testable import KeepsakeServer

@Suite("What is known of the newest seqs of containers")
struct NewestSeqsTests {
  @Test("a later seq counts, in whatever order they are noted, until the container is forgotten")
  func latest() {
    let seqs = NewestSeqs()
    let (one, other) = (ContainerID(high: 1, low: 1), ContainerID(high: 1, low: 2))
    #expect(seqs[one] == nil)
    for seq in [3, 9, 5] as [UInt64] { seqs.note(seq, of: one) }
    seqs.note(2, of: other)
    #expect(seqs[one] == 9 && seqs[other] == 2)
    seqs.forget(one)
    #expect(seqs[one] == nil && seqs[other] == 2)
    seqs.note(4, of: one)
    #expect(seqs[one] == 4, "another container may have the id of a deleted one")
  }

  @Test("however many containers there are, it keeps a bounded number, and the newest among them")
  func bounded() {
    let seqs = NewestSeqs()
    let ids = (0..<20_000 as Range<UInt64>).map { ContainerID(high: 2, low: $0) }
    var missing = 0
    for id in ids {
      seqs.note(1, of: id)
      if seqs[id] != 1 { missing += 1 }
    }
    #expect(missing == 0)
    #expect(ids.suffix(8_192).allSatisfy { seqs[$0] != nil })
    #expect(ids.count { seqs[$0] != nil } <= 16_384)
  }
}
#endif
