import Testing

@testable import KeepsakeReplication

/// Whether an exchange has to fetch what is new.
struct FetchStateTests {
  private func answered(_ state: inout FetchState, before: UInt64 = 0, hasMore: Bool = false, fault: Bool = false) {
    state.answered(announcedBefore: before, hasMore: hasMore, showsHalfPages: fault)
  }

  @Test("an exchange is due until the cursor has reached what the event stream announced")
  func announcements() {
    var state = FetchState()
    #expect(!state.isExchangeDue)
    state.announce(9)
    state.announce(7)
    #expect(state.announced == 9)
    state.reached(8)
    #expect(state.isExchangeDue)
    state.reached(9)
    #expect(!state.isExchangeDue)
  }

  @Test("a response settles what had been announced when its request was sent, but nothing announced since")
  func answers() {
    var state = FetchState()
    state.announce(9)
    answered(&state, before: 9)
    #expect(!state.isExchangeDue)
    state.announce(20)
    answered(&state, before: 9)
    #expect(state.announced == 20)
  }

  @Test("what is staged may be shown after the last page, or after an event")
  func pages() {
    var state = FetchState()
    #expect(!state.isComplete)
    answered(&state, hasMore: true)
    #expect(!state.isComplete && state.hasMorePages)
    answered(&state)
    #expect(state.isComplete && !state.hasMorePages)
    var other = FetchState()
    other.appliedEvent()
    #expect(other.isComplete)
    answered(&other, hasMore: true, fault: true)
    #expect(other.isComplete)
  }

  @Test("after a restart with another cloud an exchange is due, and what the old one announced doesn't count")
  func restart() {
    var state = FetchState()
    state.announce(9)
    answered(&state, hasMore: false)
    state.restart()
    #expect(state.isDue && state.announced == 0 && !state.isComplete && !state.hasMorePages)
  }
}
