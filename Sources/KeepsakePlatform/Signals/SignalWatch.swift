import Foundation
import Synchronization

/// One autosave's view of the signals that ask the process to end or to stop. No game code runs in a signal handler:
/// the handler records the signal, the game's loop takes it, and once every watch has finished, the signal has its
/// default effect.
package final class SignalWatch: Sendable {
  package enum Event: Sendable {
    /// The process must end by this signal.
    case end(Int32)
    /// The process must stop until it is continued.
    case stop
    /// The process was stopped for this long and has continued.
    case resumed(after: Duration)
  }

  /// How long beyond the deadline a saving game may take, before the signal takes effect without waiting for it.
  static let grace: Duration = .milliseconds(500)

  #if os(Windows)
  package static func begin(ending: Bool, within deadline: Duration) -> SignalWatch? { nil }
  package func take() -> Event? { nil }
  package func remaining(_ event: Event) -> Duration { .zero }
  package func finishedEnd(_ signal: Int32?) {}
  package func finishedStop() {}
  package func end() {}
  #else
  private static let ending: [Int32] = [SIGTERM, SIGINT, SIGHUP]

  /// What one watch has done about the requested end or stop.
  private struct Entry {
    var signals: [Int32]
    var deadline: Duration
    /// Whether an ending signal ends the process; otherwise the game ends itself.
    var ends: Bool
    var hasTakenEnd = false
    var hasFinishedEnd = false
    var hasTakenStop = false
    var hasFinishedStop = false
    var seenStops: Int
    var seenStopped: Duration
  }

  private struct Watches {
    /// How many watches use each signal handled here.
    var users: [Int32: Int] = [:]
    var live: [Int: Entry] = [:]
    var nextID = 0
    /// The signal that ends the process once every watch has finished.
    var wanted: Int32?
    /// When the first watch took the request.
    var endTaken: ContinuousClock.Instant?
    var stopTaken: ContinuousClock.Instant?
    /// Whether a thread is stopping the process right now.
    var isStopping = false
    /// How often, and for how long in total, the process was stopped here.
    var stops = 0
    var stopped: Duration = .zero

    var isEndFinished: Bool { live.values.allSatisfy(\.hasFinishedEnd) }
    var isStopFinished: Bool { live.values.allSatisfy { $0.hasFinishedStop || !$0.signals.contains(SIGTSTP) } }
  }

  private static let watches = Mutex(Watches())
  /// A copy of `Watches.stops` that can be read without the lock.
  private static let stopCount = Atomic(0)
  /// A pipe that wakes the guard.
  private static let wakeUp: (read: Int32, write: Int32) = {
    var ends: [Int32] = [-1, -1]
    // Without a pipe there is no guard: signals then work only while the game's loop runs.
    guard pipe(&ends) == 0 else { return (-1, -1) }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    return (ends[0], ends[1])
  }()

  private let id: Int
  private let signals: [Int32]
  private let seenStops: Atomic<Int>

  private init(_ id: Int, _ signals: [Int32], seenStops: Int) {
    (self.id, self.signals) = (id, signals)
    self.seenStops = Atomic(seenStops)
  }

  // MARK: A watch

  /// Watches those of the signals that the program doesn't handle itself. Returns nil if there are none.
  package static func begin(ending ends: Bool, within deadline: Duration) -> SignalWatch? {
    // Initialized here, before the handler may need them.
    SignalNotes.prepare()
    _ = wakeUp
    let watch: SignalWatch? = watches.withLock { watches in
      var signals = (ending + [SIGTSTP, SIGCONT]).filter { number in
        if watches.users[number] == nil {
          let before = signal(number, handler)
          // Nil means the default action. Any other handler is restored.
          guard before == nil else {
            signal(number, before)
            return false
          }
        }
        watches.users[number, default: 0] += 1
        return true
      }
      // SIGCONT alone is useless to a watch that doesn't receive stops.
      if signals == [SIGCONT] {
        drop(SIGCONT, from: &watches)
        signals = []
      }
      guard !signals.isEmpty else { return nil }
      watches.nextID += 1
      watches.live[watches.nextID] = Entry(
        signals: signals, deadline: deadline, ends: ends, seenStops: watches.stops, seenStopped: watches.stopped)
      return SignalWatch(watches.nextID, signals, seenStops: watches.stops)
    }
    if watch != nil { SignalGuard.start(wokenBy: wakeUp.read) }
    return watch
  }

  /// Returns the next event for this watch, each event once. Costs three atomic loads if there is none.
  package func take() -> Event? {
    let end = SignalNotes.endSignal
    let stop = SignalNotes.stop
    let stops = Self.stopCount.load(ordering: .acquiring)
    guard end != 0 || stop != .none || stops != seenStops.load(ordering: .relaxed) else { return nil }
    return Self.watches.withLock { watches in
      // A watch that suspended its game for the stop sees it as a stop that took no time.
      if stop == .takenBack, !watches.isStopping, SignalNotes.move(from: .takenBack, to: .none) {
        Self.stopped(for: .zero, in: &watches)
      }
      guard var entry = watches.live[id] else { return nil }
      defer { watches.live[id] = entry }
      if entry.seenStops != watches.stops {
        let missed = watches.stopped - entry.seenStopped
        (entry.seenStops, entry.seenStopped) = (watches.stops, watches.stopped)
        (entry.hasTakenStop, entry.hasFinishedStop) = (false, false)
        seenStops.store(watches.stops, ordering: .relaxed)
        return .resumed(after: missed)
      }
      if end != 0, signals.contains(end), !entry.hasTakenEnd {
        entry.hasTakenEnd = true
        watches.endTaken = watches.endTaken ?? .now
        return .end(end)
      }
      if stop == .asked, signals.contains(SIGTSTP), !watches.isStopping, !entry.hasTakenStop {
        entry.hasTakenStop = true
        watches.stopTaken = watches.stopTaken ?? .now
        return .stop
      }
      return nil
    }
  }

  /// How much of the deadline is left. All watches share it, because the sender of the signal waits for all of them.
  package func remaining(_ event: Event) -> Duration {
    Self.watches.withLock { watches in
      let taken: ContinuousClock.Instant? =
        switch event {
        case .end: watches.endTaken
        case .stop: watches.stopTaken
        case .resumed: nil
        }
      let deadline = watches.live[id]?.deadline ?? .zero
      return max(deadline - (taken.map { ContinuousClock.now - $0 } ?? .zero), .zero)
    }
  }

  /// Records that this watch is ready for the process to end. If a signal is passed, it ends the process as soon as
  /// every watch is ready.
  package func finishedEnd(_ number: Int32?) {
    Self.watches.withLock { watches in
      watches.live[id]?.hasFinishedEnd = true
      if let number { watches.wanted = number }
    }
    Self.endIfDue()
  }

  /// Records that this watch is ready for the stop. The last one stops the process, and returns when the process
  /// continues.
  package func finishedStop() {
    Self.watches.withLock { $0.live[id]?.hasFinishedStop = true }
    Self.stopIfDue()
  }

  /// Ends this watch, and restores the default action of every signal that no autosave watches any more.
  package func end() {
    let undelivered: [Int32] = Self.watches.withLock { watches in
      for number in signals {
        Self.drop(number, from: &watches)
      }
      let entry = watches.live.removeValue(forKey: id)
      guard watches.live.isEmpty else { return [] }
      // The next watch starts from scratch. A signal that came too late for the last watch has the effect it would have
      // had without one.
      let number = SignalNotes.takeEnd()
      let isStopAsked = SignalNotes.takeStop() == .asked
      (watches.endTaken, watches.stopTaken) = (nil, nil)
      return (number != 0 && entry?.hasTakenEnd != true ? [number] : [])
        + (isStopAsked && !watches.isStopping ? [SIGTSTP] : [])
    }
    Self.endIfDue()
    Self.stopIfDue()
    for number in undelivered { Self.deliver(number) }
  }

  // MARK: The process

  private static func endIfDue() {
    let due: Int32? = watches.withLock { $0.isEndFinished ? $0.wanted : nil }
    if let due { deliverByDefault(due) }
  }

  private static func stopIfDue() {
    let isDue = watches.withLock { watches in
      guard SignalNotes.stop == .asked, !watches.isStopping, !watches.live.isEmpty, watches.isStopFinished else {
        return false
      }
      watches.isStopping = true
      return true
    }
    if isDue { stop() }
  }

  /// Stops the process; returns when it continues. Returns immediately if nobody could continue it (the system then
  /// ignores the signal), or if it was continued before it had stopped.
  private static func stop() {
    let before = ContinuousClock.now
    withBlocked([SIGTSTP, SIGCONT]) {
      // A SIGCONT that no thread has handled yet: the system discards it when the stop is raised.
      let isTakenBack = isPending(SIGCONT)
      signal(SIGTSTP, SIG_DFL)
      raise(SIGTSTP)
      // The stop is pending here. A SIGCONT from now on cancels it; one that was handled earlier has been recorded.
      if SignalNotes.takeStop() != .asked || isTakenBack { signal(SIGTSTP, SIG_IGN) }
    }
    signal(SIGTSTP, handler)
    watches.withLock { watches in
      watches.isStopping = false
      stopped(for: ContinuousClock.now - before, in: &watches)
    }
  }

  /// Records a stop, so that every watch sees it.
  private static func stopped(for duration: Duration, in watches: inout Watches) {
    watches.stopTaken = nil
    watches.stops += 1
    watches.stopped += duration
    stopCount.store(watches.stops, ordering: .releasing)
  }

  /// Returns the end and the stop that were requested and haven't happened yet, and the time limit for them. Allows the
  /// guard to end or stop a game that doesn't take its signals.
  static func askedAndNotDone() -> (end: Int32?, stop: Int?, limit: Duration) {
    watches.withLock { watches in
      let end = SignalNotes.endSignal
      let ends = end != 0 && watches.live.values.contains { $0.ends && $0.signals.contains(end) }
      let stops = SignalNotes.stop == .asked && !watches.isStopping
      let deadline = watches.live.values.map(\.deadline).max() ?? .zero
      return (ends ? end : nil, stops ? watches.stops : nil, deadline + grace)
    }
  }

  /// Ends the process, whatever the watches have done.
  static func forceEnd(_ number: Int32) { deliverByDefault(number) }

  /// Stops the process, whatever the watches have done.
  static func forceStop() {
    let isDue = watches.withLock { watches in
      guard SignalNotes.stop == .asked, !watches.isStopping else { return false }
      watches.isStopping = true
      return true
    }
    if isDue { stop() }
  }

  /// Removes one watch from the signal's users; the last one restores the default action.
  private static func drop(_ number: Int32, from watches: inout Watches) {
    guard let count = watches.users[number] else { return }
    watches.users[number] = count > 1 ? count - 1 : nil
    if count == 1 { giveBack(number) }
  }

  private static func giveBack(_ number: Int32) {
    let current = signal(number, SIG_DFL)
    // The program has installed its own handler since.
    if unsafeBitCast(current, to: UInt.self) != unsafeBitCast(handler, to: UInt.self) { signal(number, current) }
  }

  private static func deliverByDefault(_ number: Int32) {
    signal(number, SIG_DFL)
    deliver(number)
  }

  /// Raises the signal for this thread, so that it has taken effect before this returns.
  private static func deliver(_ number: Int32) { withBlocked([number]) { raise(number) } }

  /// Signals that `body` raises for this thread take effect before this returns, even on pool threads, which block all
  /// signals.
  private static func withBlocked(_ numbers: [Int32], _ body: () -> Void) {
    var only = sigset_t()
    var before = sigset_t()
    sigemptyset(&only)
    for number in numbers { sigaddset(&only, number) }
    pthread_sigmask(SIG_BLOCK, &only, &before)
    body()
    pthread_sigmask(SIG_UNBLOCK, &only, nil)
    pthread_sigmask(SIG_SETMASK, &before, nil)
  }

  /// Whether a signal that this thread blocks is pending.
  private static func isPending(_ number: Int32) -> Bool {
    var pending = sigset_t()
    sigpending(&pending)
    return sigismember(&pending, number) == 1
  }

  private static let handler: @convention(c) (Int32) -> Void = { number in
    let errorNumber = errno
    if number == SIGTSTP {
      SignalNotes.askStop()
    } else if number == SIGCONT {
      SignalNotes.takeBackStop()
    } else if SignalNotes.askEnd(number) {
      SignalWatch.deliverByDefault(number)
    }
    var byte: UInt8 = 0
    // A full pipe wakes the guard as well.
    _ = write(SignalWatch.wakeUp.write, &byte, 1)
    errno = errorNumber
  }
  #endif
}
