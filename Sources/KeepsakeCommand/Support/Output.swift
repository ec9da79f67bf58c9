#if Cloud
import Foundation

/// Writes to standard output and standard error at once, unbuffered: others wait for these lines through a pipe.
enum Output {
  static func text(_ text: String) {
    write(Data((text + "\n").utf8), to: .standardOutput)
  }

  static func complaint(_ text: String) {
    write(Data((text + "\n").utf8), to: .standardError)
  }

  /// One JSON object on one line.
  static func line(_ value: some Encodable) { text(json(value)) }

  /// One JSON object as one line, without its end.
  static func json(_ value: some Encodable) -> String {
    String(decoding: encode(value, pretty: false).dropLast(), as: UTF8.self)
  }

  /// One JSON document for people and programs.
  static func document(_ value: some Encodable) {
    write(encode(value, pretty: true), to: .standardOutput)
  }

  private static func encode(_ value: some Encodable, pretty: Bool) -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = pretty ? [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted] : [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    do {
      return try encoder.encode(value) + Data("\n".utf8)
    } catch {
      return Data("{\"error\":{\"code\":\"software\",\"message\":\"the answer could not be written as JSON\"}}\n".utf8)
    }
  }

  private static func write(_ data: Data, to handle: FileHandle) {
    do {
      try handle.write(contentsOf: data)
    } catch {
      // Whoever read these lines is gone; there is nobody left to tell, and the work goes on.
      return
    }
  }
}
#endif
