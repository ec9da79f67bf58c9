#if Cloud
import Foundation
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// What the operator finds in the server's log.
@Suite struct LogTests {
  private struct Recorder: LogHandler {
    let lines: Shared<[Logger.Metadata]>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.value += [event.metadata ?? [:]] }
  }

  @Test("a failure is logged with the system's reason, and not with the text of Foundation's errors")
  func reason() throws {
    let lines = Shared<[Logger.Metadata]>([])
    let logger = Logger(label: "test") { _ in Recorder(lines: lines) }
    let missing = TemporaryFolder.url()
    #expect(throws: (any Error).self) {
      do {
        try FileManager.default.removeItem(at: missing)
      } catch {
        logger.failure("A file can't be removed", error)
        throw error
      }
    }
    #expect(lines.value == [["error": "No such file or directory"]])
  }
}
#endif
