#if !os(Windows)
import Dispatch
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

/// What signals asked for: all that their handler touches. It may interrupt anything, so there are no locks here and nothing is allocated.
enum SignalNotes {
  /// What was said about stopping.
  enum Stop: UInt8, AtomicRepresentable {
    case none
    /// The process shall stop.
    case asked
    /// It shall go on, and was told so before it had stopped.
    case takenBack
  }

  /// How long after the first signal, in milliseconds, a further one still belongs to it. A terminal that closes sends SIGHUP twice, by its
  /// shell and by the system, and service managers send SIGTERM and SIGHUP together: nobody insists so soon.
  static let insistence = Atomic<UInt64>(1_000)

  private static let numberBits: UInt64 = 8
  private static let numberMask: UInt64 = 1 << numberBits - 1

  /// The signal that shall end the process, and above it when it came: in one word, so that no handler sees one without the other.
  private static let end = Atomic<UInt64>(0)
  private static let stopState = Atomic(Stop.none)

  /// Makes everything ready, so that the handler only loads and stores.
  static func prepare() { _ = (insistence.load(ordering: .relaxed), numberBits, numberMask, endSignal, stop, milliseconds()) }

  /// The signal that shall end the process; zero if there is none.
  static var endSignal: Int32 { number(end.load(ordering: .acquiring)) }

  static var stop: Stop { stopState.load(ordering: .acquiring) }

  /// Notes the first signal. True for a later one if the game had time and hasn't ended: it hangs, or the player insists.
  static func askEnd(_ number: Int32) -> Bool {
    let now = milliseconds()
    let asked = now << numberBits | UInt64(truncatingIfNeeded: number) & numberMask
    let (isFirst, first) = end.compareExchange(expected: 0, desired: asked, ordering: .acquiringAndReleasing)
    return !isFirst && now >= first >> numberBits + insistence.load(ordering: .relaxed)
  }

  /// Forgets the signal that shall end the process, and gives it.
  static func takeEnd() -> Int32 { number(end.exchange(0, ordering: .acquiringAndReleasing)) }

  static func askStop() { stopState.store(.asked, ordering: .releasing) }

  /// Nothing where no stop was asked for, as after a stop that took place.
  static func takeBackStop() { move(from: .asked, to: .takenBack) }

  /// Forgets what was asked about stopping, and gives it.
  static func takeStop() -> Stop { stopState.exchange(.none, ordering: .acquiringAndReleasing) }

  /// Whether it stood so, and now stands the other way.
  @discardableResult
  static func move(from old: Stop, to new: Stop) -> Bool {
    stopState.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
  }

  private static func number(_ word: UInt64) -> Int32 { Int32(truncatingIfNeeded: word & numberMask) }

  /// In a handler: a reading of the system's clock and nothing else, once `prepare` has asked before.
  private static func milliseconds() -> UInt64 { DispatchTime.now().uptimeNanoseconds / 1_000_000 }
}
#endif
