#if Cloud
import Foundation
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Reports progress on standard error: on a terminal in one line that is overwritten, elsewhere in a line now and then.
final class ProgressLine {
  /// Anything that takes less time than this needs no progress.
  private static let firstAfter: Duration = .seconds(1)
  private static let linesEvery: Duration = .seconds(5)
  private static let rewriteEvery: Duration = .milliseconds(100)

  private let isTerminal: Bool
  private let isQuiet: Bool
  private var began: ContinuousClock.Instant?
  private var last: ContinuousClock.Instant?
  private var isShown = false

  init(quiet: Bool) {
    isQuiet = quiet
    isTerminal = isatty(STDERR_FILENO) == 1
  }

  /// Shows `text`, not too soon and not too often.
  func update(_ text: String) {
    guard !isQuiet else { return }
    let now = ContinuousClock.now
    let start = began ?? now
    began = start
    guard now - start >= Self.firstAfter else { return }
    if let last, now - last < (isTerminal ? Self.rewriteEvery : Self.linesEvery) { return }
    last = now
    if isTerminal {
      isShown = true
      FileHandle.standardError.write(Data("\r\u{1B}[K\(Printable.text(text))".utf8))
    } else {
      Output.complaint(Printable.text(text))
    }
  }

  // An error that ends a command is printed on a line of its own.
  deinit { clear() }

  /// Removes the line; the next update counts as something new.
  func clear() {
    began = nil
    last = nil
    guard isShown else { return }
    isShown = false
    FileHandle.standardError.write(Data("\r\u{1B}[K".utf8))
  }
}
#endif
