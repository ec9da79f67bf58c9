#if Cloud
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Budgets that requests share", .hangLimit)
struct AllotmentTests {
  private final class Counts: Sendable {
    let state = Mutex((running: 0, most: 0, done: 0, refused: 0))
  }

  @Test("shares are limited together, and come back when they are ended or forgotten")
  func shares() {
    let allotment = Allotment(100)
    let first = allotment.share(60)
    #expect(first != nil && allotment.share(41) == nil)
    #expect(first?.grow(by: 40) == true && first?.grow(by: 1) == false)
    first?.end()
    #expect(allotment.use.used == 0)
    do {
      let second = allotment.share(100)
      #expect(second != nil && allotment.use.used == 100)
    }
    #expect(allotment.use.used == 0 && allotment.use.most == 100)
  }

  @Test("those who wait are served in their order, a large one not being overtaken, and one too many is refused")
  func waiting() async throws {
    let allotment = Allotment(100, waiters: 2)
    let held = allotment.share(50)
    let order = Shared<[Int]>([])
    let large = Task {
      let share = await allotment.wait(for: 1_000)
      order.value.append(100)
      share?.end()
    }
    try await until("the large one waits") { allotment.use.waiting == 1 }
    let small = Task {
      let share = await allotment.wait(for: 1)
      order.value.append(1)
      share?.end()
    }
    try await until("the small one waits, too") { allotment.use.waiting == 2 }
    #expect(await allotment.wait(for: 1) == nil)
    held?.end()
    await large.value
    await small.value
    #expect(order.value == [100, 1] && allotment.use.used == 0)
  }

  @Test("a request whose client has gone leaves the queue, and what waits behind it goes on")
  func cancelled() async throws {
    let allotment = Allotment(100, waiters: 8)
    let held = allotment.share(50)
    let large = Task { await allotment.wait(for: 100) == nil }
    try await until("the large one waits") { allotment.use.waiting == 1 }
    let small = Task { await allotment.wait(for: 1) != nil }
    try await until("the small one waits, too") { allotment.use.waiting == 2 }
    large.cancel()
    #expect(await large.value)
    #expect(await small.value)
    held?.end()
  }

  @Test("no more work runs at a time than there are threads for it, and work beyond the queue is refused")
  func threads() async throws {
    let threads = WorkThreads(running: 2, waiting: 3)
    let gate = Gate()
    let counts = Counts()
    // When as many run as can, and those beyond the queue are refused, everything goes on.
    @Sendable func goOnIfFull() {
      let isFull = counts.state.withLock { $0.running == 2 && $0.refused == 5 }
      if isFull { for _ in 0..<5 { gate.open() } }
    }
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<10 {
        group.addTask {
          do {
            try await threads.run {
              counts.state.withLock { counts in
                counts.running += 1
                counts.most = max(counts.most, counts.running)
              }
              goOnIfFull()
              gate.pass()
              counts.state.withLock { counts in
                counts.running -= 1
                counts.done += 1
              }
            }
          } catch {
            counts.state.withLock { $0.refused += 1 }
            goOnIfFull()
          }
        }
      }
    }
    #expect(counts.state.withLock { $0.most == 2 && $0.done == 5 && $0.refused == 5 })
  }
}
#endif
