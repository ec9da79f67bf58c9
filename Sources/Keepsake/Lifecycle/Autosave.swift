package import KeepsakePlatform
public import KeepsakeReplication
import KeepsakeStore

/// Saves a running game automatically: at intervals, after important changes, and when the process is suspended or
/// ended.
///
/// ```swift
/// let autosave = Autosave(game, to: .main, every: .seconds(30)) { world }
/// while running {
///   world.step()
///   try autosave.update()
/// }
/// ```
///
/// Call `update()` each frame, on the thread that owns the world; between captures it only checks the clock. An
/// unchanged world writes nothing. A game without a loop of its own can have a task `run()` it.
///
/// On Apple's systems it observes the notifications of UIKit, AppKit and WatchKit; elsewhere, and in a terminal, it
/// handles the signals SIGTERM, SIGINT, SIGHUP and SIGTSTP. An engine with other lifecycle events calls
/// `deactivate()`, `suspend()`, `resume()` and `terminate()`. SIGKILL, SIGSTOP and a power failure can't be handled:
/// the last durable save remains.
///
/// Not `Sendable`, because it holds the closure that reads the world. There can be several, for different slots.
public final class Autosave<Value> {
  /// What happens at SIGTERM, SIGINT or SIGHUP. Signals that the program already handles itself are left alone.
  public enum SignalHandling: Sendable {
    /// The next `update()` saves, waits until the save is durable, and lets the signal end the process. Without an
    /// `update()` within the deadline plus half a second, the signal ends the process anyway.
    case saveAndEnd
    /// The next `update()` saves and waits. Then `isEndRequested` is true, and the game ends itself.
    case saveAndContinue
    /// Signals and notifications aren't handled: the game calls `deactivate()`, `suspend()`, `resume()` and
    /// `terminate()` itself.
    case ignored
  }

  /// The default time limit for suspending and ending: 2 seconds, the shortest time that operating systems allow.
  public static var standardDeadline: Duration { .seconds(2) }

  /// Why the game asks for background time; for the system's logs.
  private static var reason: String { "Saving the game" }

  private let game: GameData
  private let slot: Slot<Value>
  private let deadline: Duration
  private let value: () -> Value
  private let metadata: () -> SaveMetadata
  private let handling: SignalHandling
  private let signals: SignalWatch?
  private var notifications: NotificationWatch?
  private let activity: ProcessActivity
  /// Takes back that the system must not end the game suddenly, without its last save.
  private var endWork: (@Sendable () -> Void)?
  private var schedule: SaveSchedule
  /// The newest capture, until its result is known.
  private var last: Pending<Version>?
  /// The clock's uptime at which the playtime is zero.
  private var start: Duration
  private var suspendedAt: Duration?
  /// Whether the game is suspended because the process is being stopped. Only then does continuing the process resume
  /// it.
  private var isStopped = false
  /// Whether the game is suspended because of a notification. Only then does a notification resume it.
  private var isInBackground = false

  /// Whether the game is suspended: from `suspend()` to `resume()`, or while the process is about to be stopped.
  /// Meanwhile the game doesn't step its world, and `update()` captures nothing.
  public var isSuspended: Bool { suspendedAt != nil }
  /// Whether the game was asked to end and has saved, or failed to save. The game then leaves its loop.
  public private(set) var isEndRequested = false

  /// Called when the game is about to be suspended, after the capture: for example to restore the terminal or stop the
  /// sound.
  public var onSuspend: (() -> Void)?
  /// Called when the game resumes: for example to set up the terminal again or redraw everything.
  public var onResume: (() -> Void)?
  /// Called once when the game is asked to end, after the capture and before a signal ends the process.
  public var onTerminate: (() -> Void)?
  /// Called with an error that no call of the game can throw: before a signal ends the process, in a notification, and
  /// in `run()`. If nil, the error is written to standard error.
  public var onFailure: ((any Error) -> Void)?

  /// Starts counting; the first save comes after `interval`.
  ///
  /// - Parameters:
  ///   - game: The game's data.
  ///   - slot: The slot to save in.
  ///   - interval: The playtime between two captures. Zero or less: captures at each `update()`, as soon as the
  ///     previous save is durable.
  ///   - debounce: How long to wait after the last call of `setNeedsSave()` before saving. Zero or less: the next
  ///     `update()` saves.
  ///   - maximumDelay: The longest delay after the first of these calls, even if the calls don't stop.
  ///   - handling: What to do at signals.
  ///   - deadline: How long saving may take when the process is stopped or ended; shared by all autosaves of the
  ///     process. After that the process stops or ends in any case, and earlier durable saves remain.
  ///   - metadata: Returns what a slot list shows; called at each capture.
  ///   - value: Returns the current world; called on the thread that calls `update()`.
  public convenience init(
    _ game: GameData, to slot: Slot<Value>, every interval: Duration = .seconds(30),
    debounce: Duration = .milliseconds(500),
    atMost maximumDelay: Duration = .seconds(5), atSignals handling: SignalHandling = .saveAndEnd,
    within deadline: Duration = Autosave.standardDeadline, metadata: @escaping () -> SaveMetadata = { SaveMetadata() },
    value: @escaping () -> Value
  ) {
    self.init(
      game, to: slot, every: interval, debounce: debounce, atMost: maximumDelay, atSignals: handling, within: deadline,
      notifications: .system, activity: .system, metadata: metadata, value: value)
  }

  /// Uses the caller's notifications and background time, for tests.
  package init(
    _ game: GameData, to slot: Slot<Value>, every interval: Duration, debounce: Duration, atMost maximumDelay: Duration,
    atSignals handling: SignalHandling, within deadline: Duration, notifications: LifecycleNotifications,
    activity: ProcessActivity, metadata: @escaping () -> SaveMetadata, value: @escaping () -> Value
  ) {
    self.activity = activity
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
    endWork = activity.beginWork()
    self.notifications = NotificationWatch(notifications, within: self.deadline, activity) { [weak self] event, limit in
      self?.receive(event, within: limit)
    }
  }

  deinit {
    signals?.end()
    notifications?.end()
    endWork?()
  }

  /// How long the game was played since this object was created, without the time that it was suspended or stopped by
  /// SIGTSTP.
  ///
  /// Step physics by differences of this clock, so that the game doesn't jump after a phone call. Includes time during
  /// which SIGSTOP stopped the process.
  public var playtime: Duration { (suspendedAt ?? game.core.environment.uptime()) - start }

  // MARK: Saving

  /// Captures the world if a save is due, and handles signals. If `Cloud.delivery` is `.onUpdate`, it then delivers
  /// changes received from other devices.
  ///
  /// A suspension or an end that a signal or a notification asks for waits for the disk, up to the deadline. Delivering
  /// costs one wait for the disk if there is something to deliver.
  ///
  /// - Throws: As `SaveSlots.capture`, such as `ArchiveError` if the world can't be encoded; the error of an earlier
  ///   capture that failed, such as `StoreError` with `diskFull`, `notPermitted` or `io`. The save is tried again after
  ///   a second, or after the interval if that is shorter. Also what `suspend` and `terminate` throw when a signal or a
  ///   notification asks for them, such as `StoreError` with `timedOut` (if the signal then ends the process,
  ///   `onFailure` gets the error instead); and what `Cloud.update` throws.
  public func update() throws {
    if let event = signals?.take() { try receive(event) }
    if let noted = notifications?.take() {
      defer { notifications?.finished(noted) }
      try handle(noted.event, within: deadline)
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
    // One capture at a time: a slow disk gets the newest state next, not every state in between.
    guard last == nil, schedule.isDue(at: playtime) else { return }
    try saveNow()
  }

  /// Requests a save after an important change, such as a completed level or a purchase. Several calls in a row make
  /// one save: `debounce` after the last call, or at the latest `atMost` after the first.
  ///
  /// - Parameter now: Whether the next `update()` captures without waiting for more calls.
  public func setNeedsSave(now: Bool = false) { schedule.request(urgent: now, at: playtime) }

  /// Captures the world now.
  ///
  /// - Returns: A handle that completes when the version is durable.
  /// - Throws: As `SaveSlots.capture`.
  @discardableResult
  public func saveNow() throws -> Pending<Version> {
    try save { try game.saves.capture(value(), to: slot, metadata()) }
  }

  private func save(_ capture: () throws -> Pending<Version>) throws -> Pending<Version> {
    schedule.captured(at: playtime)
    let pending = try noting(capture)
    last = pending
    return pending
  }

  /// Calls `update()` until the task is cancelled or the game is asked to end: for a game without a loop of its own.
  ///
  /// ```swift
  /// Task { @MainActor in await autosave.run() }
  /// ```
  ///
  /// Runs on the caller's actor. Errors go to `onFailure`. Doesn't save when it is cancelled.
  ///
  /// - Parameter tick: The time between two calls, at least a millisecond. Signals are handled with up to this delay.
  public nonisolated(nonsending) func run(every tick: Duration = .milliseconds(100)) async {
    let tick = min(max(tick, .milliseconds(1)), SaveSchedule.longest)
    while !isEndRequested, !Task.isCancelled {
      do { try update() } catch { report(error) }
      do { try await Task.sleep(for: tick) } catch { return }
    }
  }

  // MARK: Lifecycle

  /// Saves because the player may be about to leave, and the game goes on: a phone call, the switcher, another window.
  /// Captures the world, and waits until the save and the preferences are durable. Does nothing while the game is
  /// suspended, or after it was asked to end.
  ///
  /// Called for the notifications of Apple's systems; an engine elsewhere calls it, for example at Android's `onPause`.
  ///
  /// - Parameter limit: How long to wait for the disk; the autosave's deadline if nil. Encoding the world takes
  ///   additional time.
  /// - Throws: The reason why the save isn't durable, such as `StoreError` with `timedOut`.
  public func deactivate(within limit: Duration? = nil) throws {
    guard !isSuspended, !isEndRequested else { return }
    let end = end(of: limit)
    let isDone = activity.beginBackground(Self.reason)
    defer { ExitWork.afterWorkInFlight(isDone) }
    try settle(Result { try saveNow(until: end) }, until: end)
  }

  /// Suspends the game: captures the world, calls `onSuspend`, and waits until the save and the preferences are
  /// durable. Does nothing if the game is already suspended.
  ///
  /// - Parameter limit: How long to wait for the disk; the autosave's deadline if nil. Encoding the world takes
  ///   additional time.
  /// - Throws: The reason why the save isn't durable, such as `StoreError` with `timedOut`. The game is suspended
  ///   anyway.
  public func suspend(within limit: Duration? = nil) throws {
    guard !isSuspended else {
      // Now the game wants it, too, and so decides when it goes on.
      isInBackground = false
      return
    }
    let end = end(of: limit)
    let isDone = activity.beginBackground(Self.reason)
    defer { ExitWork.afterWorkInFlight(isDone) }
    let saved = Result { try saveNow(until: end) }
    suspendedAt = game.core.environment.uptime()
    onSuspend?()
    try settle(saved, until: end)
  }

  /// Resumes the game. The time since `suspend()` counts neither for the interval nor in `playtime`.
  public func resume() {
    guard let since = suspendedAt else { return }
    start += game.core.environment.uptime() - since
    suspendedAt = nil
    (isStopped, isInBackground) = (false, false)
    onResume?()
  }

  /// Ends the game: captures the world, calls `onTerminate`, and waits until the save is durable. Sets
  /// `isEndRequested`.
  ///
  /// - Parameter limit: How long to wait for the disk; the autosave's deadline if nil. Encoding the world takes
  ///   additional time.
  /// - Throws: The reason why the save isn't durable, such as `StoreError` with `timedOut`.
  public func terminate(within limit: Duration? = nil) throws {
    let end = end(of: limit)
    let isDone = activity.beginBackground(Self.reason)
    defer { ExitWork.afterWorkInFlight(isDone) }
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
    // Commits keep their order, so waiting for the save also waits for the player's preferences.
    game.preferences.commitSoon(within: max(end - .now, .zero))
    return try save { try game.saves.capture(value(), to: slot, metadata(), until: end) }
  }

  private func settle(_ saved: Result<Pending<Version>, any Error>, until end: ContinuousClock.Instant) throws {
    let pending = try saved.get()
    // A save that takes longer continues, and the next `update()` reports its result.
    defer { if pending.isDone { last = nil } }
    _ = try noting { try pending.wait(within: max(end - .now, .zero)) }
  }

  /// Runs `body`. If it throws, the save is tried again soon.
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
      // The signal ends the process, so an error thrown from here on would reach nobody.
      if case .failure(let error) = result { report(error) }
      signals.finishedEnd(signal)
    case .stop:
      isStopped = !isSuspended
      let result = Result { try suspend(within: signals.remaining(event)) }
      signals.finishedStop()
      // By now the process has been stopped and continued, unless another autosave still has to save.
      if let next = signals.take() { try receive(next) }
      try result.get()
    case .resumed(let duration):
      // A game that was stopped before it could save was never suspended, but its clock still skips the stop.
      if !isSuspended { start += duration }
      if isStopped { resume() }
    }
  }

  private func handle(_ event: NotificationWatch.Event, within limit: Duration) throws {
    switch event {
    case .deactivate: try deactivate(within: limit)
    case .suspend:
      guard !isSuspended else { return }
      isInBackground = true
      try suspend(within: limit)
    case .resume:
      // A game that had suspended itself goes on when it wants to.
      if isInBackground { resume() }
    case .terminate: try terminate(within: limit)
    }
  }

  /// Handles an event inside a notification, where nothing can be thrown.
  private func receive(_ event: NotificationWatch.Event, within limit: Duration) {
    do { try handle(event, within: limit) } catch { report(error) }
  }

  private func report(_ error: any Error) {
    if let onFailure { return onFailure(error) }
    SignalGuard.say("the slot \"\(slot.name)\" could not be saved: \(error)")
  }
}
