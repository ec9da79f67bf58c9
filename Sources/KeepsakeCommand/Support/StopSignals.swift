#if Cloud
import Dispatch
import KeepsakePlatform
/// SIGTERM and SIGINT as a stream that can be awaited.
final class StopSignals {
  let stream: AsyncStream<Int32>
  private let continuation: AsyncStream<Int32>.Continuation
  private let sources: [any DispatchSourceSignal]

  /// Catches both signals. `note` also receives each one, immediately and on a thread of its own, for code that can't
  /// await.
  init(note: @escaping @Sendable (Int32) -> Void = { _ in }) {
    let (stream, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingNewest(1))
    self.stream = stream
    self.continuation = continuation
    sources = [SIGTERM, SIGINT].map { number in
      // The default action would end the process before the source receives the signal.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        note(number)
        continuation.yield(number)
      }
      source.resume()
      return source
    }
  }

  deinit {
    for source in sources { source.cancel() }
    continuation.finish()
  }
}
#endif
