#if PostgreSQL
import Dispatch
import KeepsakePlatform
import TestSupport
import Testing

@testable import KeepsakePostgreSQL

/// What has called libpq must be gone before the process ends (`LibraryThread`).
@Suite("Nothing is left of a thread", .hangLimit) struct ThreadEndTests {
  @Test("that had a connection, once its pool is closed, whoever closes it", .enabled(if: TestServer.address != nil))
  func pool() async throws {
    let pool = PostgreSQLPool(PostgreSQLSettings(try #require(TestServer.address)), connections: 1)
    let mark = ThreadMark()
    try await pool.transaction { _ in mark.set() }
    #expect(!mark.isGone)
    async let first: Void = pool.finish()
    await pool.finish()
    #expect(mark.isGone)
    await first
    await #expect(throws: PostgreSQLError.self) { try await pool.run([]) }
  }

  @Test("that listened, once it is closed", .enabled(if: TestServer.address != nil))
  func listener() async throws {
    let mark = ThreadMark()
    let heard = DispatchSemaphore(value: 0)
    try await onThread {
      let listener = PostgreSQLListener(PostgreSQLSettings(try #require(TestServer.address)), channel: "ends") { _ in
        mark.set()
        heard.signal()
      }
      heard.wait()
      listener.close()
    }
    #expect(mark.isGone)
  }

  @Test("that was only to return something, once it has")
  func result() async throws {
    let mark = ThreadMark()
    let value = await LibraryThread.result {
      mark.set()
      return 3
    }
    #expect(value == 3 && mark.isGone)
  }

  @Test("what its body holds is let go of when the body has returned")
  func body() async throws {
    final class Held: Sendable {}
    weak var held: Held?
    let thread = try { () -> LibraryThread in
      let new = Held()
      held = new
      return try #require(LibraryThread("test") { withExtendedLifetime(new) {} })
    }()
    try await onThread { thread.join() }
    #expect(held == nil)
    withExtendedLifetime(thread) {}
  }
}
#endif
