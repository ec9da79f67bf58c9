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

/// Notes that the process was told to end, for a game loop to look at: nothing of the game runs in a signal's handler.
final class SignalWatch: Sendable {
  #if os(Windows)
  static func begin() -> SignalWatch? { nil }
  func raiseWhenAllTook(_ signal: Int32) {}
  func take() -> Int32? { nil }
  func end() {}
  #else
  private static let watched: [Int32] = [SIGTERM, SIGINT, SIGHUP]
  /// The signal that came; 0 before. All that the handler touches.
  private static let noted = Atomic<Int32>(0)
  private struct Watches {
    /// How many watches use each signal that is handled here.
    var users: [Int32: Int] = [:]
    var live = 0
    /// Live watches that have seen to the signal.
    var taken = 0
    /// The signal that shall end the process once every watch has seen to it.
    var wanted: Int32?
  }
  private static let watches = Mutex(Watches())

  private let signals: [Int32]
  private let isTaken = Atomic(false)

  private init(_ signals: [Int32]) { self.signals = signals }

  /// Watches those of the signals that the program doesn't handle itself; nil if there are none.
  static func begin() -> SignalWatch? {
    // Made ready here, so that the handler only loads and stores.
    _ = noted.load(ordering: .relaxed)
    let signals = watches.withLock { watches in
      let signals = watched.filter { number in
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
      if !signals.isEmpty { watches.live += 1 }
      return signals
    }
    return signals.isEmpty ? nil : SignalWatch(signals)
  }

  /// The signal that came, once for each watch.
  func take() -> Int32? {
    let number = Self.noted.load(ordering: .acquiring)
    guard number != 0, signals.contains(number), !isTaken.exchange(true, ordering: .acquiringAndReleasing) else {
      return nil
    }
    Self.watches.withLock { $0.taken += 1 }
    return number
  }

  /// Lets the signal end the process, as soon as every watch has taken it: each may have something to save.
  func raiseWhenAllTook(_ number: Int32) {
    Self.watches.withLock { $0.wanted = number }
    Self.raiseIfDue()
  }

  /// Gives back to their defaults the signals that nobody watches any longer.
  func end() {
    let unheard: Int32? = Self.watches.withLock { watches in
      for number in signals {
        guard let count = watches.users[number] else { continue }
        watches.users[number] = count > 1 ? count - 1 : nil
        if count == 1 { signal(number, SIG_DFL) }
      }
      watches.live -= 1
      if isTaken.load(ordering: .acquiring) { watches.taken -= 1 }
      guard watches.live == 0 else { return nil }
      // The next watch begins anew. A signal that came too late for the last one does what it would have done.
      let number = Self.noted.exchange(0, ordering: .acquiringAndReleasing)
      return number != 0 && !isTaken.load(ordering: .acquiring) ? number : nil
    }
    Self.raiseIfDue()
    if let unheard { Self.raise(unheard) }
  }

  private static func raiseIfDue() {
    let due: Int32? = watches.withLock { $0.taken >= $0.live ? $0.wanted : nil }
    if let due { raise(due) }
  }

  /// Lets a signal do what it would have done.
  private static func raise(_ number: Int32) {
    signal(number, SIG_DFL)
    kill(getpid(), number)
  }

  private static let handler: @convention(c) (Int32) -> Void = { number in
    let (isFirst, _) = SignalWatch.noted.compareExchange(expected: 0, desired: number, ordering: .acquiringAndReleasing)
    // Asked twice, and the game hasn't ended: it hangs, or the player insists.
    if !isFirst { SignalWatch.raise(number) }
  }
  #endif
}
