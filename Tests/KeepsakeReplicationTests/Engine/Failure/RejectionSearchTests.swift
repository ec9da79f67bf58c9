import Testing

@testable import KeepsakeReplication

/// Which part of a rejected exchange is to blame.
struct RejectionSearchTests {
  private func sent(_ groups: Int, hasWallet: Bool = false) -> SentExchange {
    var sent = SentExchange(cursor: .start)
    sent.groups = (0..<groups).map { Samples.group(Int64($0 + 1)) }
    sent.hasWallet = hasWallet
    return sent
  }

  @Test("groups are sent one by one, then without the wallet, and then the remaining group is refused")
  func search() {
    var search = RejectionSearch()
    #expect(search.rejected(sent(3, hasWallet: true)) == .tryAgain)
    #expect(search.isSingle && !search.skipsWallet)
    #expect(search.rejected(sent(1, hasWallet: true)) == .tryAgain)
    #expect(search.skipsWallet)
    #expect(search.rejected(sent(1)) == .refuse(group: 1))
  }

  @Test("a rejected exchange that carried nothing halts the engine")
  func halt() {
    var search = RejectionSearch()
    #expect(search.rejected(sent(0)) == .halt)
    #expect(!search.isSingle && !search.skipsWallet)
  }

  @Test("a reset sends everything together again; an empty outbox does so for groups, but not for the wallet")
  func reset() {
    var search = RejectionSearch()
    search.sendSingly()
    search.skipWallet()
    search.outboxIsEmpty()
    #expect(!search.isSingle && search.skipsWallet)
    search.sendSingly()
    search.reset()
    #expect(!search.isSingle && !search.skipsWallet)
  }

  @Test("contents may be missing only so many times in a row; the count restarts when something is accepted")
  func missing() {
    var search = RejectionSearch()
    for _ in 0..<RejectionSearch.maximumMissingRounds {
      search.countMissing()
      #expect(search.hasMissedTooOften() == false)
    }
    search.countMissing()
    #expect(search.hasMissedTooOften() && !search.hasMissedTooOften())
    for _ in 0..<RejectionSearch.maximumMissingRounds { search.countMissing() }
    search.endMissing()
    search.countMissing()
    #expect(search.hasMissedTooOften() == false)
  }
}
