import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#elseif canImport(Darwin)
import Darwin
#endif

/// One autosave's view of the signals by which the process is told to end or to stop. Nothing of the game runs in a signal's handler: it is
/// noted, the game's loop takes it, and once every watch has done its part the signal does what it would have done.
final class SignalWatch: Sendable {
  enum Event: Sendable {
    /// The process shall end by this signal.
    case end(Int32)
    /// The process shall stop, until somebody lets it go on.
    case stop
    /// The process was stopped for so long, and goes on.
    case resumed(after: Duration)
  }

  /// How long beyond the deadline a game may take that saves, before the signal has its way without it.
  static let grace: Duration = .milliseconds(500)

  #if os(Windows)
  static func begin(ending: Bool, within deadline: Duration) -> SignalWatch? { nil }
  func take() -> Event? { nil }
  func remaining(_ event: Event) -> Duration { .zero }
  func finishedEnd(_ signal: Int32?) {}
  func finishedStop() {}
  func end() {}
  #else
  private static let ending: [Int32] = [SIGTERM, SIGINT, SIGHUP]

  /// What one watch has done about what was asked.
  private struct Entry {
    var signals: [Int32]
    var deadline: Duration
    /// Whether the process shall end by the signal.
    var ends: Bool
    var hasTakenEnd = false
    var hasFinishedEnd = false
    var hasTakenStop = false
    var hasFinishedStop = false
    var seenStops: Int
    var seenStopped: Duration
  }

  private struct Watches {
    /// How many watches use each signal that is handled here.
    var users: [Int32: Int] = [:]
    var live: [Int: Entry] = [:]
    var nextID = 0
    /// The signal that shall end the process once every watch has seen to it.
    var wanted: Int32?
    /// When the first watch took what was asked.
    var endTaken: ContinuousClock.Instant?
    var stopTaken: ContinuousClock.Instant?
    /// Somebody is stopping the process now.
    var isStopping = false
    /// How often, and for how long in all, the process was stopped here.
    var stops = 0
    var stopped: Duration = .zero

    var isEndFinished: Bool { live.values.allSatisfy(\.hasFinishedEnd) }
    var isStopFinished: Bool { live.values.allSatisfy { $0.hasFinishedStop || !$0.signals.contains(SIGTSTP) } }
  }

  private static let watches = Mutex(Watches())
  /// `Watches.stops`, to be looked at without the lock.
  private static let stopCount = Atomic(0)
  /// A pipe that wakes the guard.
  private static let wakeUp: (read: Int32, write: Int32) = {
    var ends: [Int32] = [-1, -1]
    // Without a pipe there is no guard: signals work as long as the game's loop runs.
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

  /// Watches those of the signals that the program doesn't handle itself; nil if there are none.
  static func begin(ending ends: Bool, within deadline: Duration) -> SignalWatch? {
    // Made ready here, before the handler may need it.
    SignalNotes.prepare()
    _ = wakeUp
    let watch: SignalWatch? = watches.withLock { watches in
      var signals = (ending + [SIGTSTP, SIGCONT]).filter { number in
        if watches.users[number] == nil {
          let before = signal(number, handler)
          // Nil stands for the default. Whatever else was there stays.
          guard before == nil else {
            signal(number, before)
            return false
          }
        }
        watches.users[number, default: 0] += 1
        return true
      }
      // Of no use to who isn't told of stops.
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

  /// What is asked of this watch, each thing once. Costs three loads when there is nothing.
  func take() -> Event? {
    let end = SignalNotes.endSignal
    let stop = SignalNotes.stop
    let stops = Self.stopCount.load(ordering: .acquiring)
    guard end != 0 || stop != .none || stops != seenStops.load(ordering: .relaxed) else { return nil }
    return Self.watches.withLock { watches in
      // Whoever was suspended for it is told like after a stop that took no time.
      if stop == .takenBack, !watches.isStopping, SignalNotes.move(from: .takenBack, to: .none) { Self.stopped(for: .zero, in: &watches) }
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

  /// How much of the deadline is left: all watches share it, because whoever sent the signal waits for all of them.
  func remaining(_ event: Event) -> Duration {
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

  /// This watch has done what it had to before the end. With a signal: lets it end the process, as soon as every watch has.
  func finishedEnd(_ number: Int32?) {
    Self.watches.withLock { watches in
      watches.live[id]?.hasFinishedEnd = true
      if let number { watches.wanted = number }
    }
    Self.endIfDue()
  }

  /// This watch has done what it had to before the stop. The last one stops the process, and returns when that goes on.
  func finishedStop() {
    Self.watches.withLock { $0.live[id]?.hasFinishedStop = true }
    Self.stopIfDue()
  }

  /// Gives back to their defaults the signals that nobody watches any longer.
  func end() {
    let undelivered: [Int32] = Self.watches.withLock { watches in
      for number in signals {
        Self.drop(number, from: &watches)
      }
      let entry = watches.live.removeValue(forKey: id)
      guard watches.live.isEmpty else { return [] }
      // The next watch begins anew. A signal that came too late for the last one does what it would have done.
      let number = SignalNotes.takeEnd()
      let isStopAsked = SignalNotes.takeStop() == .asked
      (watches.endTaken, watches.stopTaken) = (nil, nil)
      return (number != 0 && entry?.hasTakenEnd != true ? [number] : []) + (isStopAsked && !watches.isStopping ? [SIGTSTP] : [])
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
      guard SignalNotes.stop == .asked, !watches.isStopping, !watches.live.isEmpty, watches.isStopFinished else { return false }
      watches.isStopping = true
      return true
    }
    if isDue { stop() }
  }

  /// Stops the process; returns when it goes on. At once if nobody could let it go on (the system then ignores the signal), or if it was
  /// told to go on before it had stopped.
  private static func stop() {
    let before = ContinuousClock.now
    withBlocked([SIGTSTP, SIGCONT]) {
      // One that another thread is yet to hear: the system drops it when the stop is raised.
      let isTakenBack = isPending(SIGCONT)
      signal(SIGTSTP, SIG_DFL)
      raise(SIGTSTP)
      // The stop waits here. A SIGCONT from now on takes it away, one that was heard before was noted.
      if SignalNotes.takeStop() != .asked || isTakenBack { signal(SIGTSTP, SIG_IGN) }
    }
    signal(SIGTSTP, handler)
    watches.withLock { watches in
      watches.isStopping = false
      stopped(for: ContinuousClock.now - before, in: &watches)
    }
  }

  /// Lets every watch see that there was a stop.
  private static func stopped(for duration: Duration, in watches: inout Watches) {
    watches.stopTaken = nil
    watches.stops += 1
    watches.stopped += duration
    stopCount.store(watches.stops, ordering: .releasing)
  }

  /// What a game that doesn't take its signals still has to be spared: one that it can't be ended or stopped by.
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

  /// One watch less uses it; without any it gets its default back.
  private static func drop(_ number: Int32, from watches: inout Watches) {
    guard let count = watches.users[number] else { return }
    watches.users[number] = count > 1 ? count - 1 : nil
    if count == 1 { giveBack(number) }
  }

  private static func giveBack(_ number: Int32) {
    let current = signal(number, SIG_DFL)
    // The program has taken over since.
    if unsafeBitCast(current, to: UInt.self) != unsafeBitCast(handler, to: UInt.self) { signal(number, current) }
  }

  private static func deliverByDefault(_ number: Int32) {
    signal(number, SIG_DFL)
    deliver(number)
  }

  /// To this thread, so that it has worked before this returns.
  private static func deliver(_ number: Int32) { withBlocked([number]) { raise(number) } }

  /// What `body` raises for this thread works when it is over, also on threads of a pool, which block all signals.
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

  /// Whether a signal that this thread blocks waits for somebody to hear it.
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
