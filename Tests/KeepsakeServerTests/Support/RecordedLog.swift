#if Cloud
import Logging
import TestSupport

/// Keeps what is logged, for a test to look at.
struct RecordedLog: LogHandler {
  struct Line: Sendable {
    var level: Logger.Level
    var message: String
    var metadata: Logger.Metadata

    var text: String { "\(level) \(message) \(metadata)" }
  }
  let lines = Shared<[Line]>([])
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.trace

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let metadata = metadata.merging(event.metadata ?? [:]) { $1 }
    lines.value += [Line(level: event.level, message: event.message.description, metadata: metadata)]
  }

  /// A logger that writes to it.
  var logger: Logger { Logger(label: "test") { _ in self } }
}
#endif
