#if Cloud
import Logging
import ServiceLifecycle
import UnixSignals

/// Reads files again when the process gets a signal, as operators' tools send SIGHUP after they replaced a certificate.
struct HangupService: Service {
  let signals: [UnixSignal]
  let logger: Logger
  let reload: @Sendable () -> Void

  func run() async throws {
    for await signal in await UnixSignalsSequence(trapping: signals).cancelOnGracefulShutdown() {
      logger.notice("Reading files again", metadata: ["signal": "\(signal)"])
      reload()
    }
    // A service that ends early would stop the others.
    try await gracefulShutdown()
  }
}
#endif
