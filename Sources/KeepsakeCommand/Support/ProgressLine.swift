#if Cloud
import Dispatch
import Foundation
import KeepsakePlatform
import Synchronization
/// Reports progress on standard error: on a terminal in one line that is overwritten, elsewhere in a line now and then,
/// and for programs in an object on each line.
///
/// What takes longer than a second is reported by then, even if the step that it is in reports nothing more.
final class ProgressLine: Sendable {
  /// Anything that takes less time than this needs no progress.
  private static let firstAfter: Duration = .milliseconds(700)
  private static let linesEvery: Duration = .seconds(5)
  private static let objectsEvery: Duration = .seconds(1)
  private static let rewriteEvery: Duration = .milliseconds(100)

  private struct State {
    /// What is being done; nil if nothing is.
    var text: String?
    /// The line that was written last.
    var shown: String?
    var began: ContinuousClock.Instant?
    var last: ContinuousClock.Instant?
    /// Whether the terminal's line has to be removed.
    var isOnScreen = false
  }

  /// What programs read.
  private struct Event: Encodable {
    var event = "progress"
    var message: String
  }

  private let isTerminal: Bool
  private let isJSON: Bool
  private let isQuiet: Bool
  private let state = Mutex(State())
  /// Looks every quarter of a second whether there is something to write; nil if it is quiet. Dispatch's sources may be
  /// used on any thread.
  nonisolated(unsafe) private let timer: (any DispatchSourceTimer)?

  /// - Parameters:
  ///   - json: Whether programs read it. It is then the same on a terminal.
  ///   - quiet: Whether nothing is written at all.
  init(json: Bool = false, quiet: Bool = false) {
    (isQuiet, isJSON) = (quiet, json)
    isTerminal = !json && isatty(STDERR_FILENO) == 1
    timer = quiet ? nil : DispatchSource.makeTimerSource(queue: .global())
    timer?.schedule(deadline: .now() + 0.25, repeating: 0.25)
    timer?.setEventHandler { [weak self] in self?.tick() }
    timer?.resume()
  }

  // An error that ends a command is printed on a line of its own.
  deinit {
    timer?.cancel()
    clear()
  }

  /// Shows `text`, not too soon and not too often.
  func update(_ text: String) {
    guard !isQuiet else { return }
    state.withLock { state in
      state.text = text
      write(text, &state)
    }
  }

  /// Removes the line; the next update counts as something new. For programs, only what is being done ends: many short
  /// steps are reported, too.
  func clear() { clear(isOver: !isJSON) }

  /// Removes the line; the next update counts as something new, also for programs.
  func end() { clear(isOver: true) }

  private func clear(isOver: Bool) {
    state.withLock { state in
      if state.isOnScreen { Output.errorBytes(Data("\r\u{1B}[K".utf8)) }
      if isOver { state = State() } else { state.text = nil }
    }
  }

  /// Writes what is being done, with the time if that was written before.
  private func tick() {
    state.withLock { state in
      guard let text = state.text, let began = state.began else { return }
      let seconds = (ContinuousClock.now - began).components.seconds
      write(state.shown?.hasPrefix(text) == true ? "\(text) (\(seconds) s)" : text, &state)
    }
  }

  private func write(_ text: String, _ state: inout State) {
    let now = ContinuousClock.now
    let began = state.began ?? now
    state.began = began
    guard now - began >= Self.firstAfter else { return }
    let every = isTerminal ? Self.rewriteEvery : isJSON ? Self.objectsEvery : Self.linesEvery
    if let last = state.last, now - last < every { return }
    (state.last, state.shown) = (now, text)
    if isTerminal {
      state.isOnScreen = true
      Output.errorBytes(Data("\r\u{1B}[K\(Printable.text(text))".utf8))
    } else if isJSON {
      Output.complaint(Output.json(Event(message: text)))
    } else {
      Output.complaint(Printable.text(text))
    }
  }
}
#endif
