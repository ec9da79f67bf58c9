public import KeepsakeArchive
public import KeepsakeReplication
import KeepsakeStore

/// Saves a running game by itself: at intervals, when something important happened, and when the process is told to end.
///
///     let autosave = Autosave(game, to: .main, every: .seconds(30)) { world }
///     while running {
///       world.step()
///       try autosave.update()
///     }
///
/// Call `update()` each frame, on the thread that owns the world; between captures it costs a look at the clock. A world
/// that hasn't changed writes nothing. Not `Sendable`: it holds the closure that reads the world.
public final class Autosave<Value: Archivable> {
  /// What happens when the process gets SIGTERM, SIGINT or SIGHUP. Signals that the program handles itself are left to it.
  public enum SignalHandling: Sendable {
    /// The next `update()` saves, waits until that is durable, and lets the signal end the process.
    case saveAndEnd
    /// The next `update()` saves and waits; then `isEndRequested` is true and the game ends by itself.
    case saveAndContinue
    /// Signals do what they would do without an autosave.
    case ignored
  }

  private let game: GameData
  private let slot: Slot<Value>
  private let interval: Duration
  private let value: () -> Value
  private let metadata: () -> SaveMetadata
  private let signals: SignalWatch?
  private let handling: SignalHandling
  private var due: Duration
  private var needsSave = false
  private var last: Pending<Version>?
  /// True once the process was told to end and the save was made. Only with `saveAndContinue`.
  public private(set) var isEndRequested = false

  /// - Parameters:
  ///   - interval: From one capture to the next. `setNeedsSave()` and `saveNow()` come in between.
  ///   - handling: What to do at signals.
  ///   - metadata: What a slot list shall show; called at each capture.
  ///   - value: The world as it is; called on the thread that calls `update()`.
  public init(
    _ game: GameData, to slot: Slot<Value>, every interval: Duration = .seconds(30),
    atSignals handling: SignalHandling = .saveAndEnd, metadata: @escaping () -> SaveMetadata = { SaveMetadata() },
    value: @escaping () -> Value
  ) {
    self.game = game
    self.slot = slot
    self.interval = interval
    self.handling = handling
    self.metadata = metadata
    self.value = value
    due = game.core.environment.uptime() + interval
    if case .ignored = handling { signals = nil } else { signals = SignalWatch.begin() }
  }

  deinit { signals?.end() }

  /// Captures if it is time to. Throws what a capture throws, and why an earlier one could not be kept; the next comes after
  /// the interval in any case.
  public func update() throws {
    if let signal = signals?.take() { return try end(by: signal) }
    try throwFailure()
    let now = game.core.environment.uptime()
    guard needsSave || now >= due else { return }
    try saveNow()
  }

  /// The next `update()` captures: after a level, a purchase, a phone call.
  public func setNeedsSave() { needsSave = true }

  /// Captures now.
  @discardableResult
  public func saveNow() throws -> Pending<Version> {
    needsSave = false
    due = game.core.environment.uptime() + interval
    let pending = try game.saves.capture(value(), to: slot, metadata())
    last = pending
    return pending
  }

  private func throwFailure() throws {
    guard let last, last.isDone else { return }
    self.last = nil
    try last.wait(within: .zero)
  }

  /// The process shall end: the world is made durable first. Whoever sent the signal may not wait for long.
  private func end(by signal: Int32) throws {
    defer {
      isEndRequested = true
      if case .saveAndEnd = handling { signals?.raiseWhenAllTook(signal) }
    }
    try saveNow().wait(within: .seconds(5))
    last = nil
  }
}
