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
  static func raise(_ signal: Int32) {}
  func take() -> Int32? { nil }
  func end() {}
  #else
  private static let watched: [Int32] = [SIGTERM, SIGINT, SIGHUP]
  /// The signal that came; 0 before. All that the handler touches.
  private static let noted = Atomic<Int32>(0)
  /// How many watches use each signal that is handled here.
  private static let users = Mutex<[Int32: Int]>([:])

  private let signals: [Int32]
  private let isTaken = Atomic(false)

  private init(_ signals: [Int32]) { self.signals = signals }

  /// Watches those of the signals that the program doesn't handle itself; nil if there are none.
  static func begin() -> SignalWatch? {
    // Made ready here, so that the handler only loads and stores.
    _ = noted.load(ordering: .relaxed)
    let signals = users.withLock { users in
      watched.filter { number in
        if users[number] == nil {
          let before = signal(number, handler)
          // Nil stands for the default. Whatever else was there stays.
          guard before == nil else {
            signal(number, before)
            return false
          }
        }
        users[number, default: 0] += 1
        return true
      }
    }
    return signals.isEmpty ? nil : SignalWatch(signals)
  }

  /// The signal that came, once for each watch.
  func take() -> Int32? {
    let number = Self.noted.load(ordering: .acquiring)
    guard number != 0, signals.contains(number), !isTaken.exchange(true, ordering: .acquiringAndReleasing) else {
      return nil
    }
    return number
  }

  /// Gives back to their defaults the signals that nobody watches any longer.
  func end() {
    Self.users.withLock { users in
      for number in signals {
        guard let count = users[number] else { continue }
        users[number] = count > 1 ? count - 1 : nil
        if count == 1 { signal(number, SIG_DFL) }
      }
    }
  }

  /// Lets a signal do what it would have done.
  static func raise(_ number: Int32) {
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
