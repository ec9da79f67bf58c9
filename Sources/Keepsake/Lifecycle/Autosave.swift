public import KeepsakeArchive
public import KeepsakeReplication
import KeepsakeStore

/// Saves a running game by itself: at intervals, when something important happened, and when the game is stopped or ended from outside.
///
///     let autosave = Autosave(game, to: .main, every: .seconds(30)) { world }
///     while running {
///       world.step()
///       try autosave.update()
///     }
///
/// Call `update()` each frame, on the thread that owns the world; between captures it costs a look at the clock. A world
/// that hasn't changed writes nothing. A game without a loop of its own can let a task `run()` it.
///
/// On Apple's systems the notifications of UIKit, AppKit and WatchKit are heard, elsewhere and in a terminal the signals SIGTERM, SIGINT,
/// SIGHUP and SIGTSTP. An engine that learns of such things in another way passes them on with `suspend()`, `resume()` and
/// `terminate()`. SIGKILL, SIGSTOP and a dead battery can't be heard by anybody: what comes back then is the last save.
///
/// Not `Sendable`: it holds the closure that reads the world. Several at once, for several slots, are fine.
public final class Autosave<Value: Archivable> {
  /// What happens when the process gets SIGTERM, SIGINT or SIGHUP. Signals that the program handles itself are left to it.
  public enum SignalHandling: Sendable {
    /// The next `update()` saves, waits until that is durable, and lets the signal end the process. If no `update()` comes within the
    /// deadline and half a second more, the signal ends it without.
    case saveAndEnd
    /// The next `update()` saves and waits; then `isEndRequested` is true and the game ends by itself.
    case saveAndContinue
    /// Signals do what they would do without an autosave, and no notification is heard: the game calls `suspend()`, `resume()` and
    /// `terminate()` where it wants them.
    case ignored
  }

  /// How long stopping and ending may take if nothing else is said: what systems give at the least.
  public static var standardDeadline: Duration { .seconds(2) }

  private let game: GameData
  private let slot: Slot<Value>
  private let deadline: Duration
  private let value: () -> Value
  private let metadata: () -> SaveMetadata
  private let handling: SignalHandling
  private let signals: SignalWatch?
  private var notifications: NotificationWatch?
  private var schedule: SaveSchedule
  /// The newest capture, until it is known how it ended.
  private var last: Pending<Version>?
  /// What the clock shows when no time has been played.
  private var start: Duration
  private var suspendedAt: Duration?
  /// Suspended because the process stops: it is resumed when the process goes on, and only then.
  private var isStopped = false

  /// True from `suspend()` to `resume()`, or while the process is about to be stopped. The game doesn't step its world then, and
  /// `update()` captures nothing.
  public var isSuspended: Bool { suspendedAt != nil }
  /// True once the game was told to end and the save was made, or could not be. The game leaves its loop then.
  public private(set) var isEndRequested = false

  /// Called when the game is about to be stopped: to restore the terminal, to stop the sound. The world has been captured before.
  public var onSuspend: (() -> Void)?
  /// Called when the game goes on: to take the terminal again, to draw everything anew.
  public var onResume: (() -> Void)?
  /// Called once, when the game is told to end, before a signal ends it. The world has been captured before.
  public var onTerminate: (() -> Void)?
  /// Called with what went wrong where no call of the game can throw it: before a signal ends the process, within a notification,
  /// and in `run()`. Without it, a line on standard error tells.
  public var onFailure: ((any Error) -> Void)?

  /// Begins to count; the first save comes after `interval`.
  ///
  /// - Parameters:
  ///   - interval: From one capture to the next, in time that was played. Zero or less: at each `update()`, as soon as the save before
  ///     it is durable.
  ///   - debounce: How long nobody may have called `setNeedsSave()` before that makes a save. Zero or less: the next `update()` does.
  ///   - maximumDelay: When it makes one at the latest, though the calls don't end.
  ///   - handling: What to do at signals.
  ///   - deadline: How long saving may take when the process is stopped or ended; all autosaves of the process share it. Then the process
  ///     stops or ends in any case, and what was durable before stands.
  ///   - metadata: What a slot list shall show; called at each capture.
  ///   - value: The world as it is; called on the thread that calls `update()`.
  public convenience init(
    _ game: GameData, to slot: Slot<Value>, every interval: Duration = .seconds(30), debounce: Duration = .milliseconds(500),
    atMost maximumDelay: Duration = .seconds(5), atSignals handling: SignalHandling = .saveAndEnd,
    within deadline: Duration = Autosave.standardDeadline, metadata: @escaping () -> SaveMetadata = { SaveMetadata() },
    value: @escaping () -> Value
  ) {
    self.init(
      game, to: slot, every: interval, debounce: debounce, atMost: maximumDelay, atSignals: handling, within: deadline,
      notifications: .system, metadata: metadata, value: value)
  }

  /// With notifications of the caller's, for tests.
  package init(
    _ game: GameData, to slot: Slot<Value>, every interval: Duration, debounce: Duration, atMost maximumDelay: Duration,
    atSignals handling: SignalHandling, within deadline: Duration, notifications: LifecycleNotifications,
    metadata: @escaping () -> SaveMetadata, value: @escaping () -> Value
  ) {
    self.game = game
    self.slot = slot
    self.deadline = min(max(deadline, .zero), SaveSchedule.longest)
    self.handling = handling
    self.metadata = metadata
    self.value = value
    start = game.core.environment.uptime()
    schedule = SaveSchedule(every: interval, debounce: debounce, atMost: maximumDelay, now: .zero)
    var signals: SignalWatch?
    switch handling {
    case .saveAndEnd: signals = SignalWatch.begin(ending: true, within: self.deadline)
    case .saveAndContinue: signals = SignalWatch.begin(ending: false, within: self.deadline)
    case .ignored: break
    }
    self.signals = signals
    guard handling != .ignored else { return }
    self.notifications = NotificationWatch(notifications, within: self.deadline) { [weak self] event in self?.receive(event) }
  }

  deinit {
    signals?.end()
    notifications?.end()
  }

  /// How long the game was played since this was made: without the time that it was suspended or stopped by SIGTSTP.
  ///
  /// A game that steps its physics by the difference of two looks at this clock doesn't jump after a phone call. SIGSTOP can't be heard,
  /// so the time it takes counts.
  public var playtime: Duration { (suspendedAt ?? game.core.environment.uptime()) - start }

  // MARK: Saving

  /// Captures if it is time to, and does what signals ask for. Where `Cloud.delivery` is `.onUpdate`, shows what came from other devices
  /// after that.
  ///
  /// Throws what a capture throws (`ArchiveError` for a world that can't be encoded), and why an earlier one could not be kept
  /// (`StoreError`: `diskFull`, `notPermitted`, `io`). It is tried again a second later, or after the interval if that is shorter.
  public func update() throws {
    if let event = signals?.take() { try receive(event) }
    if let noted = notifications?.take() {
      defer { notifications?.finished(noted) }
      try handle(noted.event)
    }
    guard !isSuspended else { return }
    try captureIfDue()
    try game.cloud.update()
  }

  private func captureIfDue() throws {
    if let last, last.isDone {
      self.last = nil
      _ = try noting { try last.wait(within: .zero) }
    }
    // One at a time: a slow disk gets the newest state next, not all of them.
    guard last == nil, schedule.isDue(at: playtime) else { return }
    try saveNow()
  }

  /// Something changed that shall be saved: a level, a purchase. Many calls in a burst make one save, once they have ceased for the time
  /// `debounce`, and at the latest `atMost` after the first.
  ///
  /// - Parameter now: The next `update()` captures, without waiting for more.
  public func setNeedsSave(now: Bool = false) { schedule.request(urgent: now, at: playtime) }

  /// Captures now, without looking at the time.
  @discardableResult
  public func saveNow() throws -> Pending<Version> { try save { try game.saves.capture(value(), to: slot, metadata()) } }

  private func save(_ capture: () throws -> Pending<Version>) throws -> Pending<Version> {
    schedule.captured(at: playtime)
    let pending = try noting(capture)
    last = pending
    return pending
  }

  /// Calls `update()` until the task is cancelled or the game is told to end: for a game that has no loop of its own.
  ///
  ///     Task { @MainActor in await autosave.run() }
  ///
  /// Runs where it is called, beside whatever else is done there. Failures go to `onFailure`, and it goes on. Saves nothing when it is
  /// cancelled.
  ///
  /// - Parameter tick: From one look to the next; a millisecond at the least. Signals are seen to as late as that.
  public nonisolated(nonsending) func run(every tick: Duration = .milliseconds(100)) async {
    let tick = min(max(tick, .milliseconds(1)), SaveSchedule.longest)
    while !isEndRequested, !Task.isCancelled {
      do { try update() } catch { report(error) }
      do { try await Task.sleep(for: tick) } catch { return }
    }
  }

  // MARK: Lifecycle

  /// The game is about to be stopped, by the system or the player: saves, calls `onSuspend`, and waits until the save is durable, and with it
  /// what was set in `GameData.preferences`.
  ///
  /// Does nothing if the game is suspended already. Throws why the save isn't durable, `StoreError.Code.timedOut` among it; the game is
  /// suspended nevertheless. Waits for the disk for at most `limit`, the autosave's deadline if it is nil; reading and encoding the world
  /// takes the time it takes.
  public func suspend(within limit: Duration? = nil) throws {
    guard !isSuspended else { return }
    let end = end(of: limit)
    let saved = Result { try saveNow(until: end) }
    suspendedAt = game.core.environment.uptime()
    onSuspend?()
    try settle(saved, until: end)
  }

  /// The game goes on. The time since `suspend()` counts neither for the interval nor in `playtime`.
  public func resume() {
    guard let since = suspendedAt else { return }
    start += game.core.environment.uptime() - since
    suspendedAt = nil
    isStopped = false
    onResume?()
  }

  /// The game is about to end: saves, calls `onTerminate`, and waits until the save is durable. Then `isEndRequested` is true.
  ///
  /// Throws why the save isn't durable, `StoreError.Code.timedOut` among it. Waits for the disk for at most `limit`, the autosave's
  /// deadline if it is nil; reading and encoding the world takes the time it takes.
  public func terminate(within limit: Duration? = nil) throws {
    let end = end(of: limit)
    let saved = Result { try saveNow(until: end) }
    if !isEndRequested {
      isEndRequested = true
      onTerminate?()
    }
    try settle(saved, until: end)
  }

  private func end(of limit: Duration?) -> ContinuousClock.Instant {
    .now + min(max(limit ?? deadline, .zero), SaveSchedule.longest)
  }

  private func saveNow(until end: ContinuousClock.Instant) throws -> Pending<Version> {
    // Commits keep their order: whoever waits for the save has waited for what the player chose, too.
    game.preferences.commitSoon(within: max(end - .now, .zero))
    return try save { try game.saves.capture(value(), to: slot, metadata(), until: end) }
  }

  private func settle(_ saved: Result<Pending<Version>, any Error>, until end: ContinuousClock.Instant) throws {
    let pending = try saved.get()
    // One that takes longer goes on, and the next `update()` tells how it ended.
    defer { if pending.isDone { last = nil } }
    _ = try noting { try pending.wait(within: max(end - .now, .zero)) }
  }

  /// Whatever wasn't kept is tried again soon.
  private func noting<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      schedule.failed(at: playtime)
      throw error
    }
  }

  private func receive(_ event: SignalWatch.Event) throws {
    guard let signals else { return }
    switch event {
    case .end(let signal):
      let result = Result { try terminate(within: signals.remaining(event)) }
      guard handling == .saveAndEnd else {
        signals.finishedEnd(nil)
        return try result.get()
      }
      // Nothing that is thrown from here on would reach anybody.
      if case .failure(let error) = result { report(error) }
      signals.finishedEnd(signal)
    case .stop:
      isStopped = !isSuspended
      let result = Result { try suspend(within: signals.remaining(event)) }
      signals.finishedStop()
      // Stopped and continued by now, unless another autosave has to save first.
      if let next = signals.take() { try receive(next) }
      try result.get()
    case .resumed(let duration):
      // A game that was stopped before it could save never was suspended; its clock skips the stop all the same.
      if !isSuspended { start += duration }
      if isStopped { resume() }
    }
  }

  private func handle(_ event: NotificationWatch.Event) throws {
    switch event {
    case .suspend: try suspend()
    case .resume: resume()
    case .terminate: try terminate()
    }
  }

  /// Within a notification, where nothing can be thrown.
  private func receive(_ event: NotificationWatch.Event) {
    do { try handle(event) } catch { report(error) }
  }

  private func report(_ error: any Error) {
    if let onFailure { return onFailure(error) }
    SignalGuard.say("the slot \"\(slot.name)\" could not be saved: \(error)")
  }
}
