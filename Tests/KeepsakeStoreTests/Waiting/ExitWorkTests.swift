import Foundation
import KeepsakePlatform
import KeepsakeStore
import TestSupport
import Testing

@Suite struct ExitWorkTests {
  @Test("the system is told of work when it begins, and that it is done when it ends, once")
  func tellsSystem() async throws {
    let (begun, done) = (Shared(0), Shared(0))
    try await onThread {
      let own = Thread.current
      let before = ExitWork.activity
      defer { ExitWork.activity = before }
      ExitWork.activity = ProcessActivity(beginWork: { [box = Unchecked(own)] in
        // What other tests begin meanwhile is theirs.
        guard Thread.current === box.thread else { return {} }
        begun.value += 1
        return { done.value += 1 }
      })
      let number = ExitWork.begin { _ in true }
      #expect((begun.value, done.value) == (1, 0))
      ExitWork.end(number)
      #expect((begun.value, done.value) == (1, 1))
      ExitWork.end(number)
      #expect((begun.value, done.value) == (1, 1))
    }
  }

  /// Compared, and never used.
  private struct Unchecked: @unchecked Sendable {
    let thread: Thread

    init(_ thread: Thread) { self.thread = thread }
  }
}
