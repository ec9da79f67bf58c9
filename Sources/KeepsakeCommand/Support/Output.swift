#if Cloud
import ArgumentParser
import Foundation
import KeepsakeArchive
import KeepsakePlatform
import KeepsakeReplication
import Synchronization
/// Writes to standard output and standard error immediately, unbuffered: other programs wait for these lines through a
/// pipe. All JSON of the command has one layout, that of `JSONWriter`, with sorted names.
///
/// Every command writes to either of them only through this type, which alone decides what an output means that can't
/// be written.
enum Output {
  /// Why standard output could not be written, the first time that it couldn't.
  private static let failure = Mutex<CommandFailure?>(nil)
  private static let isReaderGone = Mutex(false)

  /// Whether standard output still has a reader, as far as the last lines have shown. Only for work that is done for
  /// nobody else.
  static var hasReader: Bool { !isReaderGone.withLock { $0 } }

  /// Whether standard output has got everything so far: for what is shown only once.
  static var isWhole: Bool { hasReader && failure.withLock { $0 == nil } }

  static func text(_ text: String) {
    write(Data((text + "\n").utf8), to: .standardOutput)
  }

  /// Writes bytes that are complete already, including the last line feed.
  static func bytes(_ bytes: Data) {
    write(bytes, to: .standardOutput)
  }

  /// Writes bytes that are complete already, including the last line feed, to standard error.
  static func errorBytes(_ bytes: Data) {
    write(bytes, to: .standardError)
  }

  static func complaint(_ text: String) {
    write(Data((text + "\n").utf8), to: .standardError)
  }

  /// Writes one JSON object on one line.
  static func line(_ value: some Encodable) { text(json(value)) }

  /// Writes a failure as JSON.
  static func failure(_ report: ErrorReport, as form: JSONForm) {
    switch form {
    case .object: bytes(laidOut(report) { JSONWriter() } + Data("\n".utf8))
    case .lines: line(report)
    case .linesBesideProgram: complaint(json(report))
    }
  }

  /// Returns one JSON object as one line, without the line feed. For flat objects of texts and numbers, which can
  /// always be written as JSON.
  static func json(_ value: some Encodable) -> String {
    String(decoding: laidOut(value) { JSONWriter(isOnOneLine: true) }, as: UTF8.self)
  }

  private static func laidOut(_ value: some Encodable, by writer: () -> JSONWriter) -> Data {
    do {
      return try encode(value, writer())
    } catch {
      return Data(
        #"{"error":{"code":"software","message":"a line could not be written as JSON"},"event":"error"}"#.utf8)
    }
  }

  /// Writes one JSON document, for people and programs.
  ///
  /// - Throws: `CommandFailure` if `value` can't be written as JSON; nothing was written then.
  static func document(_ value: some Encodable) throws { write(try data(value), to: .standardOutput) }

  /// Returns one JSON document, for people and programs, with the last line feed.
  ///
  /// - Throws: `CommandFailure` if `value` can't be written as JSON.
  static func data(_ value: some Encodable) throws -> Data {
    do {
      return try encode(value, JSONWriter()) + Data("\n".utf8)
    } catch {
      throw CommandFailure(
        .software, "the result can't be written as JSON: \(ErrorReason.text(error))",
        next: "leave out --json to print it as text")
    }
  }

  private static func encode(_ value: some Encodable, _ writer: JSONWriter) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    var json = writer
    json.value(json: try encoder.encode(value))
    return json.take()
  }

  private static func write(_ data: Data, to handle: FileHandle) {
    do {
      try handle.write(contentsOf: data)
    } catch {
      // If the reader of these lines is gone, there is nobody to report it to. Anything else is reported at the end of
      // the command. The work goes on.
      let number = ErrorReason.systemNumber(of: error)
      guard handle === FileHandle.standardOutput else { return }
      guard number != EPIPE else { return isReaderGone.withLock { $0 = true } }
      failure.withLock { failure in
        guard failure == nil else { return }
        let advice = number == ENOSPC || number == EDQUOT ? "make room and try again" : nil
        failure = CommandFailure(
          .io, "standard output can't be written: \(ErrorReason.text(error))", next: advice)
      }
    }
  }

  /// Returns the error with which the command ends: its own or, if it has nothing worse than a result to tell and that
  /// could not be written, this failure, which is reported to people.
  static func failed(after error: any Error) -> any Error {
    guard let failure = failure.withLock({ $0 }) else { return error }
    CommandRun.complain(of: failure)
    guard let own = error as? ExitCode, own.rawValue < CommandFailure.Kind.usage.rawValue else { return error }
    return ExitCode(failure.kind.rawValue)
  }
}
#endif
