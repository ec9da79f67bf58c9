#if Cloud
/// Waits for work that may hang, and not longer than a limit.
enum Deadline {
  struct Passed: Error, CustomStringConvertible {
    var description: String { "it took too long" }
  }

  /// Returns what `work` returns. After the limit, or when the caller is cancelled, its task is cancelled, and nobody
  /// waits for it any more, whether it ends or not.
  ///
  /// - Throws: What `work` throws; `Passed` after the limit; `CancellationError` if the caller is cancelled.
  static func run<Result: Sendable>(
    within limit: Duration, _ work: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let (results, continuation) = AsyncThrowingStream<Result, any Error>.makeStream()
    let worker = Task {
      do {
        continuation.yield(try await work())
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    let timer = Task {
      // A cancelled sleep means that the work has ended.
      do { try await Task.sleep(for: limit) } catch { return }
      continuation.finish(throwing: Passed())
    }
    defer {
      worker.cancel()
      timer.cancel()
    }
    for try await result in results { return result }
    throw CancellationError()
  }
}
#endif
