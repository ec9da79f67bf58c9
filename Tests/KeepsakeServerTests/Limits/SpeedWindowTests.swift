#if Cloud
import Testing

@testable import KeepsakeServer

@Suite("Speed over a sliding window")
struct SpeedWindowTests {
  private func slowSlice(of window: inout SpeedWindow, _ bytes: [Int], paused: Set<Int> = []) -> Int? {
    for (index, count) in bytes.enumerated() {
      window.moved(count)
      if paused.contains(index) { window.paused() }
      if window.endSlice() { return index }
    }
    return nil
  }

  @Test("much at once buys one window, and not the hours that an average would allow")
  func headStart() {
    var window = SpeedWindow(minimumBytes: 600)
    #expect(slowSlice(of: &window, [16 << 20] + Array(repeating: 0, count: 50)) == 6)
  }

  @Test("what is just fast enough is never too slow, and what is just too slow is noticed after one window")
  func threshold() {
    var fast = SpeedWindow(minimumBytes: 600)
    #expect(slowSlice(of: &fast, Array(repeating: 100, count: 1_000)) == nil)
    var uneven = SpeedWindow(minimumBytes: 600)
    #expect(slowSlice(of: &uneven, (0..<1_000).map { $0 % 6 == 3 ? 600 : 0 }) == nil)
    var slow = SpeedWindow(minimumBytes: 600)
    #expect(slowSlice(of: &slow, Array(repeating: 99, count: 1_000)) == 5)
  }

  @Test("time in which the server makes the other side wait doesn't count")
  func paused() {
    var window = SpeedWindow(minimumBytes: 600)
    #expect(slowSlice(of: &window, Array(repeating: 0, count: 100), paused: Set(0..<100)) == nil)
    #expect(slowSlice(of: &window, Array(repeating: 0, count: 100)) == 5)
  }

  @Test("another body begins anew")
  func restart() {
    var window = SpeedWindow(minimumBytes: 600)
    #expect(slowSlice(of: &window, Array(repeating: 0, count: 5)) == nil)
    window.restart()
    #expect(slowSlice(of: &window, Array(repeating: 0, count: 6)) == 5)
  }
}
#endif
