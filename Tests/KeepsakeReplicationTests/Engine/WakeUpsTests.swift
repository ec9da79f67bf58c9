import Testing

@testable import KeepsakeReplication

/// Which wake-up the engine requests.
struct WakeUpsTests {
  private func next(_ wakeUps: inout WakeUps, isPaused: Bool = false, isExchanging: Bool = false) -> Int64? {
    wakeUps.next(isPaused: isPaused, isExchanging: isExchanging, poll: 60)
  }

  @Test("the poll is requested once, and again after it came or its time restarted")
  func poll() {
    var wakeUps = WakeUps()
    #expect(next(&wakeUps) == 60)
    #expect(next(&wakeUps) == nil)
    #expect(wakeUps.woke() == false)
    #expect(next(&wakeUps) == 60)
    wakeUps.restartPoll()
    #expect(next(&wakeUps) == 60)
  }

  @Test("no poll is requested while an exchange is in flight or during a pause")
  func noPoll() {
    var wakeUps = WakeUps()
    #expect(next(&wakeUps, isExchanging: true) == nil)
    #expect(next(&wakeUps, isPaused: true) == nil)
    #expect(next(&wakeUps) == 60)
  }

  @Test("another step is requested at once, even during an exchange, and its wake-up ends no pause")
  func anotherStep() {
    var wakeUps = WakeUps()
    wakeUps.requestStep()
    #expect(next(&wakeUps, isExchanging: true) == 0)
    #expect(wakeUps.woke() == true)
    #expect(wakeUps.woke() == false)
    #expect(next(&wakeUps) == 60)
  }

  @Test("the end of a pause replaces the step that was requested")
  func pauseComesFirst() {
    var wakeUps = WakeUps()
    wakeUps.requestStep()
    #expect(next(&wakeUps, isPaused: true) == nil)
    #expect(wakeUps.woke() == false)
  }

  @Test("what replaces the wake-up replaces the requested poll and step as well")
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
