#if Cloud
package import Foundation
package import Logging
import Synchronization

/// Writes each event of a log as one line of JSON, for machines that collect logs.
///
///     {"label":"keepsake.server","level":"warning","message":"Refused","kind":"unauthorized","time":"2026-01-02T..."}
///
/// Metadata are fields beside these; one with the name of a field of the line gets `_` in front.
package struct JSONLineLogHandler: LogHandler {
  private static let ownFields: Set<String> = ["label", "level", "message", "time"]

  /// To the millisecond, in UTC.
  private static let timeStyle = Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day()
    .timeZone(separator: .omitted).time(includingFractionalSeconds: true).timeSeparator(.colon)

  package var metadata: Logger.Metadata = [:]
  package var logLevel: Logger.Level
  private let label: String
  private let write: @Sendable (Data) -> Void

  /// - Parameter write: Writes a whole line.
  package init(label: String, level: Logger.Level, write: @escaping @Sendable (Data) -> Void) {
    (self.label, logLevel, self.write) = (label, level, write)
  }

  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  package func log(event: LogEvent) {
    var fields: [String: Any] = [
      "label": label, "level": event.level.rawValue, "message": event.message.description,
      "time": Date().formatted(Self.timeStyle),
    ]
    for (name, value) in metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 }) {
      fields[Self.ownFields.contains(name) ? "_" + name : name] = Self.json(value)
    }
    if let error = event.error { fields["error"] = String(describing: error) }
    do {
      // All of it is text, lists and maps, which can always be written.
      let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
      write(try JSONSerialization.data(withJSONObject: fields, options: options) + Data("\n".utf8))
    } catch {
      write(Data(#"{"level":"error","message":"A line of the log can't be written as JSON"}\n"#.utf8))
    }
  }

  private static func json(_ value: Logger.Metadata.Value) -> Any {
    switch value {
    case .string(let text): text
    case .stringConvertible(let value): value.description
    case .array(let values): values.map(json)
    case .dictionary(let values): values.mapValues(json)
    }
  }
}
#endif
