import Testing

@testable import KeepsakeReplication

/// Which wake-up the engine asks for.
struct WakeUpsTests {
  private func next(_ wakeUps: inout WakeUps, isPaused: Bool = false, isExchanging: Bool = false) -> Int64? {
    wakeUps.next(isPaused: isPaused, isExchanging: isExchanging, poll: 60)
  }

  @Test("the poll is asked for once, and again when it came or counts anew")
  func poll() {
    var wakeUps = WakeUps()
    #expect(next(&wakeUps) == 60)
    #expect(next(&wakeUps) == nil)
    #expect(wakeUps.woke() == false)
    #expect(next(&wakeUps) == 60)
    wakeUps.restartPoll()
    #expect(next(&wakeUps) == 60)
  }

  @Test("no poll is asked for while an exchange is in flight or a pause is on")
  func noPoll() {
    var wakeUps = WakeUps()
    #expect(next(&wakeUps, isExchanging: true) == nil)
    #expect(next(&wakeUps, isPaused: true) == nil)
    #expect(next(&wakeUps) == 60)
  }

  @Test("another step is asked for at once, also beside an exchange, and what wakes the engine then ends no pause")
  func anotherStep() {
    var wakeUps = WakeUps()
    wakeUps.requestStep()
    #expect(next(&wakeUps, isExchanging: true) == 0)
    #expect(wakeUps.woke() == true)
    #expect(wakeUps.woke() == false)
    #expect(next(&wakeUps) == 60)
  }

  @Test("the end of a pause stands for the step that was to come")
  func pauseComesFirst() {
    var wakeUps = WakeUps()
    wakeUps.requestStep()
    #expect(next(&wakeUps, isPaused: true) == nil)
    #expect(wakeUps.woke() == false)
  }

  @Test("what replaces the wake-up replaces the poll and the step")
  func replacing() {
    var wakeUps = WakeUps()
    _ = next(&wakeUps)
    wakeUps.requestStep()
    wakeUps.replace()
    #expect(next(&wakeUps) == 60)
    wakeUps.requestStep()
    wakeUps.replaceByPoll()
    #expect(next(&wakeUps) == nil)
  }
}
