import Foundation
import Testing

@testable import Keepsake

/// Calls that a running game makes again and again.
@Suite struct CloudLinkTests {
  @Test("calling the cloud 200,000 times takes no more stack than calling it once")
  func asksForHours() async throws {
    let game = try Device().open()
    defer { end(game) }
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      let thread = Thread {
        continuation.resume(
          with: Result {
            for _ in 0..<200_000 {
              _ = game.core.cloud.status
              game.core.cloud.didCommit()
            }
            for _ in 0..<1_000 { try game.core.cloud.deliver() }
          })
      }
      thread.stackSize = 1 << 20
      thread.start()
    }
    #expect(game.core.cloud.status.phase == .off)
  }
}
