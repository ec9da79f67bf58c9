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

  @Test("two replies without an effect leave the wallet out; then each pause allows one more, and an effect two")
  func pauses() {
    var search = RejectionSearch()
    search.countWallet(isProgress: false, now: 100)
    #expect(!search.skipsWallet)
    search.countWallet(isProgress: false, now: 100)
    #expect(search.skipsWallet)
    search.resumeWallet(now: 199, after: 100)
    #expect(search.skipsWallet)
    search.resumeWallet(now: 200, after: 100)
    #expect(!search.skipsWallet)
    search.countWallet(isProgress: false, now: 200)
    #expect(search.skipsWallet)
    search.resumeWallet(now: 200)
    search.countWallet(isProgress: true, now: 200)
    search.countWallet(isProgress: false, now: 200)
    #expect(!search.skipsWallet)
    search.countWallet(isProgress: false, now: 200)
    // The clock was set back.
    search.resumeWallet(now: .min, after: 100)
    #expect(!search.skipsWallet)
    search.skipWallet()
    search.resumeWallet(now: .max)
    #expect(search.skipsWallet, "a cloud without a bank is asked at the next start")
  }

  @Test("a bank that asks for statements again and again leaves the wallet out, whatever it says in between")
  func asksToProve() {
    var search = RejectionSearch()
    search.countWallet(isProgress: true, asksToProve: true, now: 0)
    search.countWallet(isProgress: true, now: 0)
    #expect(!search.skipsWallet)
    search.countWallet(isProgress: true, asksToProve: true, now: 0)
    #expect(search.skipsWallet)
    for _ in 0..<2 {
      search.resumeWallet(now: 0)
      search.countWallet(isProgress: true, asksToProve: true, now: 0)
      #expect(!search.skipsWallet)
    }
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
