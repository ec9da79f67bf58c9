import Testing

@testable import KeepsakeReplication

/// Who is to blame for a rejected exchange.
struct RejectionSearchTests {
  private func sent(_ groups: Int, hasWallet: Bool = false) -> SentExchange {
    var sent = SentExchange(cursor: .start)
    sent.groups = (0..<groups).map { Samples.group(Int64($0 + 1)) }
    sent.hasWallet = hasWallet
    return sent
  }

  @Test("groups go one by one, then without the wallet, and then the group that is left is to blame")
  func search() {
    var search = RejectionSearch()
    #expect(search.rejected(sent(3, hasWallet: true)) == .tryAgain)
    #expect(search.isSingle && !search.skipsWallet)
    #expect(search.rejected(sent(1, hasWallet: true)) == .tryAgain)
    #expect(search.skipsWallet)
    #expect(search.rejected(sent(1)) == .refuse(group: 1))
  }

  @Test("an exchange that carries nothing has nothing to blame")
  func halt() {
    var search = RejectionSearch()
    #expect(search.rejected(sent(0)) == .halt)
    #expect(!search.isSingle && !search.skipsWallet)
  }

  @Test("a reset lets all go together again; an empty outbox does so for groups, not for the wallet")
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

  @Test("contents may be missing so many times in a row, and the count begins again when something was taken")
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
